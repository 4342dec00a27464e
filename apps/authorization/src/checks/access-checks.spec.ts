import { GivenOrganization } from '#libs/testing/src/given-organization';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

const NEVER = '01J00000000000000000000000';
const READ = 'documents:read';
const WRITE = 'documents:write';

let suite: GivenSuite;
let acme: GivenOrganization;
beforeAll(async () => {
  suite = await givenSuite();
  await GivenOrganization.createModel(suite);
  for (const slug of [READ, WRITE]) await suite.post('/authorization/permissions', { slug, name: slug }).expect(201);
  for (const role of ['viewer', 'editor', 'admin-of-workspace'])
    await suite.put(`/authorization/roles/${role}/permissions`, { permissions: [READ] }).expect(200);
  acme = await GivenOrganization.create(suite);
});

const path = (membership: string, rest: string) => `/authorization/organization_memberships/${membership}/${rest}`;

const check = async (membership: string, resource: string, permission = READ): Promise<boolean> =>
  (await suite.post(path(membership, 'check'), { permission_slug: permission, resource_id: resource }).expect(200)).authorized;

const assign = (membership: string, role: string, resource: string) =>
  suite.post(path(membership, 'role_assignments'), { role_slug: role, resource_id: resource }).expect(201);

const assignGroup = (group: string, role: string, resource: string) =>
  suite.post(`/authorization/groups/${group}/role_assignments`, { role_slug: role, resource_id: resource }).expect(201);

interface Tree {
  readonly workspace: string;
  readonly project: string;
}

async function tree(): Promise<Tree> {
  const workspace = await acme.workspace();
  return { workspace, project: await acme.project(undefined, workspace) };
}

describe('a permission comes', () => {
  it('from a role on the resource itself, and on nothing beside it', async () => {
    const [ada, { workspace, project }] = [await acme.membership(), await tree()];
    const other = await acme.project(undefined, workspace);
    expect(await check(ada, project)).toBe(false);
    await assign(ada, 'editor', project);
    expect(await check(ada, project)).toBe(true);
    expect(await check(ada, project, WRITE)).toBe(false);
    expect(await check(ada, other)).toBe(false);
    expect(await check(ada, workspace)).toBe(false);
  });

  it('from a role on a resource above it', async () => {
    const [ada, { workspace, project }] = [await acme.membership(), await tree()];
    await assign(ada, 'admin-of-workspace', workspace);
    expect(await check(ada, project)).toBe(true);
    expect(await check(ada, acme.root)).toBe(false);
  });

  it('from a role on the organization, to everything in it', async () => {
    const [ada, { project }] = [await acme.membership(), await tree()];
    await assign(ada, 'viewer', acme.root);
    expect(await check(ada, project)).toBe(true);
    expect(await check(ada, acme.root)).toBe(true);
  });

  it('from the role of the membership in the organization', async () => {
    const [ada, { project }] = [await acme.membership(), await tree()];
    await suite.put(`/user_management/organization_memberships/${ada}`, { role_slug: 'viewer' }).expect(200);
    expect(await check(ada, project)).toBe(true);
    await suite.put(`/user_management/organization_memberships/${ada}`, { role_slug: 'member' }).expect(200);
    expect(await check(ada, project)).toBe(false);
  });

  it('from a role of a group that it is in', async () => {
    const [ada, { workspace, project }] = [await acme.membership(), await tree()];
    const group = await acme.group(ada);
    await assignGroup(group, 'admin-of-workspace', workspace);
    expect(await check(ada, project)).toBe(true);
  });

  it('from a role that the organization made for itself', async () => {
    const [ada, { project }] = [await acme.membership(), await tree()];
    await suite.post(`/authorization/organizations/${acme.id}/roles`, { slug: 'org-own', name: 'Own', resource_type_slug: 'project' }).expect(201);
    await assign(ada, 'org-own', project);
    expect(await check(ada, project)).toBe(false);
    await suite.put(`/authorization/organizations/${acme.id}/roles/org-own/permissions`, { permissions: [READ] }).expect(200);
    expect(await check(ada, project)).toBe(true);
  });
});

