import { SMALL_LIMITS } from '#libs/testing/src/small-limits';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

const ID = /^group_[0-9A-HJKMNP-TV-Z]{26}$/;
const NEVER = 'group_01J0000000000000000000000A';
const NOBODY = 'om_01J0000000000000000000000A';
const MEMBERSHIPS = '/user_management/organization_memberships';

describe('groups', () => {
  let suite: GivenSuite;
  let users = 0;
  beforeAll(async () => void (suite = await givenSuite({ variables: SMALL_LIMITS })));

  const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const user = async (): Promise<string> => (await suite.post('/user_management/users', { email: `ada${users++}@acme.test` }).expect(201)).id;
  const join = async (organization_id: string) => suite.post(MEMBERSHIPS, { organization_id, user_id: await user() }).expect(201);
  const pathOf = (organizationId: string, id?: string): string => `/organizations/${organizationId}/groups${id === undefined ? '' : `/${id}`}`;
  const membersOf = (group: { organization_id: string; id: string }): string => `${pathOf(group.organization_id, group.id)}/organization-memberships`;
  const create = async (organizationId: string, fields: object = {}) => suite.post(pathOf(organizationId), { name: 'Engineering', ...fields }).expect(201);
  const add = (group: { organization_id: string; id: string }, id: string) => suite.post(membersOf(group), { organization_membership_id: id });
  const idsOf = ({ data }: { data: readonly { id: string }[] }) => data.map(({ id }) => id);
  const publicOf = async (id: string) =>
    (await suite.records()).filter(({ stream }) => stream.endsWith(id)).flatMap((record) => record.public.map(({ name }) => [name, record.subject] as const));

  it('are created, and shown', async () => {
    const acme = await organization();
    const group = await create(acme);
    expect(group).toEqual({
      object: 'group',
      id: expect.stringMatching(ID),
      organization_id: acme,
      name: 'Engineering',
      description: null,
      created_at: expect.any(String),
      updated_at: group.created_at,
    });
    await suite.get(pathOf(acme, group.id)).expect(200, group);
    expect(await create(acme, { description: 'All of them' })).toMatchObject({ description: 'All of them' });
    expect(await publicOf(group.id)).toEqual([['group.created', group]]);
  });

  it.each([
    ['no name', {}],
    ['an empty name', { name: '' }],
    ['a name of 257 characters', { name: 'n'.repeat(257) }],
    ['null for a name', { name: null }],
    ['a description of 151 characters', { name: 'n', description: 'd'.repeat(151) }],
  ])('are not created with %s', async (_, body) => {
    await suite.post(pathOf(await organization()), body).expect(422, { code: 'invalid_request_parameters' });
  });

  it('are listed page by page, those of one organization', async () => {
    const [acme, other] = [await organization(), await organization()];
    const [first, second, third] = [await create(acme), await create(acme), await create(acme)];
    await create(other);
    expect(await suite.get(`${pathOf(acme)}?limit=2`).expect(200)).toEqual({
      object: 'list',
      data: [third, second],
      list_metadata: { before: null, after: second.id },
    });
    expect(await suite.get(`${pathOf(acme)}?limit=2&after=${second.id}`).expect(200)).toMatchObject({ data: [first], list_metadata: { after: null } });
    await suite.get(`${pathOf(acme)}?after=${NEVER}`).expect(422, { code: 'invalid_request_parameters', errors: [{ field: 'after', code: 'invalid_cursor' }] });
  });

  it('are found by the beginnings of the words of their names, in one organization', async () => {
    const [acme, other] = [await organization(), await organization()];
    const named = new Map<string, string>();
    for (const name of ['Platform Engineering', 'Engineering Managers', 'Straße']) named.set((await create(acme, { name })).id, name);
    await create(other, { name: 'Engineering' });
    const found = async (query: string) => idsOf(await suite.get(`${pathOf(acme)}?order=asc&search=${query}`).expect(200)).map((id) => named.get(id));
    expect(await found('eng')).toEqual(['Platform Engineering', 'Engineering Managers']);
    expect(await found('ENG%20pla')).toEqual(['Platform Engineering']);
    expect(await found('man+e')).toEqual(['Engineering Managers']);
    expect(await found('strass')).toEqual(['Straße']);
    expect(await found('ineering')).toEqual([]);
    expect(await found('%20')).toHaveLength(3);
    const [first] = named.keys();
    await suite.patch(pathOf(acme, first), { name: 'Product' }).expect(200);
    expect(await found('platform')).toEqual([]);
    expect(await found('product')).toEqual(['Platform Engineering']);
    await suite.get(`${pathOf(acme)}?search=`).expect(422, { errors: [{ field: 'search', code: 'too_short' }] });
  });

  it('are not listed where an organization is asked for by the external id `groups`', async () => {
    const { id } = await suite.post('/organizations', { name: 'Acme', external_id: 'groups' }).expect(201);
    await suite.get('/organizations/external_id/groups').expect(200, { object: 'organization', id });
  });

  it('change what is given, and tell so once', async () => {
    const group = await create(await organization(), { description: 'All' });
    const path = pathOf(group.organization_id, group.id);
    const changed = await suite.patch(path, { name: 'Design' }).expect(200, { name: 'Design', description: 'All' });
    await suite.patch(path, { name: 'Design' }).expect(200, changed);
    await suite.patch(path, {}).expect(200, changed);
    await suite.patch(path, { name: '' }).expect(422);
    await suite.patch(path, { description: null }).expect(200, { description: null });
    expect((await publicOf(group.id)).map(([name]) => name)).toEqual(['group.created', 'group.updated', 'group.updated']);
  });

  describe('have members', () => {
    it('who are listed with their users and without roles, and by whom the groups are listed', async () => {
      const acme = await organization();
      const [group, other] = [await create(acme), await create(acme)];
      const memberships = [await join(acme), await join(acme), await join(acme)];
      for (const { id } of memberships) expect(await add(group, id).expect(200)).toEqual(group);
      await add(other, memberships[0].id).expect(200);
      const base = memberships.map(({ role: _, roles: __, ...membership }) => membership);
      expect(base[0].user).toMatchObject({ object: 'user', id: base[0].user_id });
      expect(await suite.get(`${membersOf(group)}?order=asc`).expect(200)).toMatchObject({ data: base });
      expect((await suite.get(`${membersOf(group)}?order=asc`)).body.data[0]).toEqual(base[0]);
      const first = await suite.get(`${membersOf(group)}?order=asc&limit=2`).expect(200);
      expect([idsOf(first), first.list_metadata]).toEqual([[memberships[0].id, memberships[1].id], { before: null, after: memberships[1].id }]);
      const second = await suite.get(`${membersOf(group)}?order=asc&limit=2&after=${memberships[1].id}`).expect(200);
      expect([idsOf(second), second.list_metadata]).toEqual([[memberships[2].id], { before: memberships[2].id, after: null }]);
      expect((await suite.get(`${MEMBERSHIPS}/${memberships[0].id}/groups?order=asc`).expect(200)).data).toEqual([group, other]);
      const groups = await suite.get(`${MEMBERSHIPS}/${memberships[0].id}/groups?order=asc&after=${group.id}`).expect(200);
      expect([groups.data, groups.list_metadata]).toEqual([[other], { before: other.id, after: null }]);
      expect((await suite.get(`${MEMBERSHIPS}/${memberships[1].id}/groups`).expect(200)).data).toEqual([group]);
      await suite.get(`${membersOf(group)}?after=${NOBODY}`).expect(422, { errors: [{ field: 'after', code: 'invalid_cursor' }] });
    });

    it('who are added and removed once, and told of once', async () => {
      const group = await create(await organization());
      const { id } = await join(group.organization_id);
      await add(group, id).expect(200, group);
      await add(group, id).expect(200, group);
      const answer = await suite.delete(`${membersOf(group)}/${id}`);
      expect([answer.status, answer.text]).toEqual([204, '']);
      await suite.delete(`${membersOf(group)}/${id}`).expect(404, { code: 'entity_not_found', entity_id: id });
      expect(idsOf(await suite.get(membersOf(group)).expect(200))).toEqual([]);
      expect(idsOf(await suite.get(`${MEMBERSHIPS}/${id}/groups`).expect(200))).toEqual([]);
      await add(group, id).expect(200, group);
      expect(idsOf(await suite.get(membersOf(group)).expect(200))).toEqual([id]);
      const pair = { group_id: group.id, organization_membership_id: id };
      expect((await publicOf(group.id)).slice(1)).toEqual([
        ['group.member_added', pair],
        ['group.member_removed', pair],
        ['group.member_added', pair],
      ]);
      await suite.eventually('/events?events=group.member_removed&order=desc&limit=1', { data: [{ data: pair }] });
    });

    it('who are added and removed together, all of them or none', async () => {
      const group = await create(await organization());
      const [ada, bob, eve, max] = await Promise.all([1, 2, 3, 4].map(async () => (await join(group.organization_id)).id as string));
      const patch = (body: object) => suite.patch(membersOf(group), body);
      await patch({ add: [ada, bob, bob], remove: null }).expect(200, group);
      await patch({ add: [bob, eve], remove: [ada, max] }).expect(200, group);
      await patch({ add: [bob, eve], remove: [ada, max] }).expect(200, group);
      expect(idsOf(await suite.get(`${membersOf(group)}?order=asc`).expect(200)).sort()).toEqual([bob, eve].sort());
      const pair = (organization_membership_id?: string) => ({ group_id: group.id, organization_membership_id });
      expect((await publicOf(group.id)).slice(1)).toEqual([
        ['group.member_added', pair(ada)],
        ['group.member_added', pair(bob)],
        ['group.member_removed', pair(ada)],
        ['group.member_added', pair(eve)],
      ]);
      const stranger = (await join(await organization())).id;
      for (const id of [stranger, NOBODY]) {
        await patch({ add: [ada, id] }).expect(404, { entity_id: id });
        await patch({ add: [ada], remove: [id] }).expect(404, { entity_id: id });
      }
      await patch({ add: [ada, max] }).expect(400, { code: 'group_membership_limit_exceeded' });
      await patch({ add: [ada], remove: [ada] }).expect(422, { errors: [{ code: 'not_together', field: 'remove.0' }] });
      const many = (count: number, of: string) => Array.from({ length: count }, (_, index) => `om_${of}${index}`);
      await patch({ add: many(101, 'a') }).expect(422, { errors: [{ code: 'too_many', field: 'add' }] });
      await patch({ add: many(60, 'a'), remove: many(41, 'b') }).expect(422, { errors: [{ code: 'too_many', field: 'remove' }] });
      expect(idsOf(await suite.get(membersOf(group)).expect(200)).sort()).toEqual([bob, eve].sort());
      await patch({ add: [ada, max], remove: [bob] }).expect(200);
      expect(idsOf(await suite.get(membersOf(group)).expect(200)).sort()).toEqual([ada, eve, max].sort());
    });

    it('as many as they may have, and no more, however many come at once', async () => {
      const group = await create(await organization());
      const memberships = [];
      for (let index = 0; index < 5; index++) memberships.push(await join(group.organization_id));
      const answers = await Promise.all(memberships.map(async ({ id }) => add(group, id)));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 400, 400]);
      expect(answers.find(({ status }) => status === 400)!.body).toMatchObject({ code: 'group_membership_limit_exceeded' });
      expect(idsOf(await suite.get(membersOf(group)).expect(200))).toHaveLength(3);
    });

    it('also while these are inactive', async () => {
      const group = await create(await organization());
      const { id } = await join(group.organization_id);
      await add(group, id).expect(200);
      await suite.put(`${MEMBERSHIPS}/${id}/deactivate`).expect(200);
      expect(await suite.get(membersOf(group)).expect(200)).toMatchObject({ data: [{ id, status: 'inactive' }] });
      expect(idsOf(await suite.get(`${MEMBERSHIPS}/${id}/groups`).expect(200))).toEqual([group.id]);
    });

    it('of their own organization only', async () => {
      const group = await create(await organization());
      const stranger = await join(await organization());
      await add(group, stranger.id).expect(404, { entity_id: stranger.id });
      await suite.delete(`${membersOf(group)}/${stranger.id}`).expect(404, { entity_id: stranger.id });
      await add(group, NOBODY).expect(404, { entity_id: NOBODY });
      await add(group, '').expect(404);
      await suite.post(membersOf(group), {}).expect(422, { code: 'invalid_request_parameters' });
    });

    it('until these are deleted: at once for every reader, then told of', async () => {
      const group = await create(await organization());
      const [ada, bob, eve] = [await join(group.organization_id), await join(group.organization_id), await join(group.organization_id)];
      for (const { id } of [ada, bob, eve]) await add(group, id).expect(200);
      await suite.delete(`${MEMBERSHIPS}/${ada.id}`).expect(200);
      expect(await suite.get(`${membersOf(group)}?order=asc&limit=2`).expect(200)).toMatchObject({
        data: [{ id: bob.id }, { id: eve.id }],
        list_metadata: { before: null, after: null },
      });
      await suite.delete(`/user_management/users/${bob.user_id}`).expect(200);
      expect(idsOf(await suite.get(membersOf(group)).expect(200))).toEqual([eve.id]);
      const gone = (id: string) => ({ data: { group_id: group.id, organization_membership_id: id } });
      await suite.eventually('/events?events=group.member_removed&order=desc&limit=2', { data: [gone(bob.id), gone(ada.id)] });
      expect(idsOf(await suite.get(membersOf(group)).expect(200))).toEqual([eve.id]);
    });
  });

  it('are deleted with all that is in them, in one event', async () => {
    const group = await create(await organization());
    const { id } = await join(group.organization_id);
    await add(group, id).expect(200);
    await suite.delete(pathOf(group.organization_id, group.id)).expect(204);
    await suite.get(pathOf(group.organization_id, group.id)).expect(404);
    await suite.delete(pathOf(group.organization_id, group.id)).expect(404);
    await suite.get(membersOf(group)).expect(404);
    await add(group, id).expect(404);
    expect(idsOf(await suite.get(`${MEMBERSHIPS}/${id}/groups`).expect(200))).toEqual([]);
    expect((await publicOf(group.id)).map(([name]) => name)).toEqual(['group.created', 'group.member_added', 'group.deleted']);
  });

  it('end with their organization: at once for every reader, then told of after it, and nothing of their members', async () => {
    const acme = await organization();
    const [group, other] = [await create(acme), await create(acme)];
    const { id } = await join(acme);
    await add(group, id).expect(200);
    await suite.delete(`/organizations/${acme}`).expect(202);
    await suite.get(pathOf(acme, group.id)).expect(404, { entity_id: acme });
    await suite.get(pathOf(acme)).expect(404, { entity_id: acme });
    await suite.post(pathOf(acme), { name: 'Late' }).expect(404, { entity_id: acme });
    await suite.get(`${MEMBERSHIPS}/${id}/groups`).expect(404);
    await suite.eventually('/events?events=group.deleted,organization_membership.deleted&order=desc&limit=3', {
      data: [{}, {}, {}].map(() => ({ data: { organization_id: acme } })),
    });
    const told = (await suite.records()).filter(({ meta }) => meta.organization === acme).flatMap((record) => record.public.map(({ name }) => name));
    expect(told.slice(told.indexOf('organization.deleted')).sort()).toEqual([
      'group.deleted',
      'group.deleted',
      'organization.deleted',
      'organization_membership.deleted',
    ]);
    expect(other.organization_id).toBe(acme);
  });

  it('are not there for another organization, or another environment', async () => {
    const group = await create(await organization());
    const other = await organization();
    const stranger = await suite.otherEnvironment('strangers');
    for (const [caller, path, entity_id] of [
      [suite, pathOf(other, group.id), group.id],
      [suite, pathOf(group.organization_id, NEVER), NEVER],
      [stranger, pathOf(group.organization_id, group.id), group.organization_id],
    ] as const) {
      await caller.get(path).expect(404, { code: 'entity_not_found', entity_id });
      await caller.patch(path, { name: 'Ours' }).expect(404, { entity_id });
      await caller.delete(path).expect(404, { entity_id });
      await caller.get(`${path}/organization-memberships`).expect(404, { entity_id });
      await caller.post(`${path}/organization-memberships`, { organization_membership_id: NOBODY }).expect(404, { entity_id });
    }
    await suite.get(pathOf(group.organization_id, group.id)).expect(200, group);
  });
});
