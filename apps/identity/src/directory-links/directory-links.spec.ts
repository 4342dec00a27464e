import { randomUUID } from 'node:crypto';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const USERS = '/user_management/users';
const MEMBERSHIPS = '/user_management/organization_memberships';
const INVITATIONS = '/user_management/invitations';
const ALL = 'statuses=active,inactive,pending';

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

interface World {
  readonly organization_id: string;
  /** Verified in the organization. */
  readonly domain: string;
  readonly directory: Awaited<ReturnType<typeof givenDirectory>>;
}

async function givenDirectory(organization_id: string, policy: object = { follows: 'memberships' }) {
  const { id } = await suite.post('/admin/directories', { organization_id, type: 'generic scim v2.0', name: 'D', policy }).expect(201);
  const { token } = await suite.post(`/admin/directories/${id}/tokens`).expect(201);
  const ask = async (method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object) => {
    const answer = await suite.scim(method, id, path, token, { body });
    expect([200, 201, 204]).toContain(answer.status);
    return answer.body;
  };
  return {
    id,
    person: async (email: string, fields: object = {}): Promise<string> =>
      (await ask('POST', '/Users', { userName: `${randomUUID()}`, emails: [{ value: email, primary: true }], active: true, ...fields })).id,
    change: (person: string, value: object) => ask('PATCH', `/Users/${person}`, { Operations: [{ op: 'replace', value }] }),
    remove: (person: string) => ask('DELETE', `/Users/${person}`),
    follow: (changes: object) => suite.patch(`/admin/directories/${id}`, { policy: changes }).expect(200),
    end: () => suite.delete(`/directories/${id}`).expect(202),
  };
}

async function givenOrganization(domain = `${randomUUID()}.test`): Promise<Omit<World, 'directory'>> {
  const { id } = await suite.post('/organizations', { name: 'Acme', domain_data: [{ domain, state: 'verified' }] }).expect(201);
  return { organization_id: id, domain };
}

async function givenWorld(policy: object = { follows: 'memberships' }): Promise<World> {
  const organization = await givenOrganization();
  return { ...organization, directory: await givenDirectory(organization.organization_id, policy) };
}

const byEmail = async (email: string) => (await suite.get(`${USERS}?email=${encodeURIComponent(email)}`).expect(200)).data[0];
const membersOf = async (organization_id: string) => (await suite.get(`${MEMBERSHIPS}?organization_id=${organization_id}&${ALL}`).expect(200)).data;
const linkOf = async (person: string) => (await suite.get(`/directory_users/${person}`).expect(200)).link_state;
const isLinked = (person: string, link_state: string | null) => suite.eventually(`/directory_users/${person}`, { link_state });
/** Asked again until it is as expected: what follows comes a moment later. */
const members = (organization_id: string, ...expected: readonly object[]) =>
  eventually(async () => {
    const found = await membersOf(organization_id);
    expect(found).toHaveLength(expected.length);
    for (const one of expected) expect(found).toContainEqual(expect.objectContaining(one));
    return found;
  });
const user = async (email: string, fields: object = {}) => suite.post(USERS, { email, email_verified: true, ...fields }).expect(201);
const join = async (organization_id: string, user_id: string, fields: object = {}) =>
  suite.post(MEMBERSHIPS, { organization_id, user_id, ...fields }).expect(201);

