import { GivenOrganization } from '#libs/testing/src/given-organization';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

const UNKNOWN = {
  group: 'group_01J00000000000000000000000',
  resource: 'authz_resource_01J00000000000000000000000',
  assignment: 'gra_01J00000000000000000000000',
};

let suite: GivenSuite;
let acme: GivenOrganization;
let group: string;
let project: string;
beforeAll(async () => {
  suite = await givenSuite();
  await GivenOrganization.createModel(suite);
  acme = await GivenOrganization.create(suite);
  group = await acme.group();
  project = await acme.project('project-7');
});

const assignments = (of: string) => `/authorization/groups/${of}/role_assignments`;

interface Shown {
  readonly id: string;
  readonly role: { readonly slug: string };
  readonly resource: { readonly id: string };
}

const ids = (shown: readonly Shown[]) => shown.map(({ id }) => id);

async function listed(of: string, limit = 100): Promise<readonly Shown[]> {
  const all: Shown[] = [];
  for (let after: string | null = null; ;) {
    const { data, list_metadata } = await suite.get(`${assignments(of)}?limit=${limit}${after === null ? '' : `&after=${after}`}`).expect(200);
    all.push(...data);
    after = list_metadata.after;
    if (after === null) return all;
  }
}

describe('a role that a group is given', () => {
  it('is shown with the group, by itself and in the list', async () => {
    const assigned = await suite.post(assignments(group), { role_slug: 'editor', resource_id: project }).expect(201, {
      object: 'group_role_assignment',
      group_id: group,
      role: { slug: 'editor' },
      resource: { id: project, external_id: 'project-7', resource_type_slug: 'project' },
    });
    expect(Object.keys(assigned.role)).toEqual(['slug']);
    await suite.get(`${assignments(group)}/${assigned.id}`).expect(200, assigned);
    await suite.get(assignments(group)).expect(200, { object: 'list', data: [assigned], list_metadata: { before: null, after: null } });
  });

  it('is one on the organization where no resource is named', async () => {
    const other = await acme.group();
    const resource = { id: acme.root, external_id: acme.id, resource_type_slug: 'organization' };
    await suite.post(assignments(other), { role_slug: 'viewer' }).expect(201, { resource });
    await suite.post(assignments(other), { role_slug: 'viewer', resource_id: acme.root }).expect(409);
    await suite.delete(assignments(other), { role_slug: 'viewer' }).expect(204);
    expect(await listed(other)).toEqual([]);
  });

  it('is refused to a group that has it', async () => {
    const other = await acme.group();
    const body = { role_slug: 'editor', resource_id: project };
    await suite.post(assignments(other), body).expect(201);
    await suite
      .post(assignments(other), { role_slug: 'editor', resource_external_id: 'project-7', resource_type_slug: 'project' })
      .expect(409, { code: 'duplicate_group_role_assignment' });
    expect(await listed(other)).toHaveLength(1);
  });

  it('is refused by the rules for memberships', async () => {
    const refused = (body: object, status: number, answer: object) => suite.post(assignments(group), body).expect(status, answer);
    const invalid = (body: object, code: string, field: string) => refused(body, 422, { code: 'invalid_request_parameters', errors: [{ code, field }] });
    await invalid({ role_slug: 'viewer', resource_id: project }, 'role_of_other_type', 'role_slug');
    await invalid({ role_slug: 'editor' }, 'role_of_other_type', 'role_slug');
    await invalid(
      { role_slug: 'editor', resource_id: project, resource_external_id: 'project-7', resource_type_slug: 'project' },
      'not_together',
      'resource_external_id',
    );
    await invalid({ role_slug: 'editor', resource_external_id: 'project-7' }, 'required', 'resource_type_slug');
    await invalid({ role_slug: 'editor', resource_type_slug: 'project' }, 'required', 'resource_external_id');
    await invalid({ resource_id: project }, 'required', 'role_slug');
    await refused({ role_slug: 'nobody' }, 404, { entity_id: 'nobody' });
    await refused({ role_slug: 'editor', resource_id: UNKNOWN.resource }, 404, { entity_id: UNKNOWN.resource });
    const other = await GivenOrganization.create(suite);
    const theirs = await other.project();
    await refused({ role_slug: 'editor', resource_id: theirs }, 404, { entity_id: theirs });
    await suite.post(assignments(UNKNOWN.group), { role_slug: 'viewer' }).expect(404, { entity_id: UNKNOWN.group });
    const stranger = await suite.otherEnvironment('stranger');
    await stranger.post(assignments(group), { role_slug: 'admin' }).expect(404, { entity_id: group });
    await stranger.put(assignments(group), { role_assignments: [] }).expect(404, { entity_id: group });
  });
});

