import { SMALL_LIMITS } from '#libs/testing/src/small-limits';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const ID = /^authz_resource_[0-9A-HJKMNP-TV-Z]{26}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const UNKNOWN = 'authz_resource_01HZZZZZZZZZZZZZZZZZZZZZZZ';

describe('resources', () => {
  let suite: GivenSuite;
  let acme: string;

  beforeAll(async () => {
    suite = await givenSuite({ variables: SMALL_LIMITS });
    await addTypes(suite);
    acme = await organization();
  });

  const organization = async (name = 'Acme'): Promise<string> => (await suite.post('/organizations', { name }).expect(201)).id;
  const rootOf = (organizationId: string) => `authz_resource_${organizationId.slice(-26)}`;
  const send = (fields: object) => suite.post('/authorization/resources', { organization_id: acme, resource_type_slug: 'workspace', name: 'Name', ...fields });
  let count = 0;
  const create = (fields: object = {}) => send({ external_id: `external-${++count}`, ...fields }).expect(201);
  const named = (externalId: string, type = 'workspace', organizationId = acme) =>
    `/authorization/organizations/${organizationId}/resources/${type}/${encodeURIComponent(externalId)}`;
  const idsOf = ({ data }: { data: readonly { id: string }[] }) => data.map(({ id }) => id);
  const list = async (query: string): Promise<readonly string[]> => idsOf(await suite.get(`/authorization/resources?limit=100&order=asc&${query}`).expect(200));

  describe('are created', () => {
    it('under their organization', async () => {
      const resource = await create({ external_id: 'plain' });
      expect(resource).toEqual({
        object: 'authorization_resource',
        id: expect.stringMatching(ID),
        external_id: 'plain',
        resource_type_slug: 'workspace',
        organization_id: acme,
        parent_resource_id: rootOf(acme),
        name: 'Name',
        description: null,
        created_at: expect.stringMatching(TIME),
        updated_at: resource.created_at,
      });
      await suite.get(`/authorization/resources/${resource.id}`).expect(200, resource);
      await suite.get(named('plain')).expect(200, resource);
    });

    it('under another one, named by either of its ids', async () => {
      const { id, external_id } = await create();
      const project = { resource_type_slug: 'project' };
      await create({ ...project, parent_resource_id: id, description: 'More' }).then((one) =>
        expect(one).toMatchObject({ parent_resource_id: id, description: 'More' }),
      );
      const byName = await create({ ...project, parent_resource_external_id: external_id, parent_resource_type_slug: 'workspace' });
      expect(byName.parent_resource_id).toBe(id);
      const unset = await create({ ...project, parent_resource_id: id, parent_resource_external_id: null, parent_resource_type_slug: null });
      expect(unset.parent_resource_id).toBe(id);
      const atTop = await create({ ...project, parent_resource_external_id: acme, parent_resource_type_slug: 'organization' });
      expect(atTop.parent_resource_id).toBe(rootOf(acme));
    });

    it('and nobody else is told', async () => {
      const { id } = await create();
      const [record] = (await suite.records('resource.created')).filter(({ data }) => (data as { id: string }).id === id);
      expect(record).toMatchObject({ public: [], subject: null, meta: { organization: acme } });
    });

    it('with an external id that no other of the same type has in the organization', async () => {
      await create({ external_id: 'same' });
      await send({ external_id: 'same' }).expect(409, { code: 'authorization_resource_external_id_conflict' });
      await create({ external_id: 'same', resource_type_slug: 'project' });
      await create({ external_id: 'same', organization_id: await organization() });
    });

    it('with an external id that one of several gets who ask at once', async () => {
      const answers = await Promise.all([1, 2, 3, 4, 5].map(() => send({ external_id: 'raced' })));
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409]);
    });

    it('once for an idempotency key', async () => {
      const body = { organization_id: acme, resource_type_slug: 'workspace', external_id: 'keyed', name: 'Name' };
      const headers = { 'Idempotency-Key': 'resource-1' };
      const [one, other] = await Promise.all([1, 2].map(() => suite.post('/authorization/resources', body, headers)));
      expect([one!.status, other!.status]).toEqual([201, 201]);
      expect(other!.body).toEqual(one!.body);
      expect(await list(`organization_id=${acme}&resource_external_id=keyed`)).toHaveLength(1);
    });

    it('with a position from which a reader sees it', async () => {
      const { headers, body } = await send({ external_id: 'positioned' });
      const position = headers['gatehouse-position']!;
      await suite.get(`/authorization/resources/${body.id}`, { 'Gatehouse-Position': position }).expect(200);
    });

    it.each([
      ['no external id', { external_id: undefined }, 422, 'invalid_request_parameters'],
      ['an empty external id', { external_id: '' }, 422, 'invalid_request_parameters'],
      ['an external id of 129 characters', { external_id: 'x'.repeat(129) }, 422, 'invalid_request_parameters'],
      ['an external id beyond ASCII', { external_id: 'ü' }, 422, 'invalid_request_parameters'],
      ['no name', { name: undefined }, 422, 'invalid_request_parameters'],
      ['a name of 49 characters', { name: 'n'.repeat(49) }, 422, 'invalid_request_parameters'],
      ['a description of 151 characters', { description: 'd'.repeat(151) }, 422, 'invalid_request_parameters'],
      ['no type', { resource_type_slug: undefined }, 422, 'invalid_request_parameters'],
      ['no organization', { organization_id: undefined }, 422, 'invalid_request_parameters'],
      [
        'both forms of a parent',
        { parent_resource_id: UNKNOWN, parent_resource_external_id: 'x', parent_resource_type_slug: 'w' },
        422,
        'invalid_request_parameters',
      ],
      ['a parent with an external id alone', { parent_resource_external_id: 'x' }, 422, 'invalid_request_parameters'],
      ['a parent with a type alone', { parent_resource_type_slug: 'workspace' }, 422, 'invalid_request_parameters'],
      ['an unknown organization', { organization_id: 'org_01HZZZZZZZZZZZZZZZZZZZZZZZ' }, 404, 'entity_not_found'],
      ['an unknown type', { resource_type_slug: 'nothing' }, 404, 'entity_not_found'],
      ['an unknown parent', { parent_resource_id: UNKNOWN }, 404, 'entity_not_found'],
      ['an unknown parent by name', { parent_resource_external_id: 'x', parent_resource_type_slug: 'workspace' }, 404, 'entity_not_found'],
      ['a parent of an unknown type', { parent_resource_external_id: 'x', parent_resource_type_slug: 'nothing' }, 404, 'entity_not_found'],
      ['the type organization', { resource_type_slug: 'organization' }, 400, 'bad_request'],
      ['no parent where the organization is none', { resource_type_slug: 'task' }, 400, 'bad_request'],
    ])('not with %s', async (_, fields, status, code) => {
      await send({ external_id: 'refused', ...fields }).expect(status, { code });
      await suite.get(named('refused')).expect(404);
    });

    it('not in what is named nearly as an organization', async () => {
      for (const organization_id of [`other_${acme.slice(-26)}`, acme.slice(-26), `${acme} `, `-${acme}`]) {
        await send({ external_id: 'nearly', organization_id }).expect(404, { code: 'entity_not_found', entity_id: organization_id });
        await suite.get(named('nearly', 'workspace', encodeURIComponent(organization_id))).expect(404);
        expect(await list(`organization_id=${encodeURIComponent(organization_id)}`)).toEqual([]);
      }
    });

    it('not under a resource of another organization', async () => {
      const other = await create({ organization_id: await organization() });
      const refused = { code: 'entity_not_found', entity_id: other.id };
      await send({ external_id: 'foreign', resource_type_slug: 'project', parent_resource_id: other.id }).expect(404, refused);
      await send({ external_id: 'foreign', parent_resource_id: rootOf(other.organization_id) }).expect(404);
      const byName = { parent_resource_external_id: other.organization_id, parent_resource_type_slug: 'organization' };
      await send({ external_id: 'foreign', ...byName }).expect(404);
      await suite.get(named('foreign')).expect(404);
    });

    it('not under a resource of another environment, nor in its organizations', async () => {
      const stranger = await suite.otherEnvironment('stranger');
      await addTypes(stranger);
      const body = { organization_id: acme, resource_type_slug: 'workspace', external_id: 'mine', name: 'Mine' };
      await stranger.post('/authorization/resources', body).expect(404, { code: 'entity_not_found', entity_id: acme });
      const theirs = (await stranger.post('/organizations', { name: 'Theirs' }).expect(201)).id;
      const { id } = await create();
      const project = { ...body, organization_id: theirs, resource_type_slug: 'project', parent_resource_id: id };
      await stranger.post('/authorization/resources', project).expect(404, { code: 'entity_not_found', entity_id: id });
      await stranger.get(`/authorization/resources/${id}`).expect(404);
      await stranger.patch(`/authorization/resources/${id}`, { name: 'x' }).expect(404);
      await stranger.delete(`/authorization/resources/${id}?cascade_delete=true`).expect(404);
      expect(idsOf(await stranger.get(`/authorization/resources?organization_id=${acme}`).expect(200))).toEqual([]);
      await suite.get(`/authorization/resources/${id}`).expect(200);
    });

    it('beyond the number that an organization should have, with a warning', async () => {
      const organization_id = await organization('Crowded');
      for (let number = 0; number < 20; number++) {
        const { headers } = await send({ organization_id, external_id: `crowd-${number}` });
        expect(headers['gatehouse-warning']).toBeUndefined();
      }
      const { status, headers } = await send({ organization_id, external_id: 'crowd-20' });
      expect(status).toBe(201);
      expect(headers['gatehouse-warning']).toMatch(/^authorization_resource_limit_exceeded; 21 /);
      expect((await send({ organization_id, external_id: 'crowd-21', resource_type_slug: 'project' })).headers['gatehouse-warning']).toBeUndefined();
    });
  });

  describe('have an external id', () => {
    it.each(['a/b', 'a b', 'a%2Fb', 'a.b', '..', '?#&', '+', 'role_assignments', 'organization_memberships', 'x'.repeat(128)])(
      '%s, by which they are found, changed and deleted',
      async (external_id) => {
        // A path of dots alone is resolved by whoever sends it.
        const path = external_id === '..' ? null : named(external_id);
        const { id } = await create({ external_id });
        expect(await list(`organization_id=${acme}&resource_external_id=${encodeURIComponent(external_id)}`)).toEqual([id]);
        if (path === null) return;
        await suite.get(path).expect(200, { id, external_id });
        await suite.patch(path, { name: 'Other' }).expect(200, { id, name: 'Other' });
        expect(await suite.delete(path)).toMatchObject({ status: 204, text: '' });
        await suite.get(path).expect(404, { code: 'entity_not_found', entity_id: external_id });
      },
    );

    it('by which they are found although its slashes were sent as they are', async () => {
      const { id } = await create({ external_id: 'eu/team//1' });
      await suite.get(`/authorization/organizations/${acme}/resources/workspace/eu/team//1`).expect(200, { id });
    });

    it('that says nothing of another type, organization, or what is unknown', async () => {
      await create({ external_id: 'here' });
      await suite.get(named('here', 'project')).expect(404);
      await suite.get(named('here', 'nothing')).expect(404, { entity_id: 'nothing' });
      await suite.get(named('here', 'workspace', await organization())).expect(404);
      await suite.get(named('here', 'workspace', 'org_01HZZZZZZZZZZZZZZZZZZZZZZZ')).expect(404, { entity_id: 'org_01HZZZZZZZZZZZZZZZZZZZZZZZ' });
    });
  });

  describe('of an organization itself', () => {
    it('are there with it, under its id', async () => {
      const id = await organization('Initech');
      const resource = await suite.get(named(id, 'organization', id)).expect(200);
      expect(resource).toMatchObject({
        object: 'authorization_resource',
        id: rootOf(id),
        external_id: id,
        resource_type_slug: 'organization',
        organization_id: id,
        parent_resource_id: null,
        name: 'Initech',
        description: null,
      });
      await suite.get(`/authorization/resources/${rootOf(id)}`).expect(200, resource);
      await suite.get(named('other', 'organization', id)).expect(404);
      expect(await list(`organization_id=${id}`)).toEqual([rootOf(id)]);
      expect(await list(`resource_type_slug=organization&resource_external_id=${id}`)).toEqual([rootOf(id)]);
    });

    it('are called as it is', async () => {
      const id = await organization('Before');
      const name = 'After '.repeat(20).trim();
      await suite.put(`/organizations/${id}`, { name }).expect(200);
      await suite.eventually(`/authorization/resources/${rootOf(id)}`, { name });
    });

    it('are neither edited, moved nor deleted', async () => {
      const { id } = await create();
      for (const path of [`/authorization/resources/${rootOf(acme)}`, named(acme, 'organization')]) {
        await suite.patch(path, { name: 'x' }).expect(400, { code: 'bad_request' });
        await suite.patch(path, {}).expect(400, { code: 'bad_request' });
        await suite.patch(path, { parent_resource_id: id }).expect(400, { code: 'bad_request' });
        await suite.delete(`${path}?cascade_delete=true`).expect(400, { code: 'bad_request' });
      }
    });
  });

  describe('are updated', () => {
    it('in what is given, and keep the rest', async () => {
      const before = await create({ description: 'Kept' });
      const after = await suite.patch(`/authorization/resources/${before.id}`, { name: 'Renamed' }).expect(200);
      expect(after).toEqual({ ...before, name: 'Renamed', updated_at: expect.stringMatching(TIME) });
      await suite.get(`/authorization/resources/${before.id}`).expect(200, after);
      await suite.patch(`/authorization/resources/${before.id}`, { description: null }).expect(200, { name: 'Renamed', description: null });
    });

    it('without an event where nothing changes', async () => {
      const { id, name, updated_at } = await create();
      const before = await suite.head();
      await suite.patch(`/authorization/resources/${id}`, { name, description: null, parent_resource_id: rootOf(acme) }).expect(200, { updated_at });
      await suite.patch(`/authorization/resources/${id}`, {}).expect(200, { updated_at });
      await suite.patch(`/authorization/resources/${id}`, { name: null, parent_resource_id: null }).expect(200, { name, updated_at });
      expect(await suite.recordsAfter(before, id)).toEqual([]);
    });

    it.each([
      ['an empty name', { name: '' }, 422],
      ['a name of 49 characters', { name: 'n'.repeat(49) }, 422],
      ['both forms of a parent', { parent_resource_id: UNKNOWN, parent_resource_external_id: 'x' }, 422],
      ['half a parent', { parent_resource_external_id: 'x' }, 422],
      ['an unknown parent', { parent_resource_id: UNKNOWN }, 404],
    ])('not with %s', async (_, fields, status) => {
      const { id, updated_at } = await create();
      await suite.patch(`/authorization/resources/${id}`, { description: 'Not half', ...fields }).expect(status);
      await suite.get(`/authorization/resources/${id}`).expect(200, { description: null, updated_at });
    });

    it('not where they never were', async () => {
      await suite.patch(`/authorization/resources/${UNKNOWN}`, { name: 'x' }).expect(404, { code: 'entity_not_found', entity_id: UNKNOWN });
      await suite.patch(named('never'), { name: 'x' }).expect(404);
      await suite.patch('/authorization/resources/nonsense', { name: 'x' }).expect(404);
    });
  });

  describe('are moved', () => {
    it('with all that hangs under them', async () => {
      const [from, to] = [await create(), await create()];
      const project = await create({ resource_type_slug: 'project', parent_resource_id: from.id });
      const task = await create({ resource_type_slug: 'task', parent_resource_id: project.id });
      const moved = await suite.patch(`/authorization/resources/${project.id}`, { parent_resource_id: to.id, name: 'Moved' }).expect(200);
      expect(moved).toMatchObject({ parent_resource_id: to.id, name: 'Moved' });
      expect(await list(`organization_id=${acme}&parent_resource_id=${to.id}`)).toEqual([project.id]);
      expect(await list(`organization_id=${acme}&parent_resource_id=${from.id}`)).toEqual([]);
      await suite.delete(`/authorization/resources/${from.id}`).expect(204);
      await suite.get(`/authorization/resources/${task.id}`).expect(200, { parent_resource_id: project.id });
      const parent = { parent_resource_external_id: acme, parent_resource_type_slug: 'organization' };
      await suite.patch(named(project.external_id, 'project'), parent).expect(200, { parent_resource_id: rootOf(acme) });
    });

    it('not under themselves, nor under what cannot be above them', async () => {
      const workspace = await create();
      const project = await create({ resource_type_slug: 'project', parent_resource_id: workspace.id });
      const task = await create({ resource_type_slug: 'task', parent_resource_id: project.id });
      const refused = (id: string, parent: string) =>
        suite.patch(`/authorization/resources/${id}`, { parent_resource_id: parent }).expect(400, { code: 'bad_request' });
      await refused(project.id, project.id);
      await refused(project.id, task.id);
      await refused(workspace.id, project.id);
      await refused(task.id, workspace.id);
      await refused(task.id, rootOf(acme));
    });

    it('not into another organization', async () => {
      const project = await create({ resource_type_slug: 'project' });
      const other = await create({ organization_id: await organization() });
      await suite.patch(`/authorization/resources/${project.id}`, { parent_resource_id: other.id }).expect(400, { code: 'bad_request' });
      const byName = { parent_resource_external_id: other.organization_id, parent_resource_type_slug: 'organization' };
      await suite.patch(`/authorization/resources/${project.id}`, byName).expect(404);
    });

    it('to one place, by two who move each under the other', async () => {
      const organization_id = await organization('Races');
      const [one, other] = [await create({ organization_id }), await create({ organization_id })];
      const [left, right] = [
        await create({ organization_id, resource_type_slug: 'project', parent_resource_id: one.id }),
        await create({ organization_id, resource_type_slug: 'project', parent_resource_id: other.id }),
      ];
      const moves = await Promise.all([
        suite.patch(`/authorization/resources/${left.id}`, { parent_resource_id: other.id }),
        suite.delete(`/authorization/resources/${other.id}?cascade_delete=true`),
        suite.patch(`/authorization/resources/${right.id}`, { parent_resource_id: one.id }),
      ]);
      expect(moves[1].status).toBe(204);
      const live = await list(`organization_id=${organization_id}`);
      for (const id of live) await suite.get(`/authorization/resources/${id}`).expect(200);
      expect(live).not.toContain(other.id);
    });
  });

  describe('are deleted', () => {
    it('where nothing hangs under them', async () => {
      const { id, external_id } = await create();
      expect(await suite.delete(`/authorization/resources/${id}`)).toMatchObject({ status: 204, text: '' });
      await suite.get(`/authorization/resources/${id}`).expect(404, { code: 'entity_not_found', entity_id: id });
      await suite.get(named(external_id)).expect(404);
      await suite.patch(`/authorization/resources/${id}`, { name: 'x' }).expect(404);
      await suite.delete(`/authorization/resources/${id}`).expect(404);
      await create({ external_id });
    });

    it('not while resources hang under them', async () => {
      const { id } = await create();
      const child = await create({ resource_type_slug: 'project', parent_resource_id: id });
      await suite.delete(`/authorization/resources/${id}`).expect(409, { code: 'resource_has_dependents' });
      await suite.delete(`/authorization/resources/${id}?cascade_delete=false`).expect(409);
      await suite.delete(`/authorization/resources/${id}?cascade_delete=perhaps`).expect(422);
      await suite.delete(`/authorization/resources/${child.id}`).expect(204);
      await suite.delete(`/authorization/resources/${id}`).expect(204);
    });

    it('with all that hangs under them, at once', async () => {
      const organization_id = await organization('Cascades');
      const { id } = await create({ organization_id, external_id: 'top' });
      const projects = await Promise.all([1, 2, 3].map(() => create({ organization_id, resource_type_slug: 'project', parent_resource_id: id })));
      const task = await create({ organization_id, resource_type_slug: 'task', parent_resource_id: projects[0]!.id, external_id: 'deep' });
      const kept = await create({ organization_id });
      await suite.delete(`/authorization/resources/${id}?cascade_delete=true`).expect(204);
      for (const gone of [id, task.id, ...projects.map((project) => project.id)]) await suite.get(`/authorization/resources/${gone}`).expect(404);
      await suite.get(named('deep', 'task', organization_id)).expect(404);
      expect(await list(`organization_id=${organization_id}`)).toEqual([rootOf(organization_id), kept.id]);
      expect(await list(`organization_id=${organization_id}&resource_type_slug=task`)).toEqual([]);
      expect(await list(`resource_type_slug=task&resource_external_id=deep`)).toEqual([]);
      expect(await list(`organization_id=${organization_id}&parent_resource_id=${id}`)).toEqual([]);
      await send({ organization_id, external_id: 'late', resource_type_slug: 'project', parent_resource_id: id }).expect(404);
      const again = await create({
        organization_id,
        external_id: 'deep',
        resource_type_slug: 'task',
        parent_resource_id: (await create({ organization_id, resource_type_slug: 'project' })).id,
      });
      await suite.get(named('deep', 'task', organization_id)).expect(200, { id: again.id });
    });

    it('and each that went with them is told of afterwards', async () => {
      const { id } = await create();
      const project = await create({ resource_type_slug: 'project', parent_resource_id: id });
      const tasks = await Promise.all([1, 2, 3].map(() => create({ resource_type_slug: 'task', parent_resource_id: project.id })));
      await suite.delete(`/authorization/resources/${id}?cascade_delete=true`).expect(204);
      const ids = [id, project.id, ...tasks.map((task) => task.id)];
      await toldOf(ids);
    });

    it('with their organization', async () => {
      const organization_id = await organization('Ends');
      const { id } = await create({ organization_id });
      const project = await create({ organization_id, resource_type_slug: 'project', parent_resource_id: id, external_id: 'ends' });
      await suite.delete(`/organizations/${organization_id}`).expect(202);
      for (const gone of [id, project.id, rootOf(organization_id)]) await suite.get(`/authorization/resources/${gone}`).expect(404);
      await suite.get(named('ends', 'project', organization_id)).expect(404, { entity_id: organization_id });
      expect(await list(`organization_id=${organization_id}`)).toEqual([]);
      expect(await list(`resource_type_slug=project&resource_external_id=ends`)).toEqual([]);
      await suite.patch(`/authorization/resources/${id}`, { name: 'x' }).expect(404);
      await suite.delete(`/authorization/resources/${id}`).expect(404);
      await send({ organization_id, external_id: 'late' }).expect(404);
      await toldOf([id, project.id]);
    });

    const toldOf = (ids: readonly string[]) =>
      eventually(async () => {
        const told = (await suite.records('resource.deleted')).map(({ data }) => (data as { id: string }).id).filter((id) => ids.includes(id));
        expect([...told].sort()).toEqual([...ids].sort());
      });
  });

  describe('are listed', () => {
    let [organization_id, other] = ['', ''];
    let workspaces: string[] = [];
    let projects: string[] = [];
    beforeAll(async () => {
      organization_id = await organization('Lists');
      other = await organization('Others');
      workspaces = [];
      for (const external_id of ['w1', 'w2']) workspaces.push((await create({ organization_id, external_id })).id);
      projects = [];
      for (const [index, parent_resource_id] of [workspaces[0], workspaces[0], workspaces[1]].entries())
        projects.push((await create({ organization_id, resource_type_slug: 'project', external_id: `p${index}`, parent_resource_id })).id);
      await create({ organization_id: other, external_id: 'w1' });
    });

    it.each([
      ['organization_id={o}', ['r', 'w0', 'w1', 'p0', 'p1', 'p2']],
      ['organization_id={o}&resource_type_slug=project', ['p0', 'p1', 'p2']],
      ['organization_id={o}&resource_external_id=p1', ['p1']],
      ['organization_id={o}&resource_type_slug=project&resource_external_id=p1', ['p1']],
      ['organization_id={o}&resource_type_slug=workspace&resource_external_id=p1', []],
      ['organization_id={o}&parent_resource_id={w0}', ['p0', 'p1']],
      ['organization_id={o}&parent_resource_id={r}', ['w0', 'w1']],
      ['organization_id={x}&parent_resource_id={w0}', []],
      ['resource_type_slug=project&parent_resource_id={w0}', ['p0', 'p1']],
      ['resource_type_slug=workspace&parent_resource_id={w0}', []],
      ['organization_id={o}&resource_type_slug=project&parent_resource_id={w0}&resource_external_id=p1', ['p1']],
      ['organization_id={o}&parent_resource_id={w0}&resource_external_id=p2', []],
      ['organization_id={o}&parent_resource_type_slug=workspace&parent_external_id=w2', ['p2']],
      ['organization_id={o}&parent_resource_type_slug=workspace&parent_resource_external_id=w2', ['p2']],
      ['organization_id={o}&parent_resource_type_slug=organization&parent_external_id={o}', ['w0', 'w1']],
      ['organization_id={o}&parent_resource_type_slug=organization&parent_external_id={x}', []],
      ['organization_id={o}&parent_resource_type_slug=nothing&parent_external_id=w2', []],
      ['organization_id={o}&resource_type_slug=nothing', []],
      ['organization_id=org_01HZZZZZZZZZZZZZZZZZZZZZZZ', []],
      [`organization_id={o}&parent_resource_id=${UNKNOWN}`, []],
      ['resource_type_slug=project&resource_external_id=p1', ['p1']],
      ['resource_type_slug=organization&resource_external_id={o}', ['r']],
    ])('by %s', async (query, expected) => {
      const ids: Record<string, string> = { o: organization_id, x: other, r: rootOf(organization_id) };
      for (const [index, id] of workspaces.entries()) ids[`w${index}`] = id;
      for (const [index, id] of projects.entries()) ids[`p${index}`] = id;
      expect(await list(query.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name]!))).toEqual(expected.map((name) => ids[name]));
    });

    it('by type, whatever their organization', async () => {
      const ids = await list('resource_type_slug=workspace&resource_external_id=w1');
      expect(ids).toHaveLength(2);
      expect(ids).toContain(workspaces[0]);
    });

    it.each([
      ['neither organization nor type', '', 400, 'missing_organization_id_or_resource_type_slug'],
      ['a parent alone', 'parent_resource_id={w}', 400, 'missing_organization_id_or_resource_type_slug'],
      ['both forms of a parent', 'organization_id={o}&parent_resource_id={w}&parent_external_id=w1', 422, 'invalid_request_parameters'],
      ['both forms of a parent in part', 'organization_id={o}&parent_resource_id={w}&parent_resource_type_slug=workspace', 422, 'invalid_request_parameters'],
      [
        'both spellings',
        'organization_id={o}&parent_resource_type_slug=w&parent_external_id=w1&parent_resource_external_id=w1',
        422,
        'invalid_request_parameters',
      ],
      ['half a parent', 'organization_id={o}&parent_external_id=w1', 422, 'invalid_request_parameters'],
      ['the other half', 'organization_id={o}&parent_resource_type_slug=workspace', 422, 'invalid_request_parameters'],
      [
        'a parent by name without its organization',
        'resource_type_slug=project&parent_resource_type_slug=w&parent_external_id=w1',
        422,
        'invalid_request_parameters',
      ],
      ['a cursor of another kind', 'organization_id={o}&after=org_01HZZZZZZZZZZZZZZZZZZZZZZZ', 422, 'invalid_request_parameters'],
      ['a cursor that never was', `organization_id={o}&after=${UNKNOWN}`, 422, 'invalid_request_parameters'],
    ])('not by %s', async (_, query, status, code) => {
      await suite.get(`/authorization/resources?${query.replace('{o}', organization_id).replace('{w}', workspaces[0]!)}`).expect(status, { code });
    });

    it('in pages that are full although some are dead by now', async () => {
      const organization_id = await organization('Pages');
      const trees = [];
      for (let number = 0; number < 4; number++) trees.push(await create({ organization_id }));
      const ids: string[] = [];
      // Living and dying ones in turn.
      for (let number = 0; number < 24; number++)
        ids.push((await create({ organization_id, resource_type_slug: 'project', parent_resource_id: trees[number % 4]!.id })).id);
      await suite.delete(`/authorization/resources/${trees[1]!.id}?cascade_delete=true`).expect(204);
      await suite.delete(`/authorization/resources/${trees[2]!.id}?cascade_delete=true`).expect(204);
      const live = ids.filter((_, index) => index % 4 === 0 || index % 4 === 3).reverse();
      const seen: string[] = [];
      for (let after: string | null = ''; after !== null;) {
        const page: { data: { id: string }[]; list_metadata: { after: string | null } } = await suite
          .get(`/authorization/resources?organization_id=${organization_id}&resource_type_slug=project&limit=5${after === '' ? '' : `&after=${after}`}`)
          .expect(200);
        seen.push(...idsOf(page));
        expect(page.data).toHaveLength(Math.min(5, live.length - seen.length + page.data.length));
        after = page.list_metadata.after;
      }
      expect(seen).toEqual(live);
    });
  });
});

async function addTypes(caller: Pick<GivenSuite, 'post'>): Promise<void> {
  const add = (slug: string, ...parent_type_slugs: readonly string[]) =>
    caller.post('/admin/resource_types', { slug, name: slug, parent_type_slugs }).expect(201);
  await add('workspace', 'organization');
  await add('project', 'organization', 'workspace');
  await add('task', 'project');
}
