import { GivenOrganization } from '#libs/testing/src/given-organization';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const UNKNOWN = {
  membership: 'om_01J00000000000000000000000',
  resource: 'authz_resource_01J00000000000000000000000',
  assignment: 'role_assignment_01J00000000000000000000000',
  organization: 'org_01J00000000000000000000000',
};

let suite: GivenSuite;
let acme: GivenOrganization;
let ada: string;
let project: string;
beforeAll(async () => {
  suite = await givenSuite();
  await GivenOrganization.createModel(suite);
  acme = await GivenOrganization.create(suite);
  ada = await acme.membership();
  project = await acme.project('project-7');
});

const assignments = (membership: string) => `/authorization/organization_memberships/${membership}/role_assignments`;
const onResource = (resource: string) => `/authorization/resources/${resource}/role_assignments`;

interface Shown {
  readonly id: string;
  readonly organization_membership_id: string;
  readonly role: { readonly slug: string };
  readonly source: { readonly type: string; readonly group_role_assignment_id: string | null; readonly group: { readonly name: string } | null };
}

/** Everything on a list, by pages of that size. */
async function listed(path: string, { limit = 100, order = 'desc' } = {}): Promise<readonly Shown[]> {
  const all: Shown[] = [];
  for (let after: string | null = null; ;) {
    const { data, list_metadata } = await suite
      .get(`${path}${path.includes('?') ? '&' : '?'}limit=${limit}&order=${order}${after === null ? '' : `&after=${after}`}`)
      .expect(200);
    all.push(...data);
    after = list_metadata.after;
    if (after === null) return all;
    expect(data).toHaveLength(limit);
  }
}

const ids = (shown: readonly Shown[]) => shown.map(({ id }) => id);

describe('a role that a membership is given', () => {
  it('is shown with the membership and its source, wherever it is listed', async () => {
    const assigned = await suite.post(assignments(ada), { role_slug: 'editor', resource_id: project }).expect(201, {
      object: 'role_assignment',
      organization_membership_id: ada,
      role: { slug: 'editor' },
      resource: { id: project, external_id: 'project-7', resource_type_slug: 'project' },
      source: { type: 'direct', group_role_assignment_id: null, group: null },
    });
    expect(Object.keys(assigned.role)).toEqual(['slug']);
    const list = { object: 'list', data: [assigned], list_metadata: { before: null, after: null } };
    await suite.get(assignments(ada)).expect(200, list);
    await suite.get(onResource(project)).expect(200, list);
    await suite.get(`/authorization/organizations/${acme.id}/resources/project/project-7/role_assignments`).expect(200, list);
  });

  it('is the one there is when it is given again, and nothing is recorded', async () => {
    const grace = await acme.membership();
    const first = await suite.post(assignments(grace), { role_slug: 'editor', resource_id: project }).expect(201);
    const before = (await suite.records('role_assignment.created')).length;
    const again = await suite.post(assignments(grace), { role_slug: 'editor', resource_external_id: 'project-7', resource_type_slug: 'project' }).expect(201);
    expect(again).toEqual(first);
    expect(await suite.records('role_assignment.created')).toHaveLength(before);
  });

  it('is given once by those who give it at once', async () => {
    const grace = await acme.membership();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => suite.post(assignments(grace), { role_slug: 'editor', resource_id: project }).expect(201)),
    );
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    expect(await listed(assignments(grace))).toHaveLength(1);
  });

  it('may be one on the organization itself, which its own id names', async () => {
    const grace = await acme.membership();
    const resource = { id: acme.root, external_id: acme.id, resource_type_slug: 'organization' };
    await suite.post(assignments(grace), { role_slug: 'viewer', resource_id: acme.root }).expect(201, { resource });
    await suite.post(assignments(grace), { role_slug: 'admin', resource_external_id: acme.id, resource_type_slug: 'organization' }).expect(201, { resource });
    expect(await listed(assignments(grace))).toHaveLength(2);
    const path = `/authorization/organizations/${acme.id}/resources/organization/${acme.id}/role_assignments`;
    expect(await listed(`${path}?role_slug=admin`)).toHaveLength(1);
    expect(ids(await listed(path))).toEqual(ids(await listed(onResource(acme.root))));
  });

  it("may be one of the organization's own", async () => {
    const role = { slug: 'org-owner', name: 'Owner', resource_type_slug: 'project' };
    await suite.post(`/authorization/organizations/${acme.id}/roles`, role).expect(201);
    const grace = await acme.membership();
    await suite.post(assignments(grace), { role_slug: 'org-owner', resource_id: project }).expect(201, { role: { slug: 'org-owner' } });
    const other = await GivenOrganization.create(suite);
    await suite
      .post(assignments(await other.membership()), { role_slug: 'org-owner', resource_id: await other.project() })
      .expect(404, { code: 'entity_not_found', entity_id: 'org-owner' });
  });

  it('is kept while the membership is not active', async () => {
    const grace = await acme.membership();
    await suite.put(`/user_management/organization_memberships/${grace}/deactivate`).expect(200);
    const { id } = await suite.post(assignments(grace), { role_slug: 'editor', resource_id: project }).expect(201);
    expect(ids(await listed(assignments(grace)))).toEqual([id]);
    expect(ids(await listed(`${onResource(project)}?role_slug=editor`))).toContain(id);
    await suite.put(`/user_management/organization_memberships/${grace}/reactivate`).expect(200);
    expect(ids(await listed(assignments(grace)))).toEqual([id]);
  });

  it('is nothing that is told', async () => {
    const grace = await acme.membership();
    await suite.post(assignments(grace), { role_slug: 'editor', resource_id: project }).expect(201);
    const [record] = (await suite.records('role_assignment.created')).slice(-1);
    expect(record).toMatchObject({
      public: [],
      subject: null,
      meta: { organization: acme.id },
      data: { organization_membership_id: grace, role: { slug: 'editor' } },
    });
  });
});