describe('a permission ends on the next check', () => {
  const given = async (): Promise<Tree & { readonly ada: string }> => {
    const [ada, found] = [await acme.membership(), await tree()];
    await assign(ada, 'admin-of-workspace', found.workspace);
    expect(await check(ada, found.project)).toBe(true);
    return { ada, ...found };
  };

  it('with the assignment', async () => {
    const { ada, workspace, project } = await given();
    await suite.delete(path(ada, 'role_assignments'), { role_slug: 'admin-of-workspace', resource_id: workspace }).expect(204);
    expect(await check(ada, project)).toBe(false);
    await assign(ada, 'admin-of-workspace', workspace);
    expect(await check(ada, project)).toBe(true);
  });

  it('while the membership is inactive', async () => {
    const { ada, project } = await given();
    await suite.put(`/user_management/organization_memberships/${ada}/deactivate`).expect(200);
    expect(await check(ada, project)).toBe(false);
    await suite.put(`/user_management/organization_memberships/${ada}/reactivate`).expect(200);
    expect(await check(ada, project)).toBe(true);
  });

  it('with the membership, also where its user joins again', async () => {
    const { ada, project } = await given();
    const { user_id } = await suite.get(`/user_management/organization_memberships/${ada}`).expect(200);
    await suite.delete(`/user_management/organization_memberships/${ada}`).expect(200);
    await suite.post(path(ada, 'check'), { permission_slug: READ, resource_id: project }).expect(404);
    const again = await suite.post('/user_management/organization_memberships', { user_id, organization_id: acme.id }).expect(201);
    expect(await check(again.id, project)).toBe(false);
    await suite.post(path(ada, 'check'), { permission_slug: READ, resource_id: project }).expect(404);
  });

  it('with the user', async () => {
    const { ada, project } = await given();
    const { user_id } = await suite.get(`/user_management/organization_memberships/${ada}`).expect(200);
    await suite.delete(`/user_management/users/${user_id}`).expect(200);
    await suite.post(path(ada, 'check'), { permission_slug: READ, resource_id: project }).expect(404);
  });

  it('with the resource, also where another takes its external id', async () => {
    const ada = await acme.membership();
    const project = await acme.project('taken-again');
    await assign(ada, 'editor', project);
    await suite.delete(`/authorization/resources/${project}?cascade_delete=true`).expect(204);
    await suite.post(path(ada, 'check'), { permission_slug: READ, resource_id: project }).expect(404);
    const again = await acme.project('taken-again');
    expect(await check(ada, again)).toBe(false);
  });

  it('with a resource above it', async () => {
    const { ada, workspace, project } = await given();
    await suite.delete(`/authorization/resources/${workspace}?cascade_delete=true`).expect(204);
    for (const resource of [workspace, project]) await suite.post(path(ada, 'check'), { permission_slug: READ, resource_id: resource }).expect(404);
  });

  it('where the resource moves elsewhere, and begins where it moves to', async () => {
    const { ada, workspace, project } = await given();
    const other = await acme.workspace();
    await suite.patch(`/authorization/resources/${project}`, { parent_resource_id: other }).expect(200);
    expect(await check(ada, project)).toBe(false);
    await suite.patch(`/authorization/resources/${project}`, { parent_resource_id: workspace }).expect(200);
    expect(await check(ada, project)).toBe(true);
  });

  it('with the permission of the role, and with the permission itself, also where another takes its slug', async () => {
    const { ada, project } = await given();
    const slug = 'documents:passing';
    const create = () => suite.post('/authorization/permissions', { slug, name: slug }).expect(201);
    await create();
    await suite.post('/authorization/roles/admin-of-workspace/permissions', { slug }).expect(200);
    expect(await check(ada, project, slug)).toBe(true);
    await suite.put('/authorization/roles/admin-of-workspace/permissions', { permissions: [READ] }).expect(200);
    expect(await check(ada, project, slug)).toBe(false);
    await suite.post('/authorization/roles/admin-of-workspace/permissions', { slug }).expect(200);
    expect(await check(ada, project, slug)).toBe(true);
    await suite.delete(`/authorization/permissions/${slug}`).expect(204);
    await suite.post(path(ada, 'check'), { permission_slug: slug, resource_id: project }).expect(404);
    await create();
    expect(await check(ada, project, slug)).toBe(false);
  });

  it('with the role, also where another takes its slug', async () => {
    const [ada, { project }] = [await acme.membership(), await tree()];
    const roles = `/authorization/organizations/${acme.id}/roles`;
    const create = async (): Promise<void> => {
      await suite.post(roles, { slug: 'org-passing', name: 'Passing', resource_type_slug: 'organization' }).expect(201);
      await suite.put(`${roles}/org-passing/permissions`, { permissions: [READ] }).expect(200);
    };
    await create();
    const given = await assign(ada, 'org-passing', acme.root);
    expect(await check(ada, project)).toBe(true);
    await suite.delete(path(ada, `role_assignments/${given.id}`)).expect(204);
    await suite.delete(`${roles}/org-passing`).expect(204);
    await create();
    expect(await check(ada, project)).toBe(false);
  });

  it('with the group, with its assignment, and with having left it', async () => {
    const [ada, { workspace, project }] = [await acme.membership(), await tree()];
    const group = await acme.group(ada);
    const { id } = await assignGroup(group, 'admin-of-workspace', workspace);
    expect(await check(ada, project)).toBe(true);
    await acme.leave(group, ada);
    expect(await check(ada, project)).toBe(false);
    await acme.join(group, ada);
    expect(await check(ada, project)).toBe(true);
    await suite.delete(`/authorization/groups/${group}/role_assignments/${id}`).expect(204);
    expect(await check(ada, project)).toBe(false);
    await assignGroup(group, 'admin-of-workspace', workspace);
    expect(await check(ada, project)).toBe(true);
    await suite.delete(`/organizations/${acme.id}/groups/${group}`).expect(204);
    expect(await check(ada, project)).toBe(false);
    await acme.group(ada);
    expect(await check(ada, project)).toBe(false);
  });

  it('with the organization', async () => {
    const gone = await GivenOrganization.create(suite);
    const [ada, project] = [await gone.membership(), await gone.project()];
    await assign(ada, 'editor', project);
    expect(await check(ada, project)).toBe(true);
    await suite.delete(`/organizations/${gone.id}`).expect(202);
    await suite.post(path(ada, 'check'), { permission_slug: READ, resource_id: project }).expect(404);
    await suite.get(`/authorization/resources/${project}/organization_memberships?permission_slug=${READ}`).expect(404);
  });
});