describe('a person of a directory', () => {
  it('becomes a user with a verified address, and an active member whom the directory manages', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const email = `ada@${domain}`;
    const person = await directory.person(email, { name: { givenName: 'Ada', familyName: 'Lovelace' } });
    await isLinked(person, 'linked');
    const made = await byEmail(email);
    expect(made).toMatchObject({ email, email_verified: true, first_name: 'Ada', last_name: 'Lovelace' });
    await members(organization_id, { user_id: made.id, status: 'active', directory_managed: true });
  });

  it('is the verified user who exists: names follow', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const { id } = await user(`ada@${domain}`, { first_name: 'A.' });
    const person = await directory.person(`ada@${domain}`, { name: { givenName: 'Ada' } });
    await members(organization_id, { user_id: id, status: 'active', directory_managed: true });
    await suite.eventually(`${USERS}/${id}`, { first_name: 'Ada' });
    await directory.change(person, { 'name.givenName': 'Augusta' });
    await suite.eventually(`${USERS}/${id}`, { first_name: 'Augusta' });
  });

  it('has the address that the directory says, and no other, where the organization has verified its domain', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const person = await directory.person(`ada@${domain}`);
    const [{ user_id: id }] = await members(organization_id, { status: 'active', directory_managed: true });
    const path = `${USERS}/${id}`;
    for (const email of [`eve@${domain}`, `ada@${randomUUID()}.test`]) await suite.put(path, { email }).expect(400, { code: 'email_change_not_allowed' });
    await suite.get(path).expect(200, { email: `ada@${domain}`, email_verified: true });
    await suite.put(path, { email: `ADA@${domain}`, first_name: 'Ada' }).expect(200, { first_name: 'Ada' });
    // Whom nobody manages any more, and who is of another domain, nothing of this is about.
    const other = await user(`bob@${randomUUID()}.test`);
    await join(organization_id, other.id);
    await suite.put(`${USERS}/${other.id}`, { email: `bob@${domain}` }).expect(200);
    await directory.change(person, { active: false });
    await suite.put(path, { email: `eve@${domain}` }).expect(400, { code: 'email_change_not_allowed' });
    await directory.follow({ follows: 'off' });
    await members(organization_id, { user_id: id, directory_managed: false }, { user_id: other.id });
    await suite.put(path, { email: `eve@${domain}` }).expect(200);
    // A user may be deleted all the same.
    await suite.delete(path).expect(200);
  });

  it('takes over the unverified user who exists, without what was set before', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const email = `eve@${domain}`;
    const password = 'correct horse battery staple';
    const { id } = await suite.post(USERS, { email, password }).expect(201);
    await directory.person(email);
    await members(organization_id, { user_id: id, status: 'active' });
    await suite.get(`${USERS}/${id}`).expect(200, { email_verified: true });
    const client_id = await suite.clientIdOf(suite);
    const answer = await suite.post('/user_management/authenticate', { client_id, client_secret: suite.key, grant_type: 'password', email, password });
    expect(answer.status).toBe(400);
  });

  it('whose domain is not verified is nobody here, unless people of such domains are invited', async () => {
    const { organization_id, directory } = await givenWorld();
    const email = `ada@${randomUUID()}.test`;
    const { id } = await user(email, { first_name: 'A.' });
    const person = await directory.person(email, { name: { givenName: 'Ada' } });
    await isLinked(person, 'domain_not_verified');
    await suite.get(`${USERS}/${id}`).expect(200, { first_name: 'A.' });
    expect(await membersOf(organization_id)).toEqual([]);
    await directory.follow({ unverified_domains: 'invite' });
    await members(organization_id, { user_id: id, status: 'pending' });
    expect(await linkOf(person)).toBe('domain_not_verified');
    // Whoever accepts is managed, and keeps what is theirs.
    const { data } = await suite.get(`${INVITATIONS}?organization_id=${organization_id}`).expect(200);
    await suite.post(`${INVITATIONS}/${data[0].id}/accept`).expect(200);
    await members(organization_id, { user_id: id, status: 'active', directory_managed: true });
    await suite.get(`${USERS}/${id}`).expect(200, { first_name: 'A.' });
    await isLinked(person, 'linked');
  });

  it('who was invited and leaves before accepting is invited no more', async () => {
    const { organization_id, directory } = await givenWorld({ follows: 'memberships', unverified_domains: 'invite' });
    const person = await directory.person(`ada@${randomUUID()}.test`);
    const path = `${INVITATIONS}?organization_id=${organization_id}`;
    await eventually(async () => expect((await suite.get(path).expect(200)).data).toMatchObject([{ state: 'pending' }]));
    await directory.remove(person);
    await eventually(async () => expect((await suite.get(path).expect(200)).data).toMatchObject([{ state: 'revoked' }]));
  });

  it('who waits for a domain is linked once it is verified', async () => {
    const { organization_id, directory } = await givenWorld();
    const domain = `${randomUUID()}.test`;
    const person = await directory.person(`ada@${domain}`);
    await isLinked(person, 'domain_not_verified');
    await suite.put(`/organizations/${organization_id}`, { domain_data: [{ domain, state: 'verified' }] }).expect(200);
    await isLinked(person, 'linked');
    await members(organization_id, { status: 'active', directory_managed: true });
    // A domain that is lost changes nothing.
    await suite.put(`/organizations/${organization_id}`, { domain_data: [] }).expect(200);
    await directory.change(person, { title: 'Countess' });
    await isLinked(person, 'linked');
    await members(organization_id, { status: 'active', directory_managed: true });
  });

  it('adopts a manual membership, with its id and roles', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const { id: user_id } = await user(`ada@${domain}`);
    const { id } = await join(organization_id, user_id, { role_slug: 'admin' });
    await isLinked(await directory.person(`ada@${domain}`), 'linked');
    await members(organization_id, { id, user_id, status: 'active', directory_managed: true, role: { slug: 'admin' } });
  });

  it('stays inactive where an administrator deactivated the membership, until one reactivates it', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const { id: user_id } = await user(`ada@${domain}`);
    const { id } = await join(organization_id, user_id);
    await suite.put(`${MEMBERSHIPS}/${id}/deactivate`).expect(200);
    const person = await directory.person(`ada@${domain}`);
    await isLinked(person, 'deactivated_by_hand');
    await directory.change(person, { active: false });
    await directory.change(person, { active: true });
    await isLinked(person, 'deactivated_by_hand');
    await members(organization_id, { id, status: 'inactive' });
    await suite.put(`${MEMBERSHIPS}/${id}/reactivate`).expect(200);
    await isLinked(person, 'linked');
  });

  it('makes a pending membership active, and its invitation accepted', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const { id: user_id, email } = await user(`ada@${domain}`);
    const { id: invitation } = await suite.post(INVITATIONS, { email, organization_id }).expect(201);
    const [pending] = await members(organization_id, { user_id, status: 'pending' });
    await isLinked(await directory.person(email), 'linked');
    await members(organization_id, { id: pending.id, status: 'active', directory_managed: true });
    await suite.eventually(`${INVITATIONS}/${invitation}`, { state: 'accepted', accepted_user_id: user_id });
  });

  it('is suspended while inactive, and back when the directory says so', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const person = await directory.person(`ada@${domain}`);
    const [{ id }] = await members(organization_id, { status: 'active' });
    await directory.change(person, { active: false });
    await members(organization_id, { id, status: 'inactive', directory_managed: true });
    // Reactivated by hand, it is suspended again: the directory decides.
    await suite.put(`${MEMBERSHIPS}/${id}/reactivate`).expect(200);
    await members(organization_id, { id, status: 'inactive' });
    await directory.change(person, { active: true });
    await members(organization_id, { id, status: 'active' });
    await isLinked(person, 'linked');
  });

  it('who comes inactive is nobody yet', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const person = await directory.person(`ada@${domain}`, { active: false });
    await eventually(async () =>
      expect(await suite.records('directory_link.changed')).toContainEqual(expect.objectContaining({ data: expect.objectContaining({ id: person }) })),
    );
    expect([await byEmail(`ada@${domain}`), await membersOf(organization_id), await linkOf(person)]).toEqual([undefined, [], null]);
    await directory.change(person, { active: true });
    await members(organization_id, { status: 'active' });
  });

  it('who is deleted is a member no more, and stays a user', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const person = await directory.person(`ada@${domain}`);
    const [{ user_id }] = await members(organization_id, { status: 'active' });
    await directory.remove(person);
    await members(organization_id);
    await suite.get(`${USERS}/${user_id}`).expect(200);
    // And begins anew as another person.
    await isLinked(await directory.person(`ada@${domain}`), 'linked');
    await members(organization_id, { user_id, status: 'active' });
  });

  it('takes the address along where both domains are verified and it is free', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const person = await directory.person(`ada@${domain}`);
    const [{ user_id }] = await members(organization_id, { status: 'active' });
    await directory.change(person, { emails: [{ value: `lovelace@${domain}`, primary: true }] });
    await suite.eventually(`${USERS}/${user_id}`, { email: `lovelace@${domain}`, email_verified: true });
    await directory.change(person, { emails: [{ value: 'ada@elsewhere.test', primary: true }] });
    await isLinked(person, 'domain_not_verified');
    await user(`taken@${domain}`);
    await directory.change(person, { emails: [{ value: `taken@${domain}`, primary: true }] });
    await isLinked(person, 'email_taken');
    await suite.get(`${USERS}/${user_id}`).expect(200, { email: `lovelace@${domain}` });
    await members(organization_id, { user_id, status: 'active', directory_managed: true });
    const other = await byEmail(`taken@${domain}`);
    await suite.delete(`${USERS}/${other.id}`).expect(200);
    await isLinked(person, 'linked');
    await suite.eventually(`${USERS}/${user_id}`, { email: `taken@${domain}` });
  });

  it('holds an address that a second one of the directory has too, who takes over when the first is gone', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const first = await directory.person(`ada@${domain}`);
    await isLinked(first, 'linked');
    const second = await directory.person(`ada@${domain}`);
    await isLinked(second, 'email_taken');
    const [{ id }] = await members(organization_id, { status: 'active' });
    await directory.remove(first);
    await isLinked(second, 'linked');
    await members(organization_id, { id, status: 'active', directory_managed: true });
  });

  it('of two directories of an organization is managed by the first; the other takes over without a gap', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const other = await givenDirectory(organization_id);
    await isLinked(await directory.person(`ada@${domain}`), 'linked');
    const second = await other.person(`ada@${domain}`);
    await isLinked(second, 'managed_elsewhere');
    const [{ id }] = await members(organization_id, { status: 'active' });
    await directory.end();
    await isLinked(second, 'linked');
    await members(organization_id, { id, status: 'active', directory_managed: true });
    expect(
      (await suite.records('organization_membership.updated')).filter(
        ({ data }) => (data as { id: string }).id === id && (data as { status?: string }).status !== undefined,
      ),
    ).toEqual([]);
  });

  it('of two organizations is a member of both; names follow where the domain is verified', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const theirs = await givenWorld({ follows: 'memberships', unverified_domains: 'invite' });
    const email = `ada@${domain}`;
    const person = await directory.person(email, { name: { givenName: 'Ada' } });
    const [{ user_id }] = await members(organization_id, { status: 'active' });
    const there = await theirs.directory.person(email, { name: { givenName: 'Eve' } });
    await members(theirs.organization_id, { user_id, status: 'pending' });
    const { data } = await suite.get(`${INVITATIONS}?organization_id=${theirs.organization_id}`).expect(200);
    await suite.post(`${INVITATIONS}/${data[0].id}/accept`).expect(200);
    await Promise.all([isLinked(person, 'linked'), isLinked(there, 'linked')]);
    await theirs.directory.change(there, { 'name.givenName': 'Mallory' });
    await members(theirs.organization_id, { user_id, status: 'active', directory_managed: true });
    await suite.get(`${USERS}/${user_id}`).expect(200, { first_name: 'Ada' });
  });

  it.each(['membership', 'user'] as const)('whose %s is deleted by hand is not made again until the provider sends a change', async (what) => {
    const { organization_id, domain, directory } = await givenWorld();
    const person = await directory.person(`ada@${domain}`);
    const [{ id, user_id }] = await members(organization_id, { status: 'active' });
    await suite.delete(what === 'user' ? `${USERS}/${user_id}` : `${MEMBERSHIPS}/${id}`).expect(200);
    await isLinked(person, 'unlinked_by_hand');
    await directory.follow({ follows: 'off' });
    await directory.follow({ follows: 'memberships' });
    await directory.change(await directory.person(`bob@${domain}`), { title: 'Next' });
    await members(organization_id, { status: 'active' });
    expect(await linkOf(person)).toBe('unlinked_by_hand');
    await directory.change(person, { title: 'Countess' });
    await isLinked(person, 'linked');
    await members(organization_id, { status: 'active' }, { status: 'active' });
  });

  it('is followed once the policy is switched on, and by hand once it is off', async () => {
    const { organization_id, domain, directory } = await givenWorld({});
    const people = await Promise.all(Array.from({ length: 70 }, (_, index) => directory.person(`p${index}@${domain}`, { active: index !== 0 })));
    expect(await membersOf(organization_id)).toEqual([]);
    await directory.follow({ follows: 'memberships' });
    const path = `${MEMBERSHIPS}?organization_id=${organization_id}&limit=100&${ALL}`;
    await eventually(async () => expect((await suite.get(path).expect(200)).data).toHaveLength(69));
    await directory.change(people[1]!, { active: false });
    await directory.follow({ follows: 'off' });
    await eventually(async () => {
      const { data } = await suite.get(path).expect(200);
      expect(data.filter((each: { directory_managed: boolean }) => each.directory_managed)).toEqual([]);
      expect(data.filter(({ status }: { status: string }) => status === 'inactive')).toHaveLength(1);
    });
    await directory.change(people[2]!, { active: false });
    await isLinked(people[2]!, null);
    const bob = await byEmail(`p2@${domain}`);
    expect((await suite.get(`${MEMBERSHIPS}?user_id=${bob.id}`).expect(200)).data).toHaveLength(1);
  });

  it.each(['release', 'end'] as const)('of a directory that is deleted: %s', async (on_delete) => {
    const { organization_id, domain, directory } = await givenWorld({ follows: 'memberships', on_delete });
    await directory.person(`ada@${domain}`);
    const [{ id }] = await members(organization_id, { status: 'active' });
    await directory.end();
    await (on_delete === 'end' ? members(organization_id) : members(organization_id, { id, status: 'active', directory_managed: false }));
  });

  it('is sealed for the user as well: the link stands in the stream of the user before the membership', async () => {
    const { organization_id, domain, directory } = await givenWorld();
    const person = await directory.person(`ada@${domain}`);
    const [{ user_id }] = await members(organization_id, { status: 'active' });
    const linked = (await suite.records('user.data_linked')).filter(({ stream }) => stream.endsWith(user_id));
    expect(linked.map(({ data }) => data)).toEqual([{ holder: `directory_user.${person}` }]);
  });
});
