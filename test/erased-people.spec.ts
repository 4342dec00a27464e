import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FollowerStates } from '#libs/event-sourcing/src/following/follower-states';
import { SystemClock } from '#libs/platform/src/clock';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { Canaries } from '#libs/testing/src/canaries';
import { LEAST_HASH_COST } from '#libs/testing/src/least-hash-cost';
import { gatehouse, SuiteProcess } from '#libs/testing/src/process';
import { eventually } from '#libs/testing/src/until';

const root = mkdtempSync(join(tmpdir(), 'gatehouse-erased-'));
afterAll(() => rmSync(root, { recursive: true }));

const word = (): string => randomBytes(12).toString('hex');
const USERS = '/user_management/users';

/** One directory of data, and what happens in it until nothing tells of these people any more. */
describe('people who are erased', () => {
  const directory = join(root, 'data');
  const key = `sk_${randomBytes(32).toString('base64url')}`;
  const variables = {
    ...{ DATA_DIR: directory, DATA_MIN_FREE: '0', GATEHOUSE_API_KEY: key, MASTER_KEYS: randomBytes(32).toString('base64') },
    PASSWORD_HASH_COST: LEAST_HASH_COST.development,
  };
  let server: SuiteProcess | null = null;
  afterAll(() => server?.killHard());

  let clientId: string;

  async function start(): Promise<void> {
    server = await SuiteProcess.start(variables);
    clientId ??= /client_\w+/.exec((await gatehouse(variables, 'environments', 'list')).stdout)![0];
  }

  async function stop(how: 'stop' | 'killHard' = 'stop'): Promise<void> {
    await server![how]();
    server = null;
  }

  async function ask(method: string, path: string, body?: object, headers: Readonly<Record<string, string>> = {}) {
    const response = await fetch(server!.url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text), position: response.headers.get('gatehouse-position') };
  }

  /** Of nobody else: the network is random, and it is looked for in the spelling that it was told in. */
  const network = (): string => `2001:db8:${Array.from(randomBytes(12).toString('hex').matchAll(/..../g), ([group]) => group.replace(/^0/, '1')).join(':')}`;

  /** With everything that is personal, some of it replaced since, in an organization, in every step of sign-in, and shown by answers that are kept. */
  async function givenPerson(): Promise<{ readonly id: string; readonly canaries: Canaries }> {
    const canaries = new Canaries();
    const told = (name: string): string => canaries.add(name, word());
    const by = { client_id: clientId, client_secret: key, ip_address: canaries.add('network', network()), user_agent: told('browser') };
    const signIn = async (status: number, grant: object) => {
      const answer = await ask('POST', '/user_management/authenticate', { ...by, ...grant });
      expect([grant, answer.status]).toEqual([grant, status]);
      return answer.body;
    };
    const fields = { first_name: told('first name'), last_name: told('last name'), name: told('name'), external_id: told('external id') };
    const former = `${told('address')}@acme.test`;
    const given = { ...fields, email: former, email_verified: true, metadata: { note: told('metadata') } };
    const password = told('password');
    // Somebody tried the address, and was invited to it, before it was anybody's.
    await signIn(400, { grant_type: 'password', email: former, password: told('wrong password') });
    expect((await ask('POST', '/user_management/invitations', { email: former })).status).toBe(201);
    const { body: user } = await ask('POST', USERS, { ...given, password }, { 'Idempotency-Key': word() });
    const email = `${told('other address')}@acme.test`;
    expect((await ask('PUT', `${USERS}/${user.id}`, { email, email_verified: true, first_name: told('other name') })).status).toBe(200);
    const { body: organization } = await ask('POST', '/organizations', { name: 'Acme' });
    await ask('POST', '/user_management/organization_memberships', { user_id: user.id, organization_id: organization.id });
    await signIn(400, { grant_type: 'password', email, password: told('another wrong password') });
    const { refresh_token } = await signIn(200, { grant_type: 'password', email, password });
    await signIn(200, { grant_type: 'refresh_token', refresh_token });
    const magic = (await ask('POST', '/user_management/magic_auth', { email })).body;
    expect((await ask('POST', '/user_management/password_reset', { email })).status).toBe(201);
    expect((await ask('POST', '/user_management/invitations', { email, organization_id: organization.id })).status).toBe(400);
    expect((await ask('POST', '/user_management/invitations', { email: `${word()}@acme.test`, inviter_user_id: user.id })).status).toBe(201);
    const totp = { type: 'totp', totp_issuer: told('issuer'), totp_user: email, user_id: user.id };
    expect((await ask('PATCH', '/admin/environment_settings', { sms: { countries: ['DE'] } })).status).toBe(200);
    const sms = {
      type: 'sms',
      phone_number: canaries.add('phone number', `+49151${String(randomBytes(4).readUInt32BE() % 10 ** 8).padStart(8, '0')}`),
      user_id: user.id,
    };
    for (const factor of [totp, sms, { type: 'generic_otp', user_id: user.id }]) {
      const { status, body } = await ask('POST', '/auth/factors/enroll', factor);
      expect(status).toBe(201);
      const challenge = (
        await ask('POST', `/auth/factors/${body.id}/challenge`, factor === sms ? { sms_template: `{{code}} ${told('words of a text')}` } : undefined)
      ).body;
      if (body.totp !== undefined) canaries.add('secret of the factor', body.totp.secret);
      // From then on it is asked for.
      if (factor.type === 'generic_otp') expect((await ask('POST', `/auth/challenges/${challenge.id}/verify`, { code: challenge.code })).body.valid).toBe(true);
    }
    const risk = { email, ip_address: by.ip_address, user_agent: by.user_agent, auth_method: 'Password', action: 'sign-in' };
    expect((await ask('POST', '/radar/attempts', risk)).status).toBe(200);
    await signIn(403, { grant_type: 'urn:workos:oauth:grant-type:magic-auth:code', email, code: magic.code });
    // A list keeps its entries, and knows nobody by them.
    for (const [type, entry] of [['email', former] as const, ['ip_address', by.ip_address] as const])
      expect((await ask('POST', `/radar/lists/${type}/allow`, { entry })).status).toBeLessThan(300);
    return { id: user.id, canaries };
  }

  /** As the feed shows them. */
  async function addressesOf(id: string): Promise<readonly string[]> {
    const { body } = await ask('GET', '/events?events=user.created&events=user.updated&limit=100');
    return body.data.filter(({ data }: { data: { id: string } }) => data.id === id).map(({ data }: { data: { email: string } }) => data.email);
  }

  /** Whoever follows the log and has not come to its end, by the lines that name them. */
  async function lateFollowers(): Promise<readonly string[]> {
    const lines = (await gatehouse(variables, 'views', 'list')).stdout.split('\n').filter((line) => / of \d+/.test(line));
    expect(lines.length).toBeGreaterThan(10);
    // That of earlier erasures waits for a minute and more, and a trail of which something was told has its next checkpoint a minute after the one before.
    return lines.filter((line) => !/^(?:erasures\.finish|audit\.checkpoints) /.test(line) && !/ (?<position>\d+) of \k<position>\b/.test(line));
  }

  /** As an upgrade leaves a table behind. */
  async function leaveOldVersion(told: string): Promise<void> {
    const storage = await LmdbStorage.open({ directory });
    const readModels = new LmdbReadModels(storage);
    const table = readModels.table<never>({ name: 'users-v1.1', indexes: [], rebuildable: true });
    await table.write([{ environment: SYSTEM_ENVIRONMENT, id: word(), position: '0000000000000001', revision: 1, text: JSON.stringify({ told }) }]);
    await new FollowerStates(readModels, new SystemClock()).tell('view.users-v1.1', { halt: null, carriedOut: '' }, 1);
    await storage.close();
  }

  it('are found nowhere, in the data and in a new backup, once their views were copied; and a crash keeps nothing of them', async () => {
    await start();
    const [one, other] = [await givenPerson(), await givenPerson()];
    await eventually(async () =>
      expect([await addressesOf(one.id), await addressesOf(other.id)]).toEqual([
        Array(2).fill(expect.stringContaining('@')),
        Array(2).fill(expect.stringContaining('@')),
      ]),
    );
    expect((await ask('POST', `/admin/users/${one.id}/erasure`)).status).toBe(202);
    await stop('killHard');
    // By the command line, in the stead of a server.
    const erased = await gatehouse(variables, 'erase', 'user', other.id);
    expect([erased.code, erased.stderr, erased.stdout]).toEqual([0, '', expect.stringContaining(other.id)]);

    await start();
    await eventually(async () => expect([...(await addressesOf(one.id)), ...(await addressesOf(other.id))]).toEqual(['', '', '', '']));
    await eventually(async () => expect((await gatehouse(variables, 'views', 'list')).stdout).toMatch(/^eraser +(?<position>\d+) of \k<position>$/m));
    const refused = await gatehouse(variables, 'compact');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('restart it')]);
    await stop();
    await leaveOldVersion(one.canaries.add('row of before an upgrade', word()));
    const compacted = await gatehouse(variables, 'compact');
    expect([compacted.code, compacted.stderr]).toEqual([0, '']);
    for (const { canaries } of [one, other]) expect(canaries.foundInDirectory(directory)).toEqual({});

    expect((await gatehouse(variables, 'backup', join(root, 'backup'))).code).toBe(0);
    for (const place of ['backup', 'backup-keys']) for (const { canaries } of [one, other]) expect(canaries.foundInDirectory(join(root, place))).toEqual({});
  }, 120_000);

  it('are found nowhere after the next start either, which copies the views by itself', async () => {
    await start();
    const { id, canaries } = await givenPerson();
    await eventually(async () => expect(await addressesOf(id)).toHaveLength(2));
    await ask('DELETE', `${USERS}/${id}`);
    // What ends with them is recorded, and nothing follows the erasure that is only forgotten a minute later.
    await eventually(async () => expect(await lateFollowers()).toEqual([]));
    const { status, position } = await ask('POST', `/admin/users/${id}/erasure`);
    expect(status).toBe(202);
    await eventually(async () => expect(await addressesOf(id)).toEqual(['', '']));
    // The other views as well: the next start copies what they have forgotten by then.
    expect((await ask('GET', USERS, undefined, { 'Gatehouse-Position': position! })).status).toBe(200);
    await stop();
    expect(Object.keys(canaries.foundInDirectory(directory))).toEqual([join('views', 'data.mdb')]);
    await start();
    await stop();
    expect(canaries.foundInDirectory(directory)).toEqual({});
  }, 120_000);
});