describe('a check', () => {
  it('takes either name of a resource, also that of the organization', async () => {
    const [ada, project] = [await acme.membership(), await acme.project('named both ways')];
    await assign(ada, 'editor', project);
    const asked = (fields: object) => suite.post(path(ada, 'check'), { permission_slug: READ, ...fields });
    await asked({ resource_external_id: 'named both ways', resource_type_slug: 'project' }).expect(200, { authorized: true });
    await asked({ resource_id: project, resource_type_slug: 'project' }).expect(200, { authorized: true });
    await asked({ resource_external_id: acme.id, resource_type_slug: 'organization' }).expect(200, { authorized: false });
  });

  it('refuses what does not exist, and what is of another organization or environment, in the same way', async () => {
    const [ada, { project }] = [await acme.membership(), await tree()];
    const [other, foreign] = [await GivenOrganization.create(suite), await suite.otherEnvironment()];
    const asked = { permission_slug: READ, resource_id: project };
    for (const membership of [`om_${NEVER}`, 'om_1', 'nobody']) await suite.post(path(membership, 'check'), asked).expect(404, { code: 'entity_not_found' });
    await foreign.post(path(ada, 'check'), asked).expect(404, { code: 'entity_not_found' });
    for (const resource of [`authz_resource_${NEVER}`, await other.project(), other.root])
      await suite.post(path(ada, 'check'), { ...asked, resource_id: resource }).expect(404, { code: 'entity_not_found', entity_id: resource });
    await suite.post(path(ada, 'check'), { ...asked, permission_slug: 'never' }).expect(404, { code: 'entity_not_found', entity_id: 'never' });
    await suite.post(path(ada, 'check'), { permission_slug: READ, resource_external_id: 'x', resource_type_slug: 'never' }).expect(404);
    for (const named of [{}, { resource_external_id: 'x' }, { resource_type_slug: 'project' }, { resource_id: project, resource_external_id: 'x' }])
      await suite.post(path(ada, 'check'), { permission_slug: READ, ...named }).expect(422, { code: 'invalid_request_parameters' });
    await suite.post(path(ada, 'check'), { resource_id: project }).expect(422);
  });

  it('is not replayed for an Idempotency-Key', async () => {
    const [ada, project] = [await acme.membership(), await acme.project()];
    const asked = () => suite.post(path(ada, 'check'), { permission_slug: READ, resource_id: project }, { 'Idempotency-Key': `key-${ada}` });
    await assign(ada, 'editor', project);
    await asked().expect(200, { authorized: true });
    await suite.delete(path(ada, 'role_assignments'), { role_slug: 'editor', resource_id: project }).expect(204);
    await asked().expect(200, { authorized: false });
  });

  it('knows everything after a restart', async () => {
    const [ada, bob, { workspace, project }] = [await acme.membership(), await acme.membership(), await tree()];
    await assign(ada, 'admin-of-workspace', workspace);
    const group = await acme.group(bob);
    await assignGroup(group, 'editor', project);
    await suite.restart();
    expect(await check(ada, project)).toBe(true);
    expect(await check(bob, project)).toBe(true);
    expect(await check(bob, workspace)).toBe(false);
  });
});