describe('a role that a membership is not given', () => {
  const refused = (body: object, status: number, answer: object) => suite.post(assignments(ada), body).expect(status, answer);
  const invalid = (body: object, code: string, field: string) => refused(body, 422, { code: 'invalid_request_parameters', errors: [{ code, field }] });

  it('is one for resources of another type', async () => {
    await invalid({ role_slug: 'viewer', resource_id: project }, 'role_of_other_type', 'role_slug');
    await invalid({ role_slug: 'editor', resource_id: acme.root }, 'role_of_other_type', 'role_slug');
  });

  it('is one on a resource that is named twice, by halves or not at all', async () => {
    const external = { resource_external_id: 'project-7', resource_type_slug: 'project' };
    await invalid({ role_slug: 'editor', resource_id: project, ...external }, 'not_together', 'resource_external_id');
    await invalid({ role_slug: 'editor' }, 'required', 'resource_id');
    await invalid({ role_slug: 'editor', resource_external_id: 'project-7' }, 'required', 'resource_type_slug');
    await invalid({ role_slug: 'editor', resource_type_slug: 'project' }, 'required', 'resource_external_id');
    await refused({ resource_id: project }, 422, { errors: [{ code: 'required', field: 'role_slug' }] });
  });

  it('may be named with its type beside its id, if that is its type', async () => {
    const grace = await acme.membership();
    await suite.post(assignments(grace), { role_slug: 'editor', resource_id: project, resource_type_slug: 'project' }).expect(201);
    await refused({ role_slug: 'editor', resource_id: project, resource_type_slug: 'workspace' }, 404, { entity_id: project });
  });

  it('is one that is not there, or on something that is not', async () => {
    await refused({ role_slug: 'nobody', resource_id: project }, 404, { code: 'entity_not_found', entity_id: 'nobody' });
    await refused({ role_slug: 'editor', resource_id: UNKNOWN.resource }, 404, { entity_id: UNKNOWN.resource });
    await refused({ role_slug: 'editor', resource_external_id: 'nothing', resource_type_slug: 'project' }, 404, { entity_id: 'nothing' });
    await refused({ role_slug: 'editor', resource_external_id: 'project-7', resource_type_slug: 'nothing' }, 404, { entity_id: 'nothing' });
    const body = { role_slug: 'editor', resource_id: project };
    await suite.post(assignments(UNKNOWN.membership), body).expect(404, { entity_id: UNKNOWN.membership });
  });

  it("is one on another organization's resource", async () => {
    const other = await GivenOrganization.create(suite);
    const theirs = await other.project('theirs');
    await refused({ role_slug: 'editor', resource_id: theirs }, 404, { code: 'entity_not_found', entity_id: theirs });
    await refused({ role_slug: 'editor', resource_external_id: 'theirs', resource_type_slug: 'project' }, 404, { entity_id: 'theirs' });
    await refused({ role_slug: 'viewer', resource_external_id: other.id, resource_type_slug: 'organization' }, 404, { entity_id: other.id });
    expect(await listed(onResource(theirs))).toEqual([]);
  });

  it('is one by the key of another environment', async () => {
    const stranger = await suite.otherEnvironment('stranger');
    await stranger.post(assignments(ada), { role_slug: 'admin', resource_id: acme.root }).expect(404, { entity_id: ada });
    await stranger.get(assignments(ada)).expect(404, { entity_id: ada });
    await stranger.get(onResource(project)).expect(404, { entity_id: project });
    await stranger.delete(assignments(ada), { role_slug: 'editor', resource_id: project }).expect(404, { entity_id: ada });
  });
});

