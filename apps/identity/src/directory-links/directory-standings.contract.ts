import { randomUUID } from 'node:crypto';
import type { Caller } from '#libs/testing/src/suite';

const PASSWORD = 'correct horse battery staple';
const MEMBERSHIPS = '/user_management/organization_memberships';

/** A product whose reactions can be stopped. */
export interface StandingProduct {
  readonly suite: Caller;
  readonly client_id: string;
  /** The end of the log. */
  head(): Promise<string>;
  /** Nothing follows from here on until the test is over: what holds, holds by what the directory says alone. */
  stopFollowing(): Promise<void>;
  goOn(): void | Promise<void>;
}

let product: StandingProduct;
let suite: Caller;
let client_id: string;

interface Access {
  readonly refreshes: boolean;
  readonly signsIn: boolean;
  readonly isAllowed: boolean;
  readonly hasKey: boolean;
  /** Whether a session is listed as one that goes on. */
  readonly hasSession: boolean;
}
const ALL: Access = { refreshes: true, signsIn: true, isAllowed: true, hasKey: true, hasSession: true };
const NOTHING: Access = { refreshes: false, signsIn: false, isAllowed: false, hasKey: false, hasSession: false };

/** A person of a directory who is signed in, may read, and has an API key. */
async function givenMember(policy: object = {}, isKnown = true, permissions: readonly string[] = ['read']) {
  const domain = `${randomUUID()}.test`;
  const { id: organization_id } = await suite.post('/organizations', { name: 'Acme', domain_data: [{ domain, state: 'verified' }] }).expect(201);
  const directory = await givenDirectory(organization_id, policy);
  const roles = `/authorization/organizations/${organization_id}/roles`;
  await suite.post('/authorization/permissions', { slug: 'read', name: 'Read' });
  await suite.post(roles, { slug: 'org-reader', name: 'Reader' }).expect(201);
  await suite.put(`${roles}/org-reader/permissions`, { permissions }).expect(200);
  const email = `ada@${domain}`;
  const { id: user_id } = await suite.post('/user_management/users', { email, email_verified: true, password: PASSWORD }).expect(201);
  const { id } = await suite.post(MEMBERSHIPS, { organization_id, user_id, role_slug: 'org-reader' }).expect(201);
  const person = await directory.person(email);
  await suite.eventually(`${MEMBERSHIPS}/${id}`, { directory_managed: true });
  const ask = (body: object) => suite.post('/user_management/authenticate', { client_id, client_secret: suite.key, ...body });
  const signIn = () => ask({ grant_type: 'password', email, password: PASSWORD });
  const { access_token, ...first } = (await signIn()).body;
  let { refresh_token } = first;
  const { sid: session } = JSON.parse(Buffer.from(access_token.split('.')[1], 'base64url').toString());
  const { value } = await suite.post(`/user_management/users/${user_id}/api_keys`, { organization_id, name: 'Key' }).expect(201);
  const check = async (): Promise<boolean> => {
    const resource_id = `authz_resource_${organization_id.slice(-26)}`;
    return (await suite.post(`/authorization/organization_memberships/${id}/check`, { permission_slug: 'read', resource_id }).expect(200)).authorized;
  };
  /** Each with its first request. */
  const access = async (): Promise<Access> => {
    const { data } = await suite.get(`/user_management/users/${user_id}/sessions`).expect(200);
    const hasSession = (data as readonly { readonly id: string }[]).some(({ id: listed }) => listed === session);
    const refreshed = await ask({ grant_type: 'refresh_token', refresh_token });
    if (refreshed.status === 200) ({ refresh_token } = refreshed.body);
    const isAllowed = await check();
    const { api_key } = await suite.post('/api_keys/validations', { value }).expect(200);
    const signed = await signIn();
    return {
      hasSession,
      refreshes: refreshed.status === 200,
      isAllowed,
      hasKey: api_key !== null,
      signsIn: signed.body.organization_id === organization_id,
    };
  };
  if (isKnown) expect(await access()).toEqual({ ...ALL, isAllowed: permissions.length > 0 });
  return { organization_id, email, directory, person, id, access, check };
}

async function givenDirectory(organization_id: string, policy: object) {
  const { id } = await suite
    .post('/admin/directories', { organization_id, type: 'generic scim v2.0', name: 'D', policy: { follows: 'memberships', ...policy } })
    .expect(201);
  const { token } = await suite.post(`/admin/directories/${id}/tokens`).expect(201);
  return {
    id,
    person: async (email: string): Promise<string> =>
      (await suite.scim('POST', id, '/Users', token, { body: { userName: randomUUID(), emails: [{ value: email, primary: true }] } })).body.id,
    activate: async (person: string, active: boolean) => {
      const body = { Operations: [{ op: 'replace', path: 'active', value: active }] };
      expect((await suite.scim('PATCH', id, `/Users/${person}`, token, { body })).status).toBe(200);
    },
    remove: async (person: string) => expect((await suite.scim('DELETE', id, `/Users/${person}`, token)).status).toBe(204),
    end: () => suite.delete(`/directories/${id}`).expect(202),
    group: async (displayName: string): Promise<string> => (await suite.scim('POST', id, '/Groups', token, { body: { displayName } })).body.id,
    change: async (group: string, op: 'add' | 'remove', member: string) => {
      const body = { Operations: [op === 'add' ? { op, path: 'members', value: [{ value: member }] } : { op, path: `members[value eq "${member}"]` }] };
      expect((await suite.scim('PATCH', id, `/Groups/${group}`, token, { body })).status).toBe(204);
    },
    endGroup: async (group: string) => expect((await suite.scim('DELETE', id, `/Groups/${group}`, token)).status).toBe(204),
  };
}