describe('several checks at once', () => {
  it('are answered in order', async () => {
    const [ada, { workspace, project }] = [await acme.membership(), await tree()];
    await assign(ada, 'editor', project);
    const checks = [
      { permission_slug: READ, resource_id: project },
      { permission_slug: READ, resource_id: workspace },
      { permission_slug: WRITE, resource_id: project },
    ];
    const { results } = await suite.post(path(ada, 'check_batch'), { checks }).expect(200);
    expect(results).toEqual([{ authorized: true }, { authorized: false }, { authorized: false }]);
  });

  it('are at most 100, and all refused with one', async () => {
    const [ada, project] = [await acme.membership(), await acme.project()];
    const asked = { permission_slug: READ, resource_id: project };
    await suite.post(path(ada, 'check_batch'), { checks: [] }).expect(422);
    await suite.post(path(ada, 'check_batch'), { checks: Array.from({ length: 101 }, () => asked) }).expect(422);
    const { results } = await suite.post(path(ada, 'check_batch'), { checks: Array.from({ length: 100 }, () => asked) }).expect(200);
    expect(results).toHaveLength(100);
    await suite.post(path(ada, 'check_batch'), { checks: [asked, { ...asked, permission_slug: 'never' }] }).expect(404, { entity_id: 'never' });
    const answer = await suite.post(path(ada, 'check_batch'), { checks: [asked, { permission_slug: READ }] }).expect(422);
    expect(answer.errors[0].field).toBe('checks.1.resource_id');
  });
});

describe('an explanation', () => {
  const explain = (membership: string, resource: string, permission = READ) =>
    suite.post(path(membership, 'check/explain'), { permission_slug: permission, resource_id: resource }).expect(200);

  it('tells every role that gives the permission, from the resource upwards', async () => {
    const [ada, { workspace, project }] = [await acme.membership(), await tree()];
    const group = await acme.group(ada);
    await assign(ada, 'editor', project);
    await assignGroup(group, 'admin-of-workspace', workspace);
    await suite.put(`/user_management/organization_memberships/${ada}`, { role_slug: 'viewer' }).expect(200);
    const explanation = await explain(ada, project);
    expect(explanation).toMatchObject({ authorized: true, permission_slug: READ, resource_id: project, near_misses: [], has_more: false });
    expect(explanation.chains).toEqual([
      expect.objectContaining({ role: { slug: 'editor' }, source: 'direct', group_id: null, inherited: false }),
      {
        role: { slug: 'admin-of-workspace' },
        source: 'group',
        group_id: group,
        resource: expect.objectContaining({ id: workspace, resource_type_slug: 'workspace' }),
        inherited: true,
      },
      {
        role: { slug: 'viewer' },
        source: 'organization_role',
        group_id: null,
        resource: { id: acme.root, external_id: acme.id, resource_type_slug: 'organization' },
        inherited: true,
      },
    ]);
  });

  it('tells of a refusal what nearly gives it', async () => {
    const [ada, { workspace, project }] = [await acme.membership(), await tree()];
    const elsewhere = await acme.project();
    await assign(ada, 'reviewer', project);
    await assign(ada, 'editor', elsewhere);
    const explanation = await explain(ada, project);
    expect(explanation).toMatchObject({ authorized: false, chains: [], has_more: false });
    expect(explanation.near_misses).toEqual([
      expect.objectContaining({ reason: 'role_without_permission', role: { slug: 'reviewer' }, source: 'direct' }),
      expect.objectContaining({ reason: 'role_without_permission', role: { slug: 'member' }, source: 'organization_role' }),
      expect.objectContaining({ reason: 'role_elsewhere', role: { slug: 'editor' }, resource: expect.objectContaining({ id: elsewhere }) }),
    ]);
    await assign(ada, 'admin-of-workspace', workspace);
    await suite.put(`/user_management/organization_memberships/${ada}/deactivate`).expect(200);
    const suspended = await explain(ada, project);
    expect(suspended).toMatchObject({ authorized: false, chains: [] });
    expect(suspended.near_misses).toContainEqual(
      expect.objectContaining({ reason: 'membership_not_active', role: { slug: 'admin-of-workspace' }, resource: expect.objectContaining({ id: workspace }) }),
    );
  });
});