describe('a role that is taken away', () => {
  it('is named by itself and the resource in the body of the request', async () => {
    const grace = await acme.membership();
    await suite.post(assignments(grace), { role_slug: 'editor', resource_id: project }).expect(201);
    await suite.delete(assignments(grace), { role_slug: 'editor', resource_external_id: 'project-7', resource_type_slug: 'project' }).expect(204);
    expect(await listed(assignments(grace))).toEqual([]);
    await suite.delete(assignments(grace), { role_slug: 'editor', resource_id: project }).expect(404, { code: 'entity_not_found' });
    await suite.delete(assignments(grace), { role_slug: 'reviewer', resource_id: project }).expect(404);
    await suite.delete(assignments(grace), { role_slug: 'editor' }).expect(422, { errors: [{ code: 'required', field: 'resource_id' }] });
    await suite.delete(assignments(grace), { resource_id: project }).expect(422, { errors: [{ code: 'required', field: 'role_slug' }] });
    await suite.delete(assignments(UNKNOWN.membership), { role_slug: 'editor', resource_id: project }).expect(404);
  });

  it('is named by the id of its assignment, together with the membership', async () => {
    const [grace, alan] = [await acme.membership(), await acme.membership()];
    const { id } = await suite.post(assignments(grace), { role_slug: 'editor', resource_id: project }).expect(201);
    await suite.delete(`${assignments(alan)}/${id}`).expect(404, { entity_id: id });
    await suite.delete(`${assignments(grace)}/${UNKNOWN.assignment}`).expect(404, { entity_id: UNKNOWN.assignment });
    await suite.delete(`${assignments(grace)}/${id}`).expect(204);
    await suite.delete(`${assignments(grace)}/${id}`).expect(404, { entity_id: id });
    expect(await listed(assignments(grace))).toEqual([]);
  });

  it('is another when it is given again', async () => {
    const grace = await acme.membership();
    const body = { role_slug: 'editor', resource_id: project };
    const first = await suite.post(assignments(grace), body).expect(201);
    await suite.delete(assignments(grace), body).expect(204);
    const second = await suite.post(assignments(grace), body).expect(201);
    expect(second.id).not.toBe(first.id);
    await suite.delete(`${assignments(grace)}/${first.id}`).expect(404);
    expect(ids(await listed(assignments(grace)))).toEqual([second.id]);
  });

  it('leaves what else the membership has', async () => {
    const grace = await acme.membership();
    await suite.post(assignments(grace), { role_slug: 'editor', resource_id: project }).expect(201);
    const kept = await suite.post(assignments(grace), { role_slug: 'reviewer', resource_id: project }).expect(201);
    await suite.delete(assignments(grace), { role_slug: 'editor', resource_id: project }).expect(204);
    expect(ids(await listed(assignments(grace)))).toEqual([kept.id]);
  });
});