/** What holds by what a directory says alone, whichever engines the product runs on. */
export function standingsContract(name: string, open: () => Promise<StandingProduct>): void {
  describe(`while nothing follows yet what a directory says, ${name}`, () => {
    beforeAll(async () => {
      product = await open();
      ({ suite, client_id } = product);
    }, 120_000);
    afterEach(() => product.goOn());

    it('whoever is deactivated has no access with the next request, and has it back with the next', async () => {
      const { directory, person, id, access } = await givenMember();
      await product.stopFollowing();
      await directory.activate(person, false);
      expect(await access()).toEqual(NOTHING);
      await suite.get(`${MEMBERSHIPS}/${id}`).expect(200, { status: 'active' });
      await directory.activate(person, true);
      // The session has ended; everything else is as before.
      expect(await access()).toEqual({ ...ALL, refreshes: false, hasSession: false });
    });

    it('whoever is deleted has no access', async () => {
      const { directory, person, access } = await givenMember();
      await product.stopFollowing();
      await directory.remove(person);
      expect(await access()).toEqual(NOTHING);
    });

    it('nobody has access by a directory that was deleted, where memberships end with it', async () => {
      const { directory, access } = await givenMember({ on_delete: 'end' });
      await product.stopFollowing();
      await directory.end();
      expect(await access()).toEqual(NOTHING);
    });

    it('everybody has access who had it by a directory that was deleted, where memberships are released', async () => {
      const { directory, access } = await givenMember({ on_delete: 'release' });
      await product.stopFollowing();
      await directory.end();
      expect(await access()).toEqual(ALL);
    });

    it('whoever another directory has too keeps access without a gap, for as long as it has them active', async () => {
      const { organization_id, email, directory, person, access } = await givenMember();
      const other = await givenDirectory(organization_id, {});
      const second = await other.person(email);
      await suite.eventually(`/directory_users/${second}`, { link_state: 'managed_elsewhere' });
      await product.stopFollowing();
      await directory.remove(person);
      expect(await access()).toEqual(ALL);
      await other.activate(second, false);
      expect(await access()).toEqual(NOTHING);
    });

    it('what is read into memory later says the same', async () => {
      const [inactive, gone, ended, taken] = [
        await givenMember({}, false),
        await givenMember({}, false),
        await givenMember({ on_delete: 'end' }, false),
        await givenMember({}, false),
      ];
      const other = await givenDirectory(taken.organization_id, {});
      await suite.eventually(`/directory_users/${await other.person(taken.email)}`, { link_state: 'managed_elsewhere' });
      await product.stopFollowing();
      await inactive.directory.activate(inactive.person, false);
      await gone.directory.remove(gone.person);
      await ended.directory.end();
      await taken.directory.remove(taken.person);
      await suite.get('/organizations', { 'Gatehouse-Position': await product.head() }).expect(200);
      expect(await Promise.all([inactive, gone, ended, taken].map((each) => each.access()))).toEqual([NOTHING, NOTHING, NOTHING, ALL]);
    });

    it('whoever joins a group has its roles with the next check, and whoever leaves it has not; so it is with what a group gives, and with its end', async () => {
      const { directory, person, organization_id, check } = await givenMember({ follows: 'memberships_and_roles' }, true, []);
      const [one, other] = [await directory.group('One'), await directory.group('Other')];
      const roles = `/authorization/organizations/${organization_id}/roles`;
      await suite.post(roles, { slug: 'org-mapped', name: 'Mapped' }).expect(201);
      await suite.put(`${roles}/org-mapped/permissions`, { permissions: ['read'] }).expect(200);
      const maps = (...groups: readonly string[]) =>
        suite
          .put(`/admin/directories/${directory.id}/role_mappings`, { role_mappings: groups.map((group_id) => ({ group_id, role_slug: 'org-mapped' })) })
          .expect(200);
      await maps(one);
      expect(await check()).toBe(false);
      await product.stopFollowing();
      await directory.change(one, 'add', person);
      expect(await check()).toBe(true);
      await directory.change(one, 'remove', person);
      expect(await check()).toBe(false);
      await directory.change(other, 'add', person);
      expect(await check()).toBe(false);
      await maps(other);
      expect(await check()).toBe(true);
      await maps();
      expect(await check()).toBe(false);
      await maps(other);
      expect(await check()).toBe(true);
      await directory.endGroup(other);
      expect(await check()).toBe(false);
    });
  });
}
