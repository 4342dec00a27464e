import { FindOrganizationMemberships } from '#libs/contracts/src/organization-memberships/operations';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';

const ID = /^om_[0-9A-HJKMNP-TV-Z]{26}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const NEVER = 'om_01J0000000000000000000000A';
const PATH = '/user_management/organization_memberships';

describe('memberships', () => {
  let suite: GivenSuite;
  let users = 0;
  beforeAll(async () => void (suite = await givenSuite()));

  const organization = (name = 'Acme') => suite.post('/organizations', { name }).expect(201);
  const user = () => suite.post('/user_management/users', { email: `ada${users++}@acme.test` }).expect(201);
  const join = (organization_id: string, user_id: string, fields: object = {}) => suite.post(PATH, { organization_id, user_id, ...fields }).expect(201);
  const joined = async (fields: object = {}) => join((await organization()).id, (await user()).id, fields);
  const role = (slug: string, fields: object = {}) => suite.post('/authorization/roles', { slug, name: slug, ...fields }).expect(201);
  const idsOf = ({ data }: { data: readonly { id: string }[] }) => data.map(({ id }) => id);
  const rolesOf = ({ roles }: { roles: readonly { slug: string }[] }) => roles.map(({ slug }) => slug);
  const publicOf = async (id: string) =>
    (await suite.records()).filter(({ subject }) => (subject as { id?: string } | null)?.id === id).flatMap((record) => record.public.map(({ name }) => name));

  describe('are created', () => {
    it('with the default role, and shown with user and organization', async () => {
      const acme = await organization('Acme Inc.');
      const ada = await user();
      const membership = await join(acme.id, ada.id);
      expect(membership).toEqual({
        object: 'organization_membership',
        id: expect.stringMatching(ID),
        user_id: ada.id,
        organization_id: acme.id,
        status: 'active',
        directory_managed: false,
        organization_name: 'Acme Inc.',
        custom_attributes: {},
        created_at: expect.stringMatching(TIME),
        updated_at: membership.created_at,
        role: { slug: 'member' },
        roles: [{ slug: 'member' }],
        user: ada,
      });
      await suite.get(`${PATH}/${membership.id}`).expect(200, membership);
      expect(await publicOf(membership.id)).toEqual(['organization_membership.created']);
    });

    it('with one role or several, the one with the highest priority first', async () => {
      expect(await joined({ role_slug: 'admin' })).toMatchObject({ role: { slug: 'admin' }, roles: [{ slug: 'admin' }] });
      expect(rolesOf(await joined({ role_slugs: ['member', 'admin', 'member'] }))).toEqual(['admin', 'member']);
    });

    it('with a custom role of the organization, and with no other organization’s', async () => {
      const [acme, other] = [await organization(), await organization()];
      await suite.post(`/authorization/organizations/${acme.id}/roles`, { slug: 'org-auditor', name: 'Auditor' }).expect(201);
      expect(rolesOf(await join(acme.id, (await user()).id, { role_slugs: ['org-auditor', 'member'] }))).toEqual(['member', 'org-auditor']);
      await suite.post(PATH, { organization_id: other.id, user_id: (await user()).id, role_slug: 'org-auditor' }).expect(422, {
        code: 'invalid_role',
        role_slug: 'org-auditor',
        errors: [{ code: 'invalid_role', field: 'role_slug' }],
      });
    });

    it('with the default role where null is written for what was not set', async () =>
      expect(await joined({ role_slug: null, role_slugs: null })).toMatchObject({ role: { slug: 'member' } }));

    it('with a role that was created a moment ago', async () => {
      await role('fresh');
      expect(await joined({ role_slug: 'fresh' })).toMatchObject({ role: { slug: 'fresh' } });
    });

    it('not with a role of another type of resource', async () => {
      await suite.post('/admin/resource_types', { slug: 'project', name: 'Project', parent_type_slugs: ['organization'] }).expect(201);
      await role('project-editor', { resource_type_slug: 'project' });
      await suite
        .post(PATH, { organization_id: (await organization()).id, user_id: (await user()).id, role_slugs: ['admin', 'project-editor'] })
        .expect(422, { code: 'sub_resource_scoped_role_not_allowed', role_slug: 'project-editor' });
    });

    it.each([
      ['neither user nor organization', {}, 422, 'invalid_request_parameters'],
      ['both forms of roles', { role_slug: 'admin', role_slugs: ['admin'] }, 422, 'invalid_request_parameters'],
      ['no roles at all', { role_slugs: [] }, 422, 'invalid_request_parameters'],
      ['roles that are no text', { role_slugs: [1] }, 422, 'invalid_request_parameters'],
      ['a role without a name', { role_slug: '' }, 422, 'invalid_request_parameters'],
      ['an unknown role', { role_slug: 'emperor' }, 422, 'invalid_role'],
      ['a user who never was', { user_id: 'user_01J0000000000000000000000A' }, 404, 'entity_not_found'],
      ['an organization that never was', { organization_id: 'org_01J0000000000000000000000A' }, 404, 'entity_not_found'],
      ['a user who is something else', { user_id: NEVER }, 404, 'entity_not_found'],
    ])('not with %s', async (_, fields, status, code) => {
      const pair = Object.keys(fields).length === 0 ? {} : { organization_id: (await organization()).id, user_id: (await user()).id };
      await suite.post(PATH, { ...pair, ...fields }).expect(status, { code });
    });

    it('once for each user and organization, however many ask at once', async () => {
      const [acme, ada] = [await organization(), await user()];
      const answers = await Promise.all(Array.from({ length: 8 }, async () => suite.post(PATH, { organization_id: acme.id, user_id: ada.id })));
      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 7 }, () => 400)]);
      expect(answers.find(({ status }) => status === 400)!.body).toMatchObject({ code: 'user_already_organization_member' });
      expect(idsOf(await suite.get(`${PATH}?organization_id=${acme.id}`).expect(200))).toHaveLength(1);
    });

    it('with the same answer when the request is repeated under its key', async () => {
      const body = { organization_id: (await organization()).id, user_id: (await user()).id };
      const first = await suite.post(PATH, body, { 'Idempotency-Key': 'join-once' }).expect(201);
      await suite.post(PATH, body, { 'Idempotency-Key': 'join-once' }).expect(201, first);
    });

    it('again after they were deleted, as others', async () => {
      const first = await joined({ role_slug: 'admin' });
      await suite.delete(`${PATH}/${first.id}`).expect(200);
      const second = await join(first.organization_id, first.user_id);
      expect(second.id).not.toBe(first.id);
      expect(second).toMatchObject({ role: { slug: 'member' } });
      for (const path of ['', '/deactivate', '/reactivate']) await suite.put(`${PATH}/${first.id}${path}`, {}).expect(404, { entity_id: first.id });
    });

    it('out of an inactive one, which gets the roles and keeps its id', async () => {
      const first = await joined({ role_slug: 'admin' });
      await suite.put(`${PATH}/${first.id}/deactivate`).expect(200);
      const second = await join(first.organization_id, first.user_id);
      expect(second).toMatchObject({ id: first.id, status: 'active', role: { slug: 'member' }, created_at: first.created_at });
      expect(await publicOf(first.id)).toEqual(['organization_membership.created', 'organization_membership.updated', 'organization_membership.updated']);
    });
  });

  describe('are listed', () => {
    it('by organization, by user, and by both; only active ones unless others are asked for', async () => {
      const [acme, other] = [await organization(), await organization()];
      const [ada, bob] = [await user(), await user()];
      const adaInAcme = await join(acme.id, ada.id);
      const bobInAcme = await join(acme.id, bob.id);
      const adaInOther = await join(other.id, ada.id);
      const list = async (query: string) => idsOf(await suite.get(`${PATH}?${query}`).expect(200));
      expect(await list(`organization_id=${acme.id}`)).toEqual([bobInAcme.id, adaInAcme.id]);
      expect(await list(`user_id=${ada.id}&order=asc`)).toEqual([adaInAcme.id, adaInOther.id]);
      expect(await list(`user_id=${ada.id}&organization_id=${acme.id}`)).toEqual([adaInAcme.id]);
      await suite.put(`${PATH}/${adaInAcme.id}/deactivate`).expect(200);
      expect(await list(`organization_id=${acme.id}`)).toEqual([bobInAcme.id]);
      expect(await list(`user_id=${ada.id}&organization_id=${acme.id}`)).toEqual([]);
      expect(await list(`organization_id=${acme.id}&statuses=inactive`)).toEqual([adaInAcme.id]);
      expect(await list(`organization_id=${acme.id}&statuses=inactive,active,pending`)).toEqual([bobInAcme.id, adaInAcme.id]);
      expect(await list(`user_id=${ada.id}&statuses=inactive&statuses=active&order=asc`)).toEqual([adaInAcme.id, adaInOther.id]);
    });

    it('with everything about them, page by page', async () => {
      const acme = await organization();
      const all = [];
      for (let index = 0; index < 5; index++) all.push(await join(acme.id, (await user()).id));
      const first = await suite.get(`${PATH}?organization_id=${acme.id}&limit=2&order=asc`).expect(200);
      expect(first).toMatchObject({ data: all.slice(0, 2), list_metadata: { before: null, after: all[1].id } });
      const second = await suite.get(`${PATH}?organization_id=${acme.id}&limit=2&order=asc&after=${all[1].id}`).expect(200);
      expect(second).toMatchObject({ data: all.slice(2, 4), list_metadata: { before: all[2].id, after: all[3].id } });
      const third = await suite.get(`${PATH}?organization_id=${acme.id}&limit=2&order=asc&after=${all[3].id}`).expect(200);
      expect(third).toMatchObject({ data: all.slice(4), list_metadata: { before: all[4].id, after: null } });
      const back = await suite.get(`${PATH}?organization_id=${acme.id}&limit=2&order=asc&before=${all[4].id}`).expect(200);
      expect(back).toMatchObject({ data: all.slice(2, 4), list_metadata: { before: all[2].id, after: all[3].id } });
    });

    it.each([
      ['neither user nor organization', '', 400, 'missing_user_id_or_organization_id'],
      ['a user who never was', 'user_id=user_01J0000000000000000000000A', 404, 'entity_not_found'],
      ['an organization that never was', 'organization_id=org_01J0000000000000000000000A', 404, 'entity_not_found'],
      ['an unknown status', 'statuses=gone', 422, 'invalid_request_parameters'],
      ['a cursor that never was', `after=${NEVER}`, 422, 'invalid_request_parameters'],
      ['a malformed cursor', 'before=om_1', 422, 'invalid_request_parameters'],
    ])('not for %s', async (_, query, status, code) => {
      const prefix = /cursor|status/.test(_) ? `organization_id=${(await organization()).id}&` : '';
      await suite.get(`${PATH}?${prefix}${query}`).expect(status, { code });
    });
  });

  describe('change', () => {
    it('their roles, which is told once', async () => {
      const membership = await joined();
      const changed = await suite.put(`${PATH}/${membership.id}`, { role_slug: 'admin' }).expect(200, { role: { slug: 'admin' }, roles: [{ slug: 'admin' }] });
      await suite.put(`${PATH}/${membership.id}`, { role_slugs: ['admin'] }).expect(200, changed);
      await suite.put(`${PATH}/${membership.id}`, {}).expect(200, changed);
      await suite.put(`${PATH}/${membership.id}`, { role_slug: 'emperor' }).expect(422, { code: 'invalid_role' });
      await suite.get(`${PATH}/${membership.id}`).expect(200, changed);
      expect(await publicOf(membership.id)).toEqual(['organization_membership.created', 'organization_membership.updated']);
    });

    it('the order of their roles with the priority of these', async () => {
      const membership = await joined({ role_slugs: ['admin', 'member'] });
      const slugs = (await suite.get('/authorization/roles').expect(200)).data.map(({ slug }: { slug: string }) => slug);
      const order = ['member', ...slugs.filter((slug: string) => slug !== 'member')];
      await suite.put('/admin/roles/priority', { role_slugs: order }).expect(200);
      await suite.get(`${PATH}/${membership.id}`).expect(200, { role: { slug: 'member' }, roles: [{ slug: 'member' }, { slug: 'admin' }] });
      await suite.put('/admin/roles/priority', { role_slugs: slugs }).expect(200);
    });

    it('their status, and stay what they are otherwise', async () => {
      const membership = await joined({ role_slug: 'admin' });
      const inactive = await suite
        .put(`${PATH}/${membership.id}/deactivate`)
        .expect(200, { ...membership, status: 'inactive', updated_at: expect.any(String) });
      await suite.put(`${PATH}/${membership.id}/deactivate`).expect(200, inactive);
      const active = await suite.put(`${PATH}/${membership.id}/reactivate`).expect(200, { ...membership, status: 'active', updated_at: expect.any(String) });
      await suite.put(`${PATH}/${membership.id}/reactivate`).expect(200, active);
      expect(await publicOf(membership.id)).toEqual(['organization_membership.created', 'organization_membership.updated', 'organization_membership.updated']);
    });

    it('not where there is none', async () => {
      for (const path of ['', '/deactivate', '/reactivate'])
        await suite.put(`${PATH}/${NEVER}${path}`, {}).expect(404, { code: 'entity_not_found', entity_id: NEVER });
      await suite.get(`${PATH}/${NEVER}`).expect(404, { message: `Organization membership not found: '${NEVER}'.` });
      await suite.get(`${PATH}/${NEVER}/groups`).expect(404, { entity_id: NEVER });
      await suite.delete(`${PATH}/${NEVER}`).expect(404, { entity_id: NEVER });
    });
  });

  it('are deleted, and are gone', async () => {
    const membership = await joined();
    const answer = await suite.delete(`${PATH}/${membership.id}`);
    expect([answer.status, answer.text, answer.headers['content-type']]).toEqual([200, '', undefined]);
    await suite.get(`${PATH}/${membership.id}`).expect(404);
    await suite.delete(`${PATH}/${membership.id}`).expect(404);
    expect(idsOf(await suite.get(`${PATH}?organization_id=${membership.organization_id}&statuses=active,inactive,pending`).expect(200))).toEqual([]);
    expect(await publicOf(membership.id)).toEqual(['organization_membership.created', 'organization_membership.deleted']);
  });

  it('are told of without user and organization’s name', async () => {
    const membership = await joined();
    const { organization_name: _, user: __, ...told } = membership;
    const { data } = await suite.eventually('/events?events=organization_membership.created&order=desc&limit=1', { data: [{ data: { id: membership.id } }] });
    expect(data[0].data).toEqual(told);
  });

  it('show name and user as they are now', async () => {
    const membership = await joined();
    await suite.put(`/organizations/${membership.organization_id}`, { name: 'Beta' }).expect(200);
    await suite.put(`/user_management/users/${membership.user_id}`, { first_name: 'Ada' }).expect(200);
    await suite.get(`${PATH}/${membership.id}`).expect(200, { organization_name: 'Beta', user: { first_name: 'Ada' } });
  });

  describe('of a role that was deleted', () => {
    it('fall back to the default role at once, which is recorded after', async () => {
      await role('short-lived');
      const membership = await joined({ role_slug: 'short-lived' });
      await suite.delete('/admin/roles/short-lived').expect(204);
      await suite.get(`${PATH}/${membership.id}`).expect(200, { role: { slug: 'member' }, roles: [{ slug: 'member' }] });
      await suite.eventually(`/events?events=organization_membership.updated&order=desc&limit=1`, {
        data: [{ data: { id: membership.id, roles: [{ slug: 'member' }] } }],
      });
      await role('short-lived');
      await suite.get(`${PATH}/${membership.id}`).expect(200, { roles: [{ slug: 'member' }] });
    });

    it('keep their other roles', async () => {
      await role('doomed');
      const membership = await joined({ role_slugs: ['admin', 'doomed'] });
      await suite.delete('/admin/roles/doomed').expect(204);
      await suite.get(`${PATH}/${membership.id}`).expect(200, { role: { slug: 'admin' }, roles: [{ slug: 'admin' }] });
    });
  });

  describe('end', () => {
    it('with their user: at once for every reader, then told of', async () => {
      const [acme, ada, bob] = [await organization(), await user(), await user()];
      const [first, second] = [await join(acme.id, ada.id), await join(acme.id, bob.id)];
      await suite.delete(`/user_management/users/${ada.id}`).expect(200);
      await suite.get(`${PATH}/${first.id}`).expect(404);
      await suite.get(`${PATH}?user_id=${ada.id}`).expect(404);
      expect(idsOf(await suite.get(`${PATH}?organization_id=${acme.id}`).expect(200))).toEqual([second.id]);
      await suite.eventually('/events?events=organization_membership.deleted&order=desc&limit=1', {
        data: [{ data: { id: first.id, roles: [{ slug: 'member' }] } }],
      });
    });

    it('with their organization: at once for every reader, then told of after it', async () => {
      const acme = await organization();
      const memberships = [];
      for (let index = 0; index < 3; index++) memberships.push(await join(acme.id, (await user()).id));
      await suite.delete(`/organizations/${acme.id}`).expect(202);
      for (const { id, user_id } of memberships) {
        await suite.get(`${PATH}/${id}`).expect(404);
        expect(await suite.get(`${PATH}?user_id=${user_id}`).expect(200)).toMatchObject({ data: [], list_metadata: { before: null, after: null } });
      }
      await suite.eventually('/events?events=organization_membership.deleted&order=desc&limit=3', {
        data: [...memberships].reverse().map(() => ({ data: { organization_id: acme.id } })),
      });
      const told = (await suite.records()).filter(({ meta }) => meta.organization === acme.id).flatMap((record) => record.public.map(({ name }) => name));
      expect(told.slice(-4)).toEqual(['organization.deleted', ...memberships.map(() => 'organization_membership.deleted')]);
    });
  });

  describe('of another environment', () => {
    let other: Caller;
    beforeAll(async () => void (other = await suite.otherEnvironment()));

    it('are not there', async () => {
      const membership = await joined();
      await other.get(`${PATH}/${membership.id}`).expect(404);
      await other.put(`${PATH}/${membership.id}`, { role_slug: 'admin' }).expect(404);
      await other.delete(`${PATH}/${membership.id}`).expect(404);
      await other.get(`${PATH}?user_id=${membership.user_id}`).expect(404);
      await other.post(PATH, { user_id: membership.user_id, organization_id: membership.organization_id }).expect(404);
      await suite.get(`${PATH}/${membership.id}`).expect(200, membership);
    });

    it('have roles of their own', async () => {
      await role('ours');
      const organization_id = (await other.post('/organizations', { name: 'Theirs' }).expect(201)).id;
      const user_id = (await other.post('/user_management/users', { email: 'eve@their.test' }).expect(201)).id;
      await other.post(PATH, { organization_id, user_id, role_slug: 'ours' }).expect(422, { code: 'invalid_role' });
      await other.post(PATH, { organization_id, user_id, role_slug: 'admin' }).expect(201, { role: { slug: 'admin' } });
    });
  });

  it('are found by other services in the order of their ids, without those that are gone', async () => {
    const [first, second, gone] = [await joined(), await joined(), await joined()];
    await suite.delete(`/organizations/${gone.organization_id}`).expect(202);
    const environment = (await suite.records('organization_membership.created'))[0]!.meta.environment;
    const found = await suite.call(FindOrganizationMemberships, { ids: [second.id, NEVER, gone.id, first.id] }, { environment });
    expect(found).toMatchObject([
      { id: second.id, user: { id: second.user_id } },
      { id: first.id, organization_name: 'Acme' },
    ]);
    expect(found).toHaveLength(2);
  });
});