describe('a list of role assignments', () => {
  it('is limited by resource, identifier and type, each alone or together', async () => {
    const beta = await GivenOrganization.create(suite);
    const grace = await beta.membership();
    const workspace = await beta.workspace('same');
    const one = await beta.project('same', workspace);
    const two = await beta.project('other');
    const give = async (role: string, resource: string): Promise<string> =>
      (await suite.post(assignments(grace), { role_slug: role, resource_id: resource }).expect(201)).id;
    const onWorkspace = await give('admin-of-workspace', workspace);
    const edits = await give('editor', one);
    const reviews = await give('reviewer', one);
    const editsOther = await give('editor', two);
    const filtered = async (filter: string) => ids(await listed(`${assignments(grace)}?${filter}`, { order: 'asc' }));
    expect(await filtered(`resource_id=${one}`)).toEqual([edits, reviews]);
    expect(await filtered(`resource_id=${one}&resource_type_slug=project&resource_external_id=same`)).toEqual([edits, reviews]);
    expect(await filtered(`resource_id=${one}&resource_type_slug=workspace`)).toEqual([]);
    expect(await filtered(`resource_id=${one}&resource_external_id=other`)).toEqual([]);
    expect(await filtered('resource_external_id=same')).toEqual([onWorkspace, edits, reviews]);
    expect(await filtered('resource_external_id=same&resource_type_slug=project')).toEqual([edits, reviews]);
    expect(await filtered('resource_type_slug=project')).toEqual([edits, reviews, editsOther]);
    expect(await filtered('resource_type_slug=nothing')).toEqual([]);
    expect(await filtered('resource_external_id=nothing')).toEqual([]);
    expect(await filtered(`resource_id=${UNKNOWN.resource}`)).toEqual([]);
    expect(ids(await listed(`${onResource(one)}?role_slug=editor`))).toEqual([edits]);
    expect(ids(await listed(`${onResource(one)}?role_slug=nobody`))).toEqual([]);
  });

  it('pages through everything once, in either order', async () => {
    const beta = await GivenOrganization.create(suite);
    const grace = await beta.membership();
    const given: string[] = [];
    for (let count = 0; count < 7; count++)
      given.push((await suite.post(assignments(grace), { role_slug: 'editor', resource_id: await beta.project() }).expect(201)).id);
    for (const limit of [1, 3, 7]) {
      expect(ids(await listed(assignments(grace), { limit, order: 'asc' }))).toEqual(given);
      expect(ids(await listed(assignments(grace), { limit }))).toEqual([...given].reverse());
    }
    const { data, list_metadata } = await suite.get(`${assignments(grace)}?limit=2&order=asc&after=${given[2]}`).expect(200);
    expect(ids(data)).toEqual(given.slice(3, 5));
    expect(list_metadata).toEqual({ before: given[3], after: given[4] });
    expect(ids((await suite.get(`${assignments(grace)}?limit=2&order=asc&before=${given[4]}`).expect(200)).data)).toEqual(given.slice(2, 4));
  });

  it('goes on from an assignment that was taken away meanwhile, and refuses a cursor that never was', async () => {
    const beta = await GivenOrganization.create(suite);
    const grace = await beta.membership();
    const give = async () => (await suite.post(assignments(grace), { role_slug: 'editor', resource_id: await beta.project() }).expect(201)).id;
    const given = [await give(), await give(), await give()];
    await suite.delete(`${assignments(grace)}/${given[1]}`).expect(204);
    expect(ids((await suite.get(`${assignments(grace)}?order=asc&after=${given[1]}`).expect(200)).data)).toEqual([given[2]]);
    await suite.get(`${assignments(grace)}?after=${UNKNOWN.assignment}`).expect(422, { errors: [{ code: 'invalid_cursor', field: 'after' }] });
    await suite.get(`${assignments(grace)}?before=${grace}`).expect(422, { errors: [{ code: 'invalid_cursor', field: 'before' }] });
    await suite.get(`${assignments(grace)}?before=${given[0]}&after=${given[1]}`).expect(422, { errors: [{ code: 'invalid_cursor', field: 'before' }] });
  });

  it('is not there for what is not there', async () => {
    await suite.get(assignments(UNKNOWN.membership)).expect(404, { entity_id: UNKNOWN.membership });
    await suite.get(onResource(UNKNOWN.resource)).expect(404, { entity_id: UNKNOWN.resource });
    const path = (organization: string, type: string, externalId: string) =>
      `/authorization/organizations/${organization}/resources/${type}/${externalId}/role_assignments`;
    await suite.get(path(UNKNOWN.organization, 'project', 'project-7')).expect(404, { entity_id: UNKNOWN.organization });
    await suite.get(path(acme.id, 'nothing', 'project-7')).expect(404, { entity_id: 'nothing' });
    await suite.get(path(acme.id, 'project', 'nothing')).expect(404, { entity_id: 'nothing' });
  });

  it('finds a resource whose identifier needs encoding in a path', async () => {
    const odd = 'a/b c%2F?.';
    const resource = await acme.project(odd);
    const grace = await acme.membership();
    const { id } = await suite.post(assignments(grace), { role_slug: 'editor', resource_id: resource }).expect(201);
    const path = `/authorization/organizations/${acme.id}/resources/project/${encodeURIComponent(odd)}/role_assignments`;
    expect(ids(await listed(path))).toEqual([id]);
  });
});

