import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START } from '#libs/event-sourcing/src/log/event-store';
import { LogForReading } from '#libs/platform/src/storage/log-storage';
import { Canaries } from '#libs/testing/src/canaries';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { mayTake } from '#libs/testing/src/until';
import type { PasswordSet } from '../domain/user.decider.ts';

const USERS = '/user_management/users';
const IMPORTED = '{SSHA256}x1tymSTVjozxQ2PtT46ysrzhZxbcskK0o2f8hEFx7fAQQmhtDSEkJA==';
const directory = mkdtempSync(join(tmpdir(), 'user-passwords-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** The log without its key. */
async function recordsOnDisk(): Promise<string> {
  const events = new LmdbEventStore(new LogForReading(directory));
  const head = await events.head();
  const reading = new AbortController();
  const records: string[] = [];
  for await (const batch of events.subscribe(START, reading.signal)) {
    records.push(...batch.map((record) => JSON.stringify(record)));
    if (batch.at(-1)!.position >= head) break;
  }
  reading.abort();
  return records.join('\n');
}

describe('users with passwords', () => {
  let suite: GivenSuite;
  const lines: string[] = [];
  let count = 0;
  beforeAll(
    async () =>
      void (suite = await givenSuite({
        variables: { DATA_DIR: directory, ACCESS_LOG: 'on', PASSWORD_HASH_COST: '10' },
        onLogLine: (line) => lines.push(line),
      })),
  );

  const anEmail = (): string => `pass.${++count}@acme.test`;
  const create = (fields: object = {}) => suite.post(USERS, { email: anEmail(), ...fields });
  const passwordsOf = async (id: string): Promise<readonly PasswordSet[]> =>
    (await suite.records('user.password_set')).map(({ data }) => data as PasswordSet).filter((data) => data.id === id);

  it('have them stored as a hash, which nobody is shown', async () => {
    const user = await create({ password: 'ride-a-giraffe' }).expect(201);
    expect(JSON.stringify(user)).not.toContain('password');
    expect(await passwordsOf(user.id)).toMatchObject([{ password: { type: 'bcrypt-hmac', hash: expect.stringMatching(/^\$2b\$10\$.{53}$/) } }]);
    for (const path of [`${USERS}/${user.id}`, USERS, `${USERS}?email=${user.email}`]) {
      const { text } = await suite.get(path);
      expect(text).toContain(user.id);
      expect(text).not.toContain('password');
    }
  });

  it('have them changed, which is told as any change', async () => {
    const user = await create({ password: 'ride-a-giraffe' }).expect(201);
    const changed = await suite.put(`${USERS}/${user.id}`, { password: 'ride-an-elephant' }).expect(200);
    expect(changed).toEqual({ ...user, updated_at: changed.updated_at });
    await suite.put(`${USERS}/${user.id}`, { password_hash: IMPORTED, password_hash_type: 'ssha256', password_salt_position: 'suffix' }).expect(200);
    const [first, second, third] = (await passwordsOf(user.id)).map(({ password }) => password);
    expect(first!.hash).not.toBe(second!.hash);
    expect(third).toEqual({ type: 'ssha256', hash: IMPORTED, salt_position: 'suffix' });
    const told = (await suite.records()).filter(({ stream }) => stream.endsWith(user.id)).flatMap((record) => record.public.map(({ name }) => name));
    expect(told).toEqual(['user.created', 'user.updated', 'user.updated']);
  });

  it.each([
    [400, 'password_strength_error', { password: 'short' }],
    [400, 'password_strength_error', { password: 'password123' }],
    [400, 'invalid_password_hash', { password_hash: 'x', password_hash_type: 'bcrypt' }],
    [400, 'invalid_password_hash', { password_hash: IMPORTED, password_hash_type: 'argon2' }],
    // 18, 9 and 5 seconds, the last with 256 MiB.
    [400, 'invalid_password_hash', { password_hash: `$scrypt$ln=18,r=8,p=16$c29tZXNhbHQ$${'A'.repeat(43)}`, password_hash_type: 'scrypt' }],
    [400, 'invalid_password_hash', { password_hash: `$pbkdf2-sha256$i=10000000$c29tZXNhbHQ$${'A'.repeat(43)}`, password_hash_type: 'pbkdf2' }],
    [400, 'invalid_password_hash', { password_hash: `$argon2id$v=19$m=262144,t=16,p=1$c29tZXNhbHQ$${'A'.repeat(43)}`, password_hash_type: 'argon2' }],
    [400, 'password_and_password_hash_provided', { password: 'ride-a-giraffe', password_hash: IMPORTED, password_hash_type: 'ssha256' }],
    [400, 'password_and_password_hash_type_provided', { password: 'ride-a-giraffe', password_hash_type: 'ssha256' }],
    [400, 'password_salt_position_requires_password_hash', { password_salt_position: 'prefix' }],
    [400, 'password_salt_position_requires_password_hash', { password: 'ride-a-giraffe', password_salt_position: 'prefix' }],
    [422, 'invalid_request_parameters', { password_hash: IMPORTED }],
    [422, 'invalid_request_parameters', { password_hash_type: 'ssha256' }],
    [422, 'invalid_request_parameters', { password_hash: IMPORTED, password_hash_type: 'md5' }],
    [
      422,
      'invalid_request_parameters',
      { password_hash: '$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe', password_hash_type: 'bcrypt', password_salt_position: 'prefix' },
    ],
    [422, 'invalid_request_parameters', { password: 'x'.repeat(1025) }],
  ])('are refused (%s %s) where it reads %j', async (status, code, given) => {
    const { body } = await create(given);
    expect(body).toMatchObject({ code });
    const { id } = await create().expect(201);
    const refused = await suite.put(`${USERS}/${id}`, given);
    expect([refused.status, refused.body.code]).toEqual([status, code]);
    expect(refused.text).not.toContain(IMPORTED.slice(9));
    expect(await passwordsOf(id)).toEqual([]);
  });

  it('wait for each other, and a flood of them is told to come again', async () => {
    const asked = Array.from({ length: 80 }, () => create({ password: 'ride-a-giraffe' }));
    // Meanwhile others are served.
    const start = performance.now();
    await suite.get(`${USERS}?limit=1`).expect(200);
    expect(performance.now() - start).toBeLessThan(mayTake(2_000));
    const answers = await Promise.all(asked);
    const statuses = new Set(answers.map(({ status }) => status));
    expect(statuses).toEqual(new Set([201, 503]));
    const refused = answers.find(({ status }) => status === 503)!;
    expect(refused.body).toMatchObject({ code: 'service_unavailable' });
    expect(refused.headers['retry-after']).toBeDefined();
  });

  it('have nothing personal in the log as it lies on the disk, and their passwords nowhere, but are read after a restart', async () => {
    const personal = new Canaries();
    const secret = new Canaries();
    const given = {
      email: personal.add('email', 'augusta.ada@lovelace.test'),
      first_name: personal.add('first name', 'Augusta Ada Byron'),
      last_name: personal.add('last name', 'King of Lovelace'),
      name: personal.add('name', 'The Countess of Lovelace'),
      external_id: personal.add('external id', 'countess-of-lovelace'),
      metadata: { birthplace: personal.add('metadata', 'Piccadilly Terrace, London') },
    };
    const password = secret.add('password', 'poetical-science-1843');
    const user = await suite.post(USERS, { ...given, password }, { 'Idempotency-Key': 'countess' }).expect(201);
    const hash = secret.add('imported hash', IMPORTED);
    secret.add('bytes of the imported hash', IMPORTED.slice(9, -2));
    const changed = await suite
      .put(`${USERS}/${user.id}`, { email: personal.add('second email', 'countess@lovelace.test'), password_hash: hash, password_hash_type: 'ssha256' })
      .expect(200);
    const [own, imported] = await passwordsOf(user.id);
    expect(imported?.password).toEqual({ type: 'ssha256', hash });
    secret.add('hash', own!.password.hash);
    secret.add('end of the hash', own!.password.hash.slice(29));

    await suite.restart();
    const log = await recordsOnDisk();
    expect(log).toContain(user.id);
    expect(personal.foundIn(log)).toEqual([]);
    expect(secret.foundInDirectory(directory)).toEqual({});
    expect(lines.length).toBeGreaterThan(10);
    for (const line of lines) expect([...secret.foundIn(line), ...personal.foundIn(line)]).toEqual([]);
    const feed = (await suite.get('/events?limit=100&events=user.created,user.updated')).text;
    expect(feed).toContain(user.id);
    expect(secret.foundIn(feed)).toEqual([]);

    await suite.get(`${USERS}/${user.id}`).expect(200, changed);
    expect(changed).toMatchObject({ ...given, email: 'countess@lovelace.test', email_verified: false });
    expect(await passwordsOf(user.id)).toEqual([own, imported]);
    const [record] = (await suite.records('user.created')).filter(({ stream }) => stream.endsWith(user.id));
    expect(record).toMatchObject({ data: given, subject: user });
  });
});
