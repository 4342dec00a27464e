import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { until } from '#libs/testing/src/until';

const NOBODY = 'directory_group_01HZZZZZZZZZZZZZZZZZZZZZZZ';

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

/** An organization with a directory. */
class GivenDirectory {
  private constructor(
    readonly organization: string,
    readonly id: string,
    private readonly token: string,
    private readonly caller: Caller,
  ) {}

  static async open(organization?: string, caller: Caller = suite): Promise<GivenDirectory> {
    const of = organization ?? (await caller.post('/organizations', { name: 'Acme' }).expect(201)).id;
    const { id } = await caller.post('/admin/directories', { organization_id: of, type: 'okta scim v2.0', name: 'People' }).expect(201);
    const { token } = await caller.post(`/admin/directories/${id}/tokens`).expect(201);
    return new GivenDirectory(of, id, token, caller);
  }

  get roles(): string {
    return `/authorization/organizations/${this.organization}/roles`;
  }

  get path(): string {
    return `/admin/directories/${this.id}/role_mappings`;
  }

  async group(displayName: string): Promise<string> {
    return (await this.caller.scim('POST', this.id, '/Groups', this.token, { body: { displayName } })).body.id;
  }

  async deleteGroup(id: string): Promise<void> {
    expect((await this.caller.scim('DELETE', this.id, `/Groups/${id}`, this.token)).status).toBe(204);
  }

  set(...pairs: readonly (readonly [group_id: string, role_slug: string])[]) {
    return this.caller.put(this.path, { role_mappings: pairs.map(([group_id, role_slug]) => ({ group_id, role_slug })) });
  }

  async shown(): Promise<readonly (readonly [string, string])[]> {
    const { data } = await this.caller.get(this.path).expect(200, { object: 'list' });
    return data.map(({ group_id, role_slug }: { readonly group_id: string; readonly role_slug: string }) => [group_id, role_slug]);
  }
}

/** What the log says that is mapped in a directory. */
async function recorded({ id }: GivenDirectory): Promise<number> {
  const changes = (await suite.records()).filter(({ type }) => type === 'role_mappings.changed').map(({ data }) => data as MappingsChanged);
  return changes.filter(({ directory_id }) => directory_id === id).reduce((count, { added, removed }) => count + added.length - removed.length, 0);
}

interface MappingsChanged {
  readonly directory_id: string;
  readonly added: readonly unknown[];
  readonly removed: readonly unknown[];
}

describe('what the groups of a directory give', () => {
  it('is nothing at first, and what it is set to at once, each time as a whole', async () => {
    const directory = await GivenDirectory.open();
    await suite.post(directory.roles, { slug: 'org-auditor', name: 'Auditor' }).expect(201);
    const [one, other] = [await directory.group('One'), await directory.group('Other')];
    expect(await directory.shown()).toEqual([]);
    const answer = await directory.set([one, 'org-auditor'], [one, 'admin'], [one, 'admin'], [other, 'admin']).expect(200);
    expect(answer).toEqual({
      object: 'list',
      data: [
        { object: 'role_mapping', group_id: one, role_slug: 'org-auditor' },
        { object: 'role_mapping', group_id: one, role_slug: 'admin' },
        { object: 'role_mapping', group_id: other, role_slug: 'admin' },
      ],
      list_metadata: { before: null, after: null },
    });
    expect(await suite.get(directory.path).expect(200)).toEqual(answer);
    await directory.set([other, 'admin'], [other, 'org-auditor']).expect(200);
    expect(await directory.shown()).toEqual([
      [other, 'admin'],
      [other, 'org-auditor'],
    ]);
    // Another directory of the organization has its own.
    expect(await (await GivenDirectory.open(directory.organization)).shown()).toEqual([]);
    await directory.set().expect(200, { data: [] });
  });

  it('is refused where a group, a role or the directory is not there, or the role is not for organizations', async () => {
    const directory = await GivenDirectory.open();
    const neighbour = await GivenDirectory.open(directory.organization);
    const group = await directory.group('One');
    await suite.post('/admin/resource_types', { slug: 'room', name: 'Room', parent_type_slugs: ['organization'] }).expect(201);
    await suite.post('/authorization/roles', { slug: 'tenant', name: 'Tenant', resource_type_slug: 'room' }).expect(201);
    await directory.set([group, 'member'], [group, 'tenant']).expect(422, {
      code: 'sub_resource_scoped_role_not_allowed',
      role_slug: 'tenant',
      errors: [{ field: 'role_mappings.1.role_slug' }],
    });
    await directory.set([group, 'org-nobody']).expect(404, { code: 'entity_not_found', entity_id: 'org-nobody' });
    await directory.set([NOBODY, 'member']).expect(404, { entity_id: NOBODY });
    await directory.set([await neighbour.group('Theirs'), 'member']).expect(404);
    await suite.put(directory.path, { role_mappings: Array.from({ length: 501 }, () => ({ group_id: group, role_slug: 'member' })) }).expect(422);
    expect(await recorded(directory)).toBe(0);
    await suite.delete(`/directories/${directory.id}`).expect(202);
    await directory.set([group, 'member']).expect(404, { entity_id: directory.id });
    await suite.get(directory.path).expect(404, { entity_id: directory.id });
  });

  it('keeps a custom role from being deleted', async () => {
    const directory = await GivenDirectory.open();
    await suite.post(directory.roles, { slug: 'org-auditor', name: 'Auditor' }).expect(201);
    const group = await directory.group('One');
    await directory.set([group, 'org-auditor']).expect(200);
    await suite.delete(`${directory.roles}/org-auditor`).expect(409, { code: 'role_has_group_role_mappings' });
    await suite.get(`${directory.roles}/org-auditor`).expect(200);
    await directory.set().expect(200);
    await suite.delete(`${directory.roles}/org-auditor`).expect(204);
    await directory.set([group, 'org-auditor']).expect(404, { entity_id: 'org-auditor' });
  });

  it('is one order with deletions of the role: both are never told that it is done', async () => {
    const directory = await GivenDirectory.open();
    const group = await directory.group('One');
    for (let round = 0; round < 8; round++) {
      const slug = `org-race-${round}`;
      await suite.post(directory.roles, { slug, name: slug }).expect(201);
      const [removed, set] = await Promise.all([suite.delete(`${directory.roles}/${slug}`), directory.set([group, slug])]);
      expect([removed.status, set.status]).not.toEqual([204, 200]);
      expect(await directory.shown()).toEqual(set.status === 200 ? [[group, slug]] : expect.not.arrayContaining([[group, slug]]));
    }
  });

  it('ends with its group, with a role of the environment and with its directory, at once', async () => {
    const directory = await GivenDirectory.open();
    const [one, other] = [await directory.group('One'), await directory.group('Other')];
    await suite.post('/authorization/roles', { slug: 'visitor', name: 'Visitor' }).expect(201);
    await directory.set([one, 'admin'], [other, 'visitor'], [other, 'admin']).expect(200);
    await directory.deleteGroup(one);
    expect(await directory.shown()).toEqual([
      [other, 'visitor'],
      [other, 'admin'],
    ]);
    await suite.delete('/admin/roles/visitor').expect(204);
    // Another role of that slug is another role.
    await suite.post('/authorization/roles', { slug: 'visitor', name: 'Visitor' }).expect(201);
    expect(await directory.shown()).toEqual([[other, 'admin']]);
    await until(async () => (await recorded(directory)) === 1);
    await suite.delete(`/directories/${directory.id}`).expect(202);
    await until(async () => (await recorded(directory)) === 0);
  });
});