describe('what a membership has through groups', () => {
  it('is listed beside its own, once for each assignment of a group', async () => {
    const beta = await GivenOrganization.create(suite);
    const [grace, alan] = [await beta.membership(), await beta.membership()];
    const resource = await beta.project('seven');
    const group = await beta.group(grace, alan);
    const own = await suite.post(assignments(grace), { role_slug: 'editor', resource_id: resource }).expect(201);
    const ofGroup = await suite.post(`/authorization/groups/${group}/role_assignments`, { role_slug: 'reviewer', resource_id: resource }).expect(201);
    const [first, second] = await listed(assignments(grace), { order: 'asc' });
    expect(first).toEqual(own);
    expect(second).toMatchObject({
      object: 'role_assignment',
      organization_membership_id: grace,
      role: { slug: 'reviewer' },
      resource: { id: resource, external_id: 'seven', resource_type_slug: 'project' },
      source: { type: 'group', group_role_assignment_id: ofGroup.id, group: { id: group, name: expect.any(String) } },
      created_at: ofGroup.created_at,
    });
    await suite.patch(`/organizations/${beta.id}/groups/${group}`, { name: 'Renamed' }).expect(200);
    expect((await listed(onResource(resource))).map(({ source }) => source.group?.name).sort()).toEqual(['Renamed', 'Renamed', undefined]);
    const all = await listed(onResource(resource));
    expect(all.map((entry) => [entry.organization_membership_id, entry.role.slug, entry.source.type]).sort()).toEqual(
      [
        [grace, 'editor', 'direct'],
        [grace, 'reviewer', 'group'],
        [alan, 'reviewer', 'group'],
      ].sort(),
    );
    expect(ids(await listed(`${onResource(resource)}?role_slug=reviewer`))).toContain(second!.id);
    expect(await listed(`${onResource(resource)}?role_slug=editor`)).toHaveLength(1);
    expect(ids(await listed(`${assignments(grace)}?resource_type_slug=project`))).toContain(second!.id);
    expect(ids(await listed(`${assignments(grace)}?resource_id=${resource}`)).sort()).toEqual([own.id, second!.id].sort());
    expect(ids(await listed(`${assignments(grace)}?resource_external_id=seven`))).toContain(second!.id);
    expect(await listed(`${assignments(grace)}?resource_type_slug=workspace`)).toEqual([]);
    expect(await listed(`${assignments(grace)}?resource_id=${beta.root}`)).toEqual([]);
  });

  it('is taken away from the group, not from the membership', async () => {
    const beta = await GivenOrganization.create(suite);
    const grace = await beta.membership();
    const group = await beta.group(grace);
    await suite.post(`/authorization/groups/${group}/role_assignments`, { role_slug: 'viewer' }).expect(201);
    const [entry] = await listed(assignments(grace));
    await suite.delete(`${assignments(grace)}/${entry!.id}`).expect(409, { code: 'role_assignment_from_group' });
    await suite.delete(assignments(grace), { role_slug: 'viewer', resource_id: beta.root }).expect(404, { code: 'entity_not_found' });
    const alan = await beta.membership();
    await suite.delete(`${assignments(alan)}/${entry!.id}`).expect(404, { entity_id: entry!.id });
    expect(ids(await listed(assignments(grace)))).toEqual([entry!.id]);
    await beta.leave(group, grace);
    await suite.delete(`${assignments(grace)}/${entry!.id}`).expect(404, { entity_id: entry!.id });
    expect(await listed(assignments(grace))).toEqual([]);
    await beta.join(group, grace);
    expect(ids(await listed(assignments(grace)))).toEqual([entry!.id]);
  });

  it('pages together with what it has itself', async () => {
    const beta = await GivenOrganization.create(suite);
    const members = [await beta.membership(), await beta.membership(), await beta.membership()];
    const resource = await beta.project();
    const [one, other] = [await beta.group(...members), await beta.group(...members.slice(1))];
    const give = (path: string, role: string) => suite.post(path, { role_slug: role, resource_id: resource }).expect(201);
    await give(assignments(members[0]!), 'editor');
    await give(`/authorization/groups/${one}/role_assignments`, 'editor');
    await give(assignments(members[1]!), 'reviewer');
    await suite.put(`/authorization/groups/${other}/role_assignments`, {
      role_assignments: [
        { role_slug: 'editor', resource_id: resource },
        { role_slug: 'reviewer', resource_id: resource },
      ],
    });
    await give(assignments(members[2]!), 'editor');
    const everything = await listed(onResource(resource), { order: 'asc' });
    expect(everything).toHaveLength(3 + 3 + 2 * 2);
    expect(new Set(ids(everything)).size).toBe(everything.length);
    for (const limit of [1, 2, 3, 4]) {
      expect(await listed(onResource(resource), { limit, order: 'asc' })).toEqual(everything);
      expect(await listed(onResource(resource), { limit })).toEqual([...everything].reverse());
    }
    for (const [place, { id }] of everything.entries()) {
      const { data, list_metadata } = await suite.get(`${onResource(resource)}?order=asc&limit=2&before=${id}`).expect(200);
      expect(data).toEqual(everything.slice(Math.max(0, place - 2), place));
      expect(list_metadata.before).toBe(place > 2 ? data[0].id : null);
    }
    for (const member of members)
      expect(await listed(assignments(member), { limit: 1, order: 'asc' })).toEqual(everything.filter((entry) => entry.organization_membership_id === member));
  });
});

