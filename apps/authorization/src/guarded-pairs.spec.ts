import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

/** How often each pair is raced: what is not guarded is met in most of the rounds. */
const ROUNDS = 10;

interface Outcome {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

const isDone = ({ status }: Outcome): boolean => status < 300;

/**
 * Who begins to hang on something, and who takes it away unless something hangs on it, at the same time: one of them may be told that it is done, or none.
 */
describe('of two that race', () => {
  let suite: GivenSuite;
  let number = 0;
  beforeAll(async () => void (suite = await givenSuite()));

  const name = (kind: string) => `${kind}-${++number}`;
  const type = async (...parent_type_slugs: readonly string[]): Promise<string> => {
    const slug = name('type');
    await suite.post('/admin/resource_types', { slug, name: slug, parent_type_slugs }).expect(201);
    return slug;
  };
  const organization = async (): Promise<string> => (await suite.post('/organizations', { name: name('Acme') }).expect(201)).id;
  const membership = async (organization_id: string): Promise<string> => {
    const user = await suite.post('/user_management/users', { email: `${name('member')}@acme.test` }).expect(201);
    return (await suite.post('/user_management/organization_memberships', { organization_id, user_id: user.id }).expect(201)).id;
  };
  const resource = (organization_id: string, resource_type_slug: string, parent: object = {}) =>
    suite.post('/authorization/resources', { organization_id, resource_type_slug, external_id: name('thing'), name: 'Thing', ...parent });
  const customRole = (organization_id: string, resource_type_slug?: string) =>
    suite.post(`/authorization/organizations/${organization_id}/roles`, { name: 'Role', slug: `org-${name('role')}`, resource_type_slug });

  /** Both at once, now one and now the other a little ahead. */
  async function race(round: number, create: () => PromiseLike<Outcome>, remove: () => PromiseLike<Outcome>): Promise<readonly [Outcome, Outcome]> {
    const later = async (milliseconds: number, work: () => PromiseLike<Outcome>): Promise<Outcome> => {
      if (milliseconds > 0) await new Promise((resolve) => setTimeout(resolve, milliseconds));
      return work();
    };
    const ahead = (round % 5) - 2;
    return Promise.all([later(Math.max(0, ahead), create), later(Math.max(0, -ahead), remove)]);
  }

  /** Neither may have failed otherwise than by a refusal. */
  function expectOne([made, removed]: readonly [Outcome, Outcome], refusals: readonly number[]): void {
    expect([isDone(made), isDone(removed)]).not.toEqual([true, true]);
    for (const outcome of [made, removed]) if (!isDone(outcome)) expect(refusals).toContain(outcome.status);
  }

  it('a resource is put under a parent, or the type loses that parent type', async () => {
    const acme = await organization();
    for (let round = 0; round < ROUNDS; round++) {
      const above = await type('organization');
      const below = await type('organization', above);
      const parent = await resource(acme, above).expect(201);
      const outcome = await race(
        round,
        () => resource(acme, below, { parent_resource_id: parent.id }),
        () => suite.patch(`/admin/resource_types/${below}`, { parent_type_slugs: ['organization'] }),
      );
      expectOne(outcome, [400, 409]);
      const listed = await suite.get(`/authorization/resources?organization_id=${acme}&resource_type_slug=${below}`).expect(200);
      expect(listed.data).toHaveLength(isDone(outcome[0]) ? 1 : 0);
      const { parent_type_slugs } = await suite.get(`/admin/resource_types/${below}`).expect(200);
      expect(parent_type_slugs).toHaveLength(isDone(outcome[1]) ? 1 : 2);
    }
  });

  it('a resource is made, or its type is deleted', async () => {
    const acme = await organization();
    for (let round = 0; round < ROUNDS; round++) {
      const slug = await type('organization');
      const outcome = await race(
        round,
        () => resource(acme, slug),
        () => suite.delete(`/admin/resource_types/${slug}`),
      );
      expectOne(outcome, [404, 409]);
      if (isDone(outcome[0])) await suite.get(`/authorization/resources/${outcome[0].body.id}`).expect(200);
    }
    const { data } = await suite.get(`/authorization/resources?organization_id=${acme}&limit=100`).expect(200);
    const types = (await suite.get('/admin/resource_types?limit=100').expect(200)).data.map(({ slug }: { slug: string }) => slug);
    for (const { resource_type_slug } of data) expect(['organization', ...types]).toContain(resource_type_slug);
  });

  it('a role of an organization is made, or its type is deleted', async () => {
    const acme = await organization();
    for (let round = 0; round < ROUNDS; round++) {
      const slug = await type('organization');
      const outcome = await race(
        round,
        () => customRole(acme, slug),
        () => suite.delete(`/admin/resource_types/${slug}`),
      );
      expectOne(outcome, [404, 409]);
      const roles = (await suite.get(`/authorization/organizations/${acme}/roles`).expect(200)).data;
      expect(roles.filter((role: { resource_type_slug: string }) => role.resource_type_slug === slug)).toHaveLength(isDone(outcome[0]) ? 1 : 0);
    }
  });

  it('a membership is given a custom role on a resource, or the role is deleted', async () => {
    const acme = await organization();
    const member = await membership(acme);
    const slug = await type('organization');
    const { id: resource_id } = await resource(acme, slug).expect(201);
    const path = `/authorization/organization_memberships/${member}/role_assignments`;
    for (let round = 0; round < ROUNDS; round++) {
      const role = await customRole(acme, slug).expect(201);
      const outcome = await race(
        round,
        () => suite.post(path, { role_slug: role.slug, resource_id }),
        () => suite.delete(`/authorization/organizations/${acme}/roles/${role.slug}`),
      );
      expectOne(outcome, [404, 409]);
      const given = (await suite.get(`${path}?limit=100`).expect(200)).data.filter((one: { role: { slug: string } }) => one.role.slug === role.slug);
      expect(given).toHaveLength(isDone(outcome[0]) ? 1 : 0);
    }
  });

  it('a group is given a custom role, or the role is deleted', async () => {
    const acme = await organization();
    const group = await suite.post(`/organizations/${acme}/groups`, { name: name('Group') }).expect(201);
    const path = `/authorization/groups/${group.id}/role_assignments`;
    for (let round = 0; round < ROUNDS; round++) {
      const role = await customRole(acme).expect(201);
      const outcome = await race(
        round,
        () => (round % 2 === 0 ? suite.post(path, { role_slug: role.slug }) : suite.put(path, { role_assignments: [{ role_slug: role.slug }] })),
        () => suite.delete(`/authorization/organizations/${acme}/roles/${role.slug}`),
      );
      expectOne(outcome, [404, 409]);
      const given = (await suite.get(`${path}?limit=100`).expect(200)).data.filter((one: { role: { slug: string } }) => one.role.slug === role.slug);
      expect(given).toHaveLength(isDone(outcome[0]) ? 1 : 0);
    }
  });

  it('a membership has a custom role in its organization, or the role is deleted', async () => {
    const acme = await organization();
    const path = '/user_management/organization_memberships';
    for (let round = 0; round < ROUNDS; round++) {
      const role = await customRole(acme).expect(201);
      const isNew = round % 2 === 0;
      const member = isNew ? '' : await membership(acme);
      const user = isNew ? await suite.post('/user_management/users', { email: `${name('joins')}@acme.test` }).expect(201) : null;
      const outcome = await race(
        round,
        () =>
          isNew
            ? suite.post(path, { organization_id: acme, user_id: user.id, role_slug: role.slug })
            : suite.put(`${path}/${member}`, { role_slug: role.slug }),
        () => suite.delete(`/authorization/organizations/${acme}/roles/${role.slug}`),
      );
      expectOne(outcome, [404, 409, 422]);
      if (isDone(outcome[0])) await suite.get(`${path}/${outcome[0].body.id}`).expect(200, { role: { slug: role.slug } });
      else if (isNew) expect((await suite.get(`${path}?user_id=${user.id}`).expect(200)).data).toEqual([]);
      else await suite.get(`${path}/${member}`).expect(200, { role: { slug: 'member' } });
    }
  });

  it('a membership is given a role on a resource, or the resource is deleted', async () => {
    const acme = await organization();
    const member = await membership(acme);
    const slug = await type('organization');
    const role = await customRole(acme, slug).expect(201);
    const path = `/authorization/organization_memberships/${member}/role_assignments`;
    for (let round = 0; round < ROUNDS; round++) {
      const { id: resource_id } = await resource(acme, slug).expect(201);
      const outcome = await race(
        round,
        () => suite.post(path, { role_slug: role.slug, resource_id }),
        () => suite.delete(`/authorization/resources/${resource_id}`),
      );
      expectOne(outcome, [404, 409]);
      if (!isDone(outcome[1])) await suite.get(`/authorization/resources/${resource_id}`).expect(200);
      const given = (await suite.get(`${path}?resource_id=${resource_id}`).expect(200)).data;
      expect(given).toHaveLength(isDone(outcome[0]) ? 1 : 0);
    }
  });

  it('who ask for the same deletion, one does it, and the others find nothing', async () => {
    const acme = await organization();
    for (let round = 0; round < ROUNDS; round++) {
      const [deleted, other] = [await type('organization'), await type('organization')];
      const { id } = await resource(acme, other).expect(201);
      const role = await customRole(acme).expect(201);
      for (const path of [`/admin/resource_types/${deleted}`, `/authorization/resources/${id}`, `/authorization/organizations/${acme}/roles/${role.slug}`]) {
        const outcomes = await Promise.all([1, 2, 3].map(async () => (await suite.delete(path)).status));
        expect([path, ...outcomes.sort()]).toEqual([path, 204, 404, 404]);
      }
    }
  });

  it('a resource is put under another, or its type loses that parent type', async () => {
    const acme = await organization();
    for (let round = 0; round < ROUNDS; round++) {
      const above = await type('organization');
      const below = await type('organization', above);
      const parent = await resource(acme, above).expect(201);
      const moved = await resource(acme, below).expect(201);
      // Without the resource, there is nobody who could be moved: it is the one use that stands in the way.
      const outcome = await race(
        round,
        () => suite.patch(`/authorization/resources/${moved.id}`, { parent_resource_id: parent.id, name: 'Moved' }),
        () => suite.patch(`/admin/resource_types/${below}`, { parent_type_slugs: ['organization'] }),
      );
      expect(isDone(outcome[0])).toBe(true);
      expect(outcome[1].status).toBe(409);
    }
  });
});