describe('a role that is taken from a group', () => {
  it('is named by itself and the resource in the body of the request', async () => {
    const other = await acme.group();
    const body = { role_slug: 'editor', resource_id: project };
    await suite.post(assignments(other), body).expect(201);
    await suite.delete(assignments(other), body).expect(204);
    await suite.delete(assignments(other), body).expect(404, { code: 'entity_not_found' });
    await suite.delete(assignments(other), { role_slug: 'reviewer', resource_id: project }).expect(404);
    await suite.delete(assignments(other), { resource_id: project }).expect(422, { errors: [{ code: 'required', field: 'role_slug' }] });
    expect(await listed(other)).toEqual([]);
  });

  it('is named in the query, or partly there, by clients that cannot send a body', async () => {
    const other = await acme.group();
    const [role, resource] = [{ role_slug: 'editor' }, { resource_id: project }];
    for (const [query, body] of [
      [`?role_slug=editor&resource_id=${project}`, undefined],
      [`?resource_id=${project}`, role],
      ['?role_slug=editor', { ...resource, resource_external_id: null, resource_type_slug: null }],
      [`?role_slug=editor&resource_id=${project}`, { ...role, ...resource }],
    ] as const) {
      await suite.post(assignments(other), { ...role, ...resource }).expect(201);
      await suite.delete(`${assignments(other)}?role_slug=reviewer`, role).expect(422, { errors: [{ code: 'given_twice', field: 'role_slug' }] });
      await suite.delete(assignments(other) + query, body).expect(204);
    }
    await suite.delete(`${assignments(other)}?resource_id=${project}`).expect(422, { errors: [{ code: 'required', field: 'role_slug' }] });
    expect(await listed(other)).toEqual([]);
  });

  it('is named by the id of its assignment, together with the group', async () => {
    const other = await acme.group();
    const { id } = await suite.post(assignments(other), { role_slug: 'editor', resource_id: project }).expect(201);
    await suite.delete(`${assignments(group)}/${id}`).expect(404, { entity_id: id });
    await suite.get(`${assignments(group)}/${id}`).expect(404, { entity_id: id });
    await suite.get(`${assignments(other)}/${UNKNOWN.assignment}`).expect(404, { entity_id: UNKNOWN.assignment });
    await suite.delete(`${assignments(other)}/${id}`).expect(204);
    await suite.delete(`${assignments(other)}/${id}`).expect(404, { entity_id: id });
    await suite.get(`${assignments(other)}/${id}`).expect(404, { entity_id: id });
  });
});