/** Everything on a list, by pages of that size, each of which is full but the last. */
async function listed(path: string, limit: number, order: string): Promise<readonly string[]> {
  const all: string[] = [];
  for (let after: string | null = null; ;) {
    const { data, list_metadata } = await suite
      .get(`${path}${path.includes('?') ? '&' : '?'}limit=${limit}&order=${order}${after === null ? '' : `&after=${after}`}`)
      .expect(200);
    all.push(...data.map(({ id }: { id: string }) => id));
    after = list_metadata.after;
    if (after === null) return all;
    expect(data).toHaveLength(limit);
  }
}

async function isListed(path: string, ids: readonly string[]): Promise<void> {
  const ascending = [...ids].sort();
  for (const limit of [1, 2, 100]) {
    expect(await listed(path, limit, 'asc')).toEqual(ascending);
    expect(await listed(path, limit, 'desc')).toEqual(ascending.toReversed());
  }
}

describe('the resources under another one that a membership has a permission on', () => {
  const accessible = (membership: string, parent: string) => `${path(membership, 'resources')}?permission_slug=${READ}&parent_resource_id=${parent}`;

  it('are all of them where the permission is inherited, and those with a role otherwise', async () => {
    const [ada, bob, workspace] = [await acme.membership(), await acme.membership(), await acme.workspace('of discovery')];
    const projects: string[] = [];
    for (let index = 0; index < 5; index++) projects.push(await acme.project(undefined, workspace));
    await isListed(accessible(ada, workspace), []);
    await assign(ada, 'editor', projects[3]!);
    await assignGroup(await acme.group(ada), 'editor', projects[1]!);
    await assign(ada, 'reviewer', projects[0]!);
    await isListed(accessible(ada, workspace), [projects[1]!, projects[3]!]);
    await assign(bob, 'admin-of-workspace', workspace);
    await isListed(accessible(bob, workspace), projects);
    await isListed(
      `${path(bob, 'resources')}?permission_slug=${READ}&parent_resource_external_id=of%20discovery&parent_resource_type_slug=workspace`,
      projects,
    );
    const page = await suite.get(`${accessible(bob, workspace)}&limit=2&before=${projects[1]}`).expect(200);
    expect(page.data.map(({ id }: { id: string }) => id)).toEqual([projects[3], projects[2]]);
    await suite.delete(`/authorization/resources/${projects[2]}?cascade_delete=true`).expect(204);
    await isListed(accessible(bob, workspace), projects.toSpliced(2, 1));
    const after = await suite.get(`${accessible(bob, workspace)}&limit=2&order=asc&after=${projects[2]}`).expect(200);
    expect(after).toMatchObject({ data: [{ id: projects[3] }, { id: projects[4] }], list_metadata: { before: projects[3], after: null } });
    await suite.put(`/user_management/organization_memberships/${bob}/deactivate`).expect(200);
    await isListed(accessible(bob, workspace), []);
  });

  it('are those right under it alone', async () => {
    const [ada, { workspace, project }] = [await acme.membership(), await tree()];
    await assign(ada, 'editor', project);
    await isListed(accessible(ada, acme.root), []);
    await isListed(accessible(ada, workspace), [project]);
  });

  it('need a parent that exists, and a cursor that was one', async () => {
    const ada = await acme.membership();
    await suite.get(`${path(ada, 'resources')}?permission_slug=${READ}`).expect(422);
    await suite.get(`${path(ada, 'resources')}?parent_resource_id=${acme.root}`).expect(422);
    await suite.get(accessible(ada, `authz_resource_${NEVER}`)).expect(404);
    await suite.get(`${accessible(ada, acme.root)}&after=authz_resource_${NEVER}`).expect(422);
  });
});

