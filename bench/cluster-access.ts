import type { Cluster } from '#libs/testing/src/cluster/cluster';
import { made } from './cluster-ground.ts';

const PROJECTS = 100;
const MEMBERSHIPS = 100;
const TOGETHER = 16;

/** Makes an organization in which everybody may view four of its projects, and answers every question there is about it, as lines for wrk to post. */
export async function accessQuestions(cluster: Cluster): Promise<readonly string[]> {
  const post = (path: string, body: object): Promise<{ readonly id: string }> => made(cluster, path, body);
  await post('/admin/resource_types', { slug: 'project', name: 'Project', parent_type_slugs: ['organization'] });
  await post('/authorization/permissions', { slug: 'view', name: 'View' });
  await post('/authorization/roles', { slug: 'viewer', name: 'Viewer', resource_type_slug: 'project' });
  await post('/authorization/roles/viewer/permissions', { slug: 'view' });
  const { id: organization_id } = await post('/organizations', { name: 'Bench' });
  const projects = await all(PROJECTS, async (index) => {
    const body = { organization_id, resource_type_slug: 'project', external_id: `${index}`, name: `Project ${index}` };
    return (await post('/authorization/resources', body)).id;
  });
  const memberships = await all(MEMBERSHIPS, async (index) => {
    const { id: user_id } = await post('/user_management/users', { email: `user-${index}@bench.test` });
    const { id } = await post('/user_management/organization_memberships', { user_id, organization_id });
    for (let turn = 0; turn < 4; turn++)
      await post(`/authorization/organization_memberships/${id}/role_assignments`, {
        role_slug: 'viewer',
        resource_id: projects[(index * 7 + turn * 13) % PROJECTS]!,
      });
    return id;
  });
  return memberships.flatMap((membership) =>
    projects.map((resource_id) => `/authorization/organization_memberships/${membership}/check ${JSON.stringify({ permission_slug: 'view', resource_id })}`),
  );
}

/** Some at a time, in the order in which they were asked for. */
async function all<Made>(amount: number, make: (index: number) => Promise<Made>): Promise<Made[]> {
  const results: Made[] = [];
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun < amount) {
      const index = begun++;
      results[index] = await make(index);
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));
  return results;
}
