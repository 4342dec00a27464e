import { randomUUID } from 'node:crypto';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const MEMBERSHIPS = '/user_management/organization_memberships';
const SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';

let suite: GivenSuite;
beforeAll(async () => {
  suite = await givenSuite();
  for (const slug of ['edit', 'audit']) {
    await suite.post('/authorization/permissions', { slug, name: slug }).expect(201);
    await suite.post('/authorization/roles', { slug: `${slug}or`, name: slug }).expect(201);
    await suite.put(`/authorization/roles/${slug}or/permissions`, { permissions: [slug] }).expect(200);
  }
});

/** An organization whose people a directory brings, with roles. */
class World {
  private constructor(
    readonly organization: string,
    private readonly domain: string,
    readonly directory: string,
    private readonly token: string,
  ) {}

  static async open(): Promise<World> {
    const domain = `${randomUUID()}.test`;
    const { id } = await suite.post('/organizations', { name: 'Acme', domain_data: [{ domain, state: 'verified' }] }).expect(201);
    const policy = { follows: 'memberships_and_roles' };
    const directory = await suite.post('/admin/directories', { organization_id: id, type: 'generic scim v2.0', name: 'People', policy }).expect(201);
    const { token } = await suite.post(`/admin/directories/${directory.id}/tokens`).expect(201);
    return new World(id, domain, directory.id, token);
  }

  /** A person, and the membership that they manage. */
  async person(name = randomUUID()): Promise<{ readonly id: string; readonly membership: string; readonly email: string }> {
    const email = `${name}@${this.domain}`;
    const { id } = await this.ask('POST', '/Users', { userName: name, emails: [{ value: email, primary: true }], active: true });
    await suite.eventually(`/directory_users/${id}`, { link_state: 'linked' });
    const user = (await suite.get(`/user_management/users?email=${encodeURIComponent(email)}`).expect(200)).data[0];
    const { data } = await suite.get(`${MEMBERSHIPS}?organization_id=${this.organization}&user_id=${user.id}`).expect(200);
    return { id, membership: data[0].id, email };
  }

  async group(displayName: string, ...people: readonly string[]): Promise<string> {
    return (await this.ask('POST', '/Groups', { displayName, members: people.map((value) => ({ value })) })).id;
  }

  change(group: string, op: 'add' | 'remove', person: string): Promise<unknown> {
    const operation = op === 'add' ? { op, path: 'members', value: [{ value: person }] } : { op, path: `members[value eq "${person}"]` };
    return this.ask('PATCH', `/Groups/${group}`, { schemas: [SCHEMA], Operations: [operation] });
  }

  remove(group: string): Promise<unknown> {
    return this.ask('DELETE', `/Groups/${group}`);
  }

  map(...pairs: readonly (readonly [group_id: string, role_slug: string])[]): Promise<unknown> {
    const role_mappings = pairs.map(([group_id, role_slug]) => ({ group_id, role_slug }));
    return suite.put(`/admin/directories/${this.directory}/role_mappings`, { role_mappings }).expect(200);
  }

  follow(follows: string): Promise<unknown> {
    return suite.patch(`/admin/directories/${this.directory}`, { policy: { follows } }).expect(200);
  }

  /** Which of the two permissions a membership has: asked once. */
  async may(membership: string): Promise<readonly string[]> {
    const checks = ['edit', 'audit'].map((permission_slug) => ({
      permission_slug,
      resource_external_id: this.organization,
      resource_type_slug: 'organization',
    }));
    const { results } = await suite.post(`/authorization/organization_memberships/${membership}/check_batch`, { checks }).expect(200);
    return ['edit', 'audit'].filter((_, place) => results[place].authorized === true);
  }

  private async ask(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) {
    const answer = await suite.scim(method, this.directory, path, this.token, { body });
    expect([200, 201, 204]).toContain(answer.status);
    return answer.body;
  }
}

const shows = (membership: string, ...slugs: readonly string[]) =>
  suite.eventually(`${MEMBERSHIPS}/${membership}`, { role: { slug: slugs[0] }, roles: slugs.map((slug) => ({ slug })) });