describe('the memberships that have a permission on a resource', () => {
  const having = (resource: string, assignment = '') =>
    `/authorization/resources/${resource}/organization_memberships?permission_slug=${READ}${assignment === '' ? '' : `&assignment=${assignment}`}`;

  it('are told apart by where their roles are', async () => {
    const beta = await GivenOrganization.create(suite);
    const [ada, bob, cyd, dan, eve] = [
      await beta.membership(),
      await beta.membership(),
      await beta.membership(),
      await beta.membership(),
      await beta.membership(),
    ];
    const workspace = await beta.workspace();
    const project = await beta.project('of holders', workspace);
    await assign(ada, 'editor', project);
    await assign(bob, 'admin-of-workspace', workspace);
    await assignGroup(await beta.group(cyd, ada), 'admin-of-workspace', workspace);
    await suite.put(`/user_management/organization_memberships/${dan}`, { role_slug: 'viewer' }).expect(200);
    await assign(eve, 'reviewer', project);
    await isListed(having(project), [ada, bob, cyd, dan]);
    await isListed(having(project, 'direct'), [ada]);
    await isListed(having(project, 'indirect'), [ada, bob, cyd, dan]);
    await isListed(having(beta.root, 'direct'), [dan]);
    await isListed(having(beta.root, 'indirect'), []);
    const byExternalId = `/authorization/organizations/${beta.id}/resources/project/of%20holders/organization_memberships?permission_slug=${READ}`;
    await isListed(byExternalId, [ada, bob, cyd, dan]);
    const { data } = await suite.get(`${having(project)}&order=asc`).expect(200);
    expect(data[0]).toMatchObject({ object: 'organization_membership', id: ada, status: 'active', user: { object: 'user' } });
    await suite.put(`/user_management/organization_memberships/${bob}/deactivate`).expect(200);
    await isListed(having(project), [ada, cyd, dan]);
    await suite.get(`${having(project)}&assignment=never`).expect(422);
    await suite.get(`${having(project)}&after=om_${NEVER}`).expect(422);
  });
});

describe('the permissions that a membership has on a resource', () => {
  it('are those of all of its roles there', async () => {
    const [ada, workspace] = [await acme.membership(), await acme.workspace()];
    const project = await acme.project('of permissions', workspace);
    await suite.post('/authorization/roles', { slug: 'writer', name: 'Writer', resource_type_slug: 'project' }).expect(201);
    await suite.put('/authorization/roles/writer/permissions', { permissions: [WRITE] }).expect(200);
    const slugs = async (rest: string) => (await suite.get(path(ada, rest)).expect(200)).data.map(({ slug }: { slug: string }) => slug).sort();
    expect(await slugs(`resources/${project}/permissions`)).toEqual([]);
    await assign(ada, 'writer', project);
    await assign(ada, 'admin-of-workspace', workspace);
    expect(await slugs(`resources/${project}/permissions`)).toEqual([READ, WRITE]);
    expect(await slugs('resources/project/of%20permissions/permissions')).toEqual([READ, WRITE]);
    expect(await slugs(`resources/${workspace}/permissions`)).toEqual([READ]);
    const [first] = (await suite.get(path(ada, `resources/${project}/permissions?limit=1&order=asc`)).expect(200)).data;
    const next = await suite.get(path(ada, `resources/${project}/permissions?order=asc&after=${first.id}`)).expect(200);
    expect(next.data).toHaveLength(1);
    await suite.get(path(ada, `resources/authz_resource_${NEVER}/permissions`)).expect(404);
    await suite.get(path(`om_${NEVER}`, `resources/${project}/permissions`)).expect(404);
  });
});