describe('what is gone takes its assignments along', () => {
  interface Grant {
    readonly membership: string;
    readonly resource: string;
    readonly group: string;
  }

  /** A membership and its group, both with a role on a resource. */
  async function given(role = 'editor'): Promise<Grant & { readonly organization: GivenOrganization; readonly workspace: string; readonly role: string }> {
    const organization = await GivenOrganization.create(suite);
    const membership = await organization.membership();
    const workspace = await organization.workspace();
    const resource = await organization.project(undefined, workspace);
    const group = await organization.group(membership);
    await suite.post(assignments(membership), { role_slug: role, resource_id: resource }).expect(201);
    await suite.post(`/authorization/groups/${group}/role_assignments`, { role_slug: role, resource_id: resource }).expect(201);
    return { organization, membership, resource, group, workspace, role };
  }

  /** What the log says in the end about the assignments of an organization: how many were deleted. */
  async function eventuallyDeleted(organization: GivenOrganization, direct: number, ofGroups: number): Promise<void> {
    await eventually(async () => {
      const records = (await suite.records('role_assignment.deleted', 'group_role_assignment.deleted')).filter(
        ({ meta }) => meta.organization === organization.id,
      );
      const counts = [
        records.filter(({ type }) => type === 'role_assignment.deleted').length,
        records.filter(({ type }) => type !== 'role_assignment.deleted').length,
      ];
      expect(counts).toEqual([direct, ofGroups]);
    }, 25_000);
  }

  it('a membership', async () => {
    const { organization, membership, resource } = await given();
    await suite.delete(`/user_management/organization_memberships/${membership}`).expect(200);
    await suite.get(assignments(membership)).expect(404);
    expect(await listed(onResource(resource))).toEqual([]);
    await eventuallyDeleted(organization, 1, 0);
  });

  it('a user, with the memberships', async () => {
    const { organization, membership, resource } = await given();
    const { user_id } = await suite.get(`/user_management/organization_memberships/${membership}`).expect(200);
    await suite.delete(`/user_management/users/${user_id}`).expect(200);
    await suite.get(assignments(membership)).expect(404);
    expect(await listed(onResource(resource))).toEqual([]);
    await eventuallyDeleted(organization, 1, 0);
  });

  it('a group', async () => {
    const { organization, membership, resource, group } = await given();
    await suite.delete(`/organizations/${organization.id}/groups/${group}`).expect(204);
    await suite.get(`/authorization/groups/${group}/role_assignments`).expect(404, { entity_id: group });
    expect(await listed(assignments(membership))).toHaveLength(1);
    expect(await listed(onResource(resource))).toHaveLength(1);
    await eventuallyDeleted(organization, 0, 1);
  });

  it('a role', async () => {
    await suite.post('/authorization/roles', { slug: 'passing', name: 'Passing', resource_type_slug: 'project' }).expect(201);
    const { organization, membership, resource, group } = await given('passing');
    await suite.delete('/admin/roles/passing').expect(204);
    expect(await listed(assignments(membership))).toEqual([]);
    expect(await listed(onResource(resource))).toEqual([]);
    expect(await listed(`/authorization/groups/${group}/role_assignments`)).toEqual([]);
    // A role of the same name is another.
    await suite.post('/authorization/roles', { slug: 'passing', name: 'Passing', resource_type_slug: 'project' }).expect(201);
    expect(await listed(`${onResource(resource)}?role_slug=passing`)).toEqual([]);
    await eventuallyDeleted(organization, 1, 1);
  });

  it('a resource, with everything below it', async () => {
    const { organization, membership, resource, group, workspace } = await given();
    await suite.delete(`/authorization/resources/${workspace}?cascade_delete=true`).expect(204);
    await suite.get(onResource(resource)).expect(404);
    expect(await listed(assignments(membership))).toEqual([]);
    expect(await listed(`/authorization/groups/${group}/role_assignments`)).toEqual([]);
    await eventuallyDeleted(organization, 1, 1);
  });

  it('an organization', async () => {
    const { organization, membership, resource, group } = await given();
    await suite.delete(`/organizations/${organization.id}`).expect(202);
    await suite.get(assignments(membership)).expect(404);
    await suite.get(onResource(resource)).expect(404);
    await suite.get(`/authorization/groups/${group}/role_assignments`).expect(404);
    await eventuallyDeleted(organization, 1, 1);
  });

  it('also those that are given while it is deleted', async () => {
    const organization = await GivenOrganization.create(suite);
    const group = await organization.group();
    const projects = await Promise.all(Array.from({ length: 10 }, () => organization.project()));
    const membership = await organization.membership();
    const give = (path: string, resource_id: string) => suite.post(path, { role_slug: 'editor', resource_id });
    const answers = await Promise.all([
      ...projects.slice(0, 5).flatMap((project) => [give(assignments(membership), project), give(`/authorization/groups/${group}/role_assignments`, project)]),
      suite.delete(`/user_management/organization_memberships/${membership}`),
      suite.delete(`/organizations/${organization.id}/groups/${group}`),
      ...projects.slice(5).flatMap((project) => [give(assignments(membership), project), give(`/authorization/groups/${group}/role_assignments`, project)]),
    ]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(
      new Set([200, 201, 204, 404].filter((status) => answers.some((answer) => answer.status === status))),
    );
    const made = (await suite.records('role_assignment.created', 'group_role_assignment.created')).filter(({ meta }) => meta.organization === organization.id);
    const ofMembership = made.filter(({ type }) => type === 'role_assignment.created').length;
    await eventuallyDeleted(organization, ofMembership, made.length - ofMembership);
  });

  it('and a page is filled with what is left', async () => {
    const organization = await GivenOrganization.create(suite);
    const members: string[] = [];
    const resource = await organization.project();
    for (let count = 0; count < 12; count++) members.push(await organization.membership());
    for (const member of members) await suite.post(assignments(member), { role_slug: 'editor', resource_id: resource }).expect(201);
    for (const member of members.slice(2, 10)) await suite.delete(`/user_management/organization_memberships/${member}`).expect(200);
    const { data } = await suite.get(`${onResource(resource)}?limit=4&order=asc`).expect(200);
    expect(data.map(({ organization_membership_id }: Shown) => organization_membership_id)).toEqual([...members.slice(0, 2), ...members.slice(10)]);
  });
});
