import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually, until } from '#libs/testing/src/until';

const NOWHERE = '/authorization/organizations/org_01HZZZZZZZZZZZZZZZZZZZZZZZ/roles';

describe('the roles of an organization', () => {
  let suite: GivenSuite;
  let organization: string;
  let path: string;
  beforeAll(async () => {
    suite = await givenSuite();
    for (const slug of ['read', 'write']) await suite.post('/authorization/permissions', { slug, name: slug }).expect(201);
    ({ organization, path } = await newOrganization());
  });

  const newOrganization = async () => {
    const { id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    return { organization: id as string, path: `/authorization/organizations/${id}/roles` };
  };
  const create = (slug: string, fields: object = {}) => suite.post(path, { slug, name: 'Name', ...fields }).expect(201);
  const announced = async (id = organization) =>
    (await suite.records()).filter(({ meta }) => meta.organization === id).flatMap((record) => record.public.map(({ name }) => name));
  const since = async (before: readonly string[]) => (await announced()).slice(before.length);
  const slugsOf = ({ data }: { data: readonly { slug: string }[] }) => data.map(({ slug }) => slug);

  it('are those of the environment, and then its own', async () => {
    const other = await newOrganization();
    for (const slug of ['org-a', 'org-b']) await suite.post(other.path, { slug, name: slug }).expect(201);
    await suite.post('/authorization/roles', { slug: 'later', name: 'x' }).expect(201);
    const list = await suite.get(other.path).expect(200);
    expect(slugsOf(list)).toEqual(['admin', 'member', 'later', 'org-a', 'org-b']);
    expect(list.list_metadata).toEqual({ before: null, after: null });
    await suite.get(`${other.path}/member`).expect(200, { type: 'EnvironmentRole' });
    await suite.get(`${other.path}/org-a`).expect(200, { type: 'OrganizationRole', object: 'role' });
    await suite.get(`${path}/org-a`).expect(404, { code: 'entity_not_found' });
  });

  it('are created, and announced as its own', async () => {
    const before = await announced();
    const role = await create('org-auditor');
    expect(role).toEqual({
      object: 'role',
      id: expect.stringMatching(/^role_[0-9A-HJKMNP-TV-Z]{26}$/),
      slug: 'org-auditor',
      name: 'Name',
      description: null,
      type: 'OrganizationRole',
      resource_type_slug: 'organization',
      permissions: [],
      created_at: expect.any(String),
      updated_at: role.created_at,
    });
    await suite.get(`${path}/org-auditor`).expect(200, role);
    expect(await since(before)).toEqual(['organization_role.created']);
    const { type: _, ...announcedRole } = role;
    await eventually(async () => {
      const event = (await suite.get(`/events?limit=100&events=organization_role.created`).expect(200)).data.at(-1);
      expect(event.data).toEqual({ ...announcedRole, object: 'organization_role', organization_id: organization });
    });
  });

  it('get a slug of their name where none is given', async () => {
    const one = await suite.post(path, { name: 'Überwacher & Co.' }).expect(201);
    const two = await suite.post(path, { slug: null, name: 'Überwacher & Co.' }).expect(201);
    expect(one.slug).toMatch(/^org-uberwacher-co-[a-z0-9]{8}$/);
    expect(two.slug).not.toBe(one.slug);
    for (const name of ['日本', 'n'.repeat(48)]) expect((await suite.post(path, { name }).expect(201)).slug).toMatch(/^org-[a-z0-9_-]{1,44}$/);
  });

  it.each([
    ['no name', { slug: 'org-x' }, 422, 'invalid_request_parameters'],
    ['a slug that does not begin as theirs', { slug: 'x', name: 'x' }, 422, 'invalid_request_parameters'],
    ['nothing after the beginning', { slug: 'org-', name: 'x' }, 422, 'invalid_request_parameters'],
    ['capitals in the slug', { slug: 'org-X', name: 'x' }, 422, 'invalid_request_parameters'],
    ['a slug of 49 characters', { slug: `org-${'x'.repeat(45)}`, name: 'x' }, 422, 'invalid_request_parameters'],
    ['a description of 151 characters', { slug: 'org-x', name: 'x', description: 'x'.repeat(151) }, 422, 'invalid_request_parameters'],
    ['an unknown type', { slug: 'org-x', name: 'x', resource_type_slug: 'unknown' }, 404, 'entity_not_found'],
    ['the slug of another', { slug: 'org-auditor', name: 'x' }, 409, 'organization_role_slug_conflict'],
  ])('are not created with %s', async (_, body, status, code) => {
    await suite.post(path, body).expect(status, { code });
  });

  it('may have the slug of one in another organization', async () => {
    const other = await newOrganization();
    const role = await suite.post(other.path, { slug: 'org-auditor', name: 'Theirs' }).expect(201);
    await suite.get(`${path}/org-auditor`).expect(200, { name: 'Name' });
    await suite.delete(`${other.path}/org-auditor`).expect(204);
    await suite.get(`${path}/org-auditor`).expect(200);
    expect((await suite.post(other.path, { slug: 'org-auditor', name: 'Again' }).expect(201)).id).not.toBe(role.id);
  });

  it('are of a type of resource', async () => {
    await suite.post('/admin/resource_types', { slug: 'project', name: 'x', parent_type_slugs: ['organization'] }).expect(201);
    expect(await create('org-lead', { resource_type_slug: 'project' })).toMatchObject({ resource_type_slug: 'project' });
  });

  it('are updated, with an event where something changes', async () => {
    await create('org-updated');
    const before = await announced();
    await suite.patch(`${path}/org-updated`, { name: 'Other', description: 'd' }).expect(200, { name: 'Other', description: 'd' });
    await suite.patch(`${path}/org-updated`, { name: 'Other' }).expect(200, { description: 'd' });
    await suite.patch(`${path}/org-updated`, { description: null }).expect(200, { description: null });
    expect(await since(before)).toEqual(['organization_role.updated', 'organization_role.updated']);
    await suite.patch(`${path}/org-unknown`, { name: 'x' }).expect(404, { code: 'entity_not_found' });
  });

  it('hold permissions', async () => {
    await create('org-holder');
    const before = await announced();
    const permissions = `${path}/org-holder/permissions`;
    await suite.put(permissions, { permissions: ['write', 'read', 'write'] }).expect(200, { permissions: ['write', 'read'] });
    await suite.put(permissions, { permissions: ['read', 'write'] }).expect(200);
    await suite.delete(`${permissions}/write`).expect(200, { slug: 'org-holder', permissions: ['read'] });
    await suite.delete(`${permissions}/write`).expect(404, { code: 'entity_not_found' });
    await suite.delete(`${permissions}/unknown`).expect(404);
    await suite.post(permissions, { slug: 'write' }).expect(200, { permissions: ['read', 'write'] });
    await suite.post(permissions, { slug: 'write' }).expect(200, { permissions: ['read', 'write'] });
    await suite.put(permissions, { permissions: [] }).expect(200, { permissions: [] });
    expect(await since(before)).toEqual(Array.from({ length: 4 }, () => 'organization_role.updated'));
    await suite.post(permissions, { slug: 'unknown' }).expect(404, { entity_id: 'unknown' });
    await suite.put(permissions, { permissions: ['unknown'] }).expect(404);
    await suite.put(permissions, {}).expect(422);
    await suite.put(`${path}/org-unknown/permissions`, { permissions: [] }).expect(404);
    await suite.post(`${path}/org-unknown/permissions`, { slug: 'read' }).expect(404);
    await suite.delete(`${path}/org-unknown/permissions/read`).expect(404);
  });

  it('change only what is their own', async () => {
    await suite.patch(`${path}/member`, { name: 'x' }).expect(400, { code: 'bad_request' });
    await suite.delete(`${path}/admin`).expect(400, { code: 'bad_request' });
    await suite.put(`${path}/admin/permissions`, { permissions: [] }).expect(400, { code: 'bad_request' });
    await suite.post(`${path}/admin/permissions`, { slug: 'read' }).expect(400, { code: 'bad_request' });
    await suite.delete(`${path}/admin/permissions/widgets:sso:manage`).expect(400, { code: 'bad_request' });
    // A role of one organization is no role of the environment.
    await suite.get('/authorization/roles/org-auditor').expect(404);
    await suite.delete('/admin/roles/org-auditor').expect(404);
  });

  it('are deleted', async () => {
    await create('org-deleted');
    const before = await announced();
    expect(await suite.delete(`${path}/org-deleted`)).toMatchObject({ status: 204, text: '' });
    expect(await since(before)).toEqual(['organization_role.deleted']);
    await suite.get(`${path}/org-deleted`).expect(404);
    await suite.delete(`${path}/org-deleted`).expect(404, { code: 'entity_not_found' });
  });

  describe('are not deleted while somebody has them', () => {
    let membership: string;
    beforeAll(async () => {
      const user = await suite.post('/user_management/users', { email: 'holder@acme.test' }).expect(201);
      membership = (await suite.post('/user_management/organization_memberships', { user_id: user.id, organization_id: organization }).expect(201)).id;
    });
    const inUse = (slug: string) => suite.delete(`${path}/${slug}`).expect(409, { code: 'role_has_assignments' });
    const gone = (slug: string) => suite.delete(`${path}/${slug}`).expect(204);

    it('as a member of the organization', async () => {
      await create('org-member');
      await suite.put(`/user_management/organization_memberships/${membership}`, { role_slug: 'org-member' }).expect(200);
      await inUse('org-member');
      await suite.put(`/user_management/organization_memberships/${membership}/deactivate`).expect(200);
      await inUse('org-member');
      await suite.put(`/user_management/organization_memberships/${membership}/reactivate`).expect(200);
      await suite.put(`/user_management/organization_memberships/${membership}`, { role_slug: 'member' }).expect(200);
      await gone('org-member');
    });

    it('on a resource', async () => {
      await create('org-assigned');
      const assignments = `/authorization/organization_memberships/${membership}/role_assignments`;
      const given = { role_slug: 'org-assigned', resource_external_id: organization, resource_type_slug: 'organization' };
      await suite.post(assignments, given).expect(201);
      await inUse('org-assigned');
      await suite.delete(assignments, given).expect(204);
      await gone('org-assigned');
    });

    it('through a group', async () => {
      await create('org-grouped');
      const group = await suite.post(`/organizations/${organization}/groups`, { name: 'G' }).expect(201);
      await suite.post(`/authorization/groups/${group.id}/role_assignments`, { role_slug: 'org-grouped' }).expect(201);
      await inUse('org-grouped');
      await suite.delete(`/organizations/${organization}/groups/${group.id}`).expect(204);
      await gone('org-grouped');
    });
  });

  it('end with their organization, and each is told of', async () => {
    const { organization: id, path: ended } = await newOrganization();
    for (const slug of ['org-a', 'org-b']) await suite.post(ended, { slug, name: slug }).expect(201);
    await suite.delete(`/organizations/${id}`).expect(202);
    await suite.get(ended).expect(404, { code: 'entity_not_found', entity_id: id });
    await suite.get(`${ended}/org-a`).expect(404);
    await suite.get(`${ended}/member`).expect(404);
    await suite.post(ended, { slug: 'org-c', name: 'x' }).expect(404);
    await suite.patch(`${ended}/org-a`, { name: 'x' }).expect(404);
    await suite.delete(`${ended}/org-a`).expect(404);
    let names: readonly string[] = [];
    await until(async () => (names = await announced(id)).filter((name) => name === 'organization_role.deleted').length === 2);
    expect(names.filter((name) => name.startsWith('organization_role'))).toEqual([
      'organization_role.created',
      'organization_role.created',
      'organization_role.deleted',
      'organization_role.deleted',
    ]);
  });

  it('are not where no organization is', async () => {
    await suite.get(NOWHERE).expect(404, { code: 'entity_not_found' });
    await suite.post(NOWHERE, { slug: 'org-x', name: 'x' }).expect(404);
    await suite.get(`${NOWHERE}/member`).expect(404);
    await suite.get('/authorization/organizations/nonsense/roles').expect(404);
  });

  it('of another environment are as if they never were', async () => {
    const other = await suite.otherEnvironment();
    await create('org-ours');
    await other.get(path).expect(404, { code: 'entity_not_found', entity_id: organization });
    await other.get(`${path}/org-ours`).expect(404);
    await other.post(path, { slug: 'org-theirs', name: 'x' }).expect(404);
    await other.delete(`${path}/org-ours`).expect(404);
  });

  it('are made once of those who ask for one slug at once', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => suite.post(path, { slug: 'org-race', name: 'x' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  it('are made once by a request that is sent again', async () => {
    const send = () => suite.post(path, { name: 'Sent again' }, { 'Idempotency-Key': 'role-again' }).expect(201);
    expect(await send()).toEqual(await send());
  });
});