describe('the roles of a group', () => {
  const onProject = (role: string) => ({ role_slug: role, resource_id: project });
  const put = (of: string, ...role_assignments: readonly object[]) => suite.put(assignments(of), { role_assignments });

  it('are replaced: what stays is the same, what is new is given, the rest goes', async () => {
    const other = await acme.group();
    const stays = await suite.post(assignments(other), onProject('editor')).expect(201);
    const goes = await suite.post(assignments(other), onProject('reviewer')).expect(201);
    const { data } = await put(other, { role_slug: 'viewer' }, onProject('editor'), {
      role_slug: 'admin',
      resource_external_id: acme.id,
      resource_type_slug: 'organization',
    }).expect(200, { object: 'list', list_metadata: { before: null, after: null } });
    expect(data.map(({ role }: Shown) => role.slug).sort()).toEqual(['admin', 'editor', 'viewer']);
    expect(ids(data)).toContain(stays.id);
    expect(ids(data)).not.toContain(goes.id);
    expect(await listed(other)).toEqual(data);
    await put(other).expect(200, { data: [] });
    expect(await listed(other)).toEqual([]);
  });

  it('are replaced without a trace where they are what they are to be', async () => {
    const other = await acme.group();
    const { data } = await put(other, onProject('editor'), { role_slug: 'viewer' }).expect(200);
    const before = await suite.records();
    await put(other, { role_slug: 'viewer' }, onProject('editor'), onProject('editor')).expect(200, { data });
    expect(await suite.records()).toEqual(before);
  });

  it('stay as they are where one of the new ones is refused', async () => {
    const other = await acme.group();
    const { data } = await put(other, onProject('editor')).expect(200);
    await put(other, { role_slug: 'viewer' }, { role_slug: 'editor' }).expect(422, {
      errors: [{ code: 'role_of_other_type', field: 'role_assignments.1.role_slug' }],
    });
    await put(other, { role_slug: 'viewer' }, { role_slug: 'nobody' }).expect(404, { entity_id: 'nobody' });
    await put(other, { role_slug: 'editor', resource_external_id: 'project-7' }).expect(422, {
      errors: [{ code: 'required', field: 'role_assignments.0.resource_type_slug' }],
    });
    await put(other, ...Array.from({ length: 101 }, () => onProject('editor'))).expect(422, { errors: [{ code: 'too_many', field: 'role_assignments' }] });
    await suite.put(assignments(other), {}).expect(422, { errors: [{ code: 'required', field: 'role_assignments' }] });
    expect(await listed(other)).toEqual(data);
  });

  describe('change in part', () => {
    const patch = (of: string, body: object) => suite.patch(assignments(of), body);

    it('what is new is given, what goes is taken away, the rest stays', async () => {
      const other = await acme.group();
      const stays = await suite.post(assignments(other), onProject('editor')).expect(201);
      const goes = await suite.post(assignments(other), onProject('reviewer')).expect(201);
      const body = {
        add: [{ role_slug: 'viewer', resource_id: null }, onProject('editor'), onProject('editor')],
        remove: [onProject('reviewer'), { role_slug: 'admin' }],
      };
      const { data } = await patch(other, body).expect(200, { object: 'list', list_metadata: { before: null, after: null } });
      expect(data.map(({ role }: Shown) => role.slug)).toEqual(['viewer', 'editor']);
      expect(ids(data)).toContain(stays.id);
      expect(ids(data)).not.toContain(goes.id);
      expect(await listed(other)).toEqual(data);
      const before = await suite.records();
      await patch(other, body).expect(200, { data });
      await patch(other, {}).expect(200, { data });
      expect(await suite.records()).toEqual(before);
    });

    it('all of it or nothing', async () => {
      const other = await acme.group();
      const { data } = await put(other, onProject('editor')).expect(200);
      const refused = (body: object, status: number, answer: object) => patch(other, body).expect(status, answer);
      await refused({ add: [{ role_slug: 'viewer' }, { role_slug: 'nobody' }], remove: [onProject('editor')] }, 404, { entity_id: 'nobody' });
      await refused({ add: [{ role_slug: 'viewer' }], remove: [{ role_slug: 'editor', resource_id: UNKNOWN.resource }] }, 404, { entity_id: UNKNOWN.resource });
      await refused({ add: [{ role_slug: 'viewer' }, { role_slug: 'editor' }] }, 422, { errors: [{ code: 'role_of_other_type', field: 'add.1.role_slug' }] });
      await refused({ add: [onProject('reviewer')], remove: [onProject('reviewer')] }, 422, { errors: [{ code: 'not_together', field: 'remove' }] });
      const many = (count: number) => Array.from({ length: count }, () => onProject('reviewer'));
      await refused({ add: many(101) }, 422, { errors: [{ code: 'too_many', field: 'add' }] });
      await refused({ add: many(60), remove: many(41) }, 422, { errors: [{ code: 'too_many', field: 'remove' }] });
      await patch(UNKNOWN.group, { add: [{ role_slug: 'viewer' }] }).expect(404, { entity_id: UNKNOWN.group });
      const theirs = await (await GivenOrganization.create(suite)).project();
      await refused({ add: [{ role_slug: 'editor', resource_id: theirs }] }, 404, { entity_id: theirs });
      expect(await listed(other)).toEqual(data);
    });
  });

  it('are replaced also where there are more than a request can name', async () => {
    const [other, workspace] = [await acme.group(), await acme.workspace()];
    const projects = await Promise.all(Array.from({ length: 130 }, () => acme.project(undefined, workspace)));
    await Promise.all(projects.map((resource) => suite.post(assignments(other), { role_slug: 'editor', resource_id: resource }).expect(201)));
    expect(await listed(other, 40)).toHaveLength(130);
    const kept = projects.slice(0, 100).map((resource_id) => ({ role_slug: 'editor', resource_id }));
    const { data } = await put(other, ...kept).expect(200);
    expect(data).toHaveLength(100);
    expect(await listed(other)).toEqual(data);
    await put(other, { role_slug: 'viewer' }).expect(200);
    expect(await listed(other)).toHaveLength(1);
  });

  it('are those of the last of several who replace them one after another', async () => {
    const other = await acme.group();
    for (const role of ['editor', 'reviewer', 'editor']) {
      const { data } = await put(other, onProject(role)).expect(200);
      expect(data.map((assignment: Shown) => assignment.role.slug)).toEqual([role]);
    }
    expect((await listed(other)).map(({ role }) => role.slug)).toEqual(['editor']);
  });

  it('are one of the sets that were asked for at once', async () => {
    const other = await acme.group();
    for (let round = 0; round < 5; round++) {
      await Promise.all([
        put(other, onProject('editor'), { role_slug: 'viewer' }).expect(200),
        put(other, onProject('reviewer'), { role_slug: 'admin' }).expect(200),
        put(other, onProject('reviewer'), { role_slug: 'viewer' }).expect(200),
      ]);
      const roles = (await listed(other)).map(({ role }) => role.slug).sort();
      expect(['editor viewer', 'admin reviewer', 'reviewer viewer']).toContain(roles.join(' '));
    }
  });

  it('are listed by pages, from a cursor that was one of them', async () => {
    const other = await acme.group();
    const given: string[] = [];
    for (const role of ['editor', 'reviewer']) given.push((await suite.post(assignments(other), onProject(role)).expect(201)).id);
    given.push((await suite.post(assignments(other), { role_slug: 'viewer' }).expect(201)).id);
    expect(ids(await listed(other, 1))).toEqual([...given].reverse());
    await suite.delete(`${assignments(other)}/${given[1]}`).expect(204);
    expect(ids((await suite.get(`${assignments(other)}?order=asc&after=${given[1]}`).expect(200)).data)).toEqual([given[2]]);
    await suite.get(`${assignments(other)}?after=${UNKNOWN.assignment}`).expect(422, { errors: [{ code: 'invalid_cursor', field: 'after' }] });
    await suite.get(assignments(UNKNOWN.group)).expect(404, { entity_id: UNKNOWN.group });
  });
});