describe('the roles of a membership that a directory manages', () => {
  it('are those of its groups, with the very next request, and then those that were given by hand', async () => {
    const world = await World.open();
    const ada = await world.person();
    const group = await world.group('Editors');
    await world.map([group, 'editor']);
    expect(await world.may(ada.membership)).toEqual([]);
    await world.change(group, 'add', ada.id);
    expect(await world.may(ada.membership)).toEqual(['edit']);
    await shows(ada.membership, 'editor');
    // Kept, for the day when no group gives any.
    await suite.put(`${MEMBERSHIPS}/${ada.membership}`, { role_slug: 'auditor' }).expect(200, { role: { slug: 'editor' } });
    expect(await world.may(ada.membership)).toEqual(['edit']);
    await world.change(group, 'remove', ada.id);
    expect(await world.may(ada.membership)).toEqual(['audit']);
    await shows(ada.membership, 'auditor');
    await eventually(async () => {
      const { data } = await suite.get(`/events?events=organization_membership.updated&organization_id=${world.organization}`).expect(200);
      expect(data.map((event: { readonly data: { readonly role: { readonly slug: string } } }) => event.data.role.slug)).toEqual([
        'editor',
        'editor',
        'auditor',
      ]);
    });
  });

  it('are in tokens', async () => {
    const world = await World.open();
    const ada = await world.person();
    await world.map([await world.group('Editors', ada.id), 'editor']);
    const { code } = await suite.post('/user_management/magic_auth', { email: ada.email }).expect(201);
    const client = { client_id: await suite.clientIdOf(suite), client_secret: suite.key };
    const grant_type = 'urn:workos:oauth:grant-type:magic-auth:code';
    const { access_token } = await suite.post('/user_management/authenticate', { ...client, grant_type, email: ada.email, code }).expect(200);
    const claims = JSON.parse(Buffer.from(access_token.split('.')[1], 'base64url').toString());
    expect(claims).toMatchObject({ org_id: world.organization, role: 'editor', roles: ['editor'], permissions: ['edit'] });
  });

  it('follow mappings, and end with the group, its mapping and the policy', async () => {
    const world = await World.open();
    const ada = await world.person();
    const [editors, auditors] = [await world.group('Editors', ada.id), await world.group('Auditors', ada.id)];
    await world.map([editors, 'editor'], [auditors, 'auditor']);
    expect(await world.may(ada.membership)).toEqual(['edit', 'audit']);
    await shows(ada.membership, 'editor', 'auditor');
    await world.remove(editors);
    expect(await world.may(ada.membership)).toEqual(['audit']);
    await shows(ada.membership, 'auditor');
    await world.follow('memberships');
    expect(await world.may(ada.membership)).toEqual([]);
    await shows(ada.membership, 'member');
    await world.follow('memberships_and_roles');
    expect(await world.may(ada.membership)).toEqual(['audit']);
    await shows(ada.membership, 'auditor');
    await world.map();
    expect(await world.may(ada.membership)).toEqual([]);
    await shows(ada.membership, 'member');
  });

  it('end with the directory', async () => {
    const world = await World.open();
    const ada = await world.person();
    await world.map([await world.group('Editors', ada.id), 'editor']);
    await shows(ada.membership, 'editor');
    await suite.delete(`/directories/${world.directory}`).expect(202);
    expect(await world.may(ada.membership)).toEqual([]);
    await shows(ada.membership, 'member');
  });

  it('are those of everybody in the group, more than are followed at once', async () => {
    const world = await World.open();
    const people = await Promise.all(Array.from({ length: 30 }, () => world.person()));
    const group = await world.group('Editors', ...people.map(({ id }) => id));
    await world.map([group, 'editor']);
    for (const { membership } of people) await shows(membership, 'editor');
    await world.remove(group);
    expect(await world.may(people.at(-1)!.membership)).toEqual([]);
    for (const { membership } of people) await shows(membership, 'member');
  });

  // Last: the environment has it from here on.
  it('are one where memberships have one role, by the order of priority', async () => {
    const world = await World.open();
    const ada = await world.person();
    const groups = [await world.group('Editors', ada.id), await world.group('Auditors', ada.id)] as const;
    await world.map([groups[0], 'editor'], [groups[1], 'auditor']);
    await shows(ada.membership, 'editor', 'auditor');
    await suite.patch('/admin/environment_settings', { multiple_roles: false }).expect(200);
    expect(await world.may(ada.membership)).toEqual(['edit']);
    await shows(ada.membership, 'editor');
    await suite.put('/admin/roles/priority', { role_slugs: ['auditor'] }).expect(200);
    expect(await world.may(ada.membership)).toEqual(['audit']);
    await shows(ada.membership, 'auditor');
    await suite.delete('/admin/roles/auditor').expect(204);
    expect(await world.may(ada.membership)).toEqual(['edit']);
    await shows(ada.membership, 'editor');
  });
});
