import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Text } from '#libs/contracts/src/fields';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { markedFieldsOf } from '#libs/event-sourcing/src/sealing/marked-fields';
import { SealingEventStore } from '#libs/event-sourcing/src/sealing/sealing.event-store';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Canaries } from '#libs/testing/src/canaries';
import { gatehouse, SuiteProcess, type Ended } from '#libs/testing/src/process';
import { rawExchange } from '#libs/testing/src/raw-http';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

const root = mkdtempSync(join(tmpdir(), 'gatehouse-canaries-'));
afterAll(() => rmSync(root, { recursive: true }));

const HASH = '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy';

const random = (): string => randomBytes(32).toString('base64url');

interface Answer {
  readonly status: number;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

/** One run of the product that meets every kind of secret, kept with all that it left behind. */
describe('secrets', () => {
  const canaries = new Canaries();
  /** Of a password: rows of views hold it, and nothing else does. */
  const hashes = new Canaries();
  /** What is personal, or may be: views hold it, and so did deliveries and the bus. */
  const people = new Canaries();
  const directory = join(root, 'data');
  const backup = join(root, 'backup');
  const ours = canaries.add('GATEHOUSE_API_KEY', `sk_${random()}`);
  const variables = {
    DATA_DIR: directory,
    DATA_MIN_FREE: '0',
    LOG_LEVEL: 'debug',
    ACCESS_LOG: 'on',
    GATEHOUSE_API_KEY: ours,
    MASTER_KEYS: canaries.add('master key', randomBytes(32).toString('base64')),
  };
  let firstKey: string;
  let runs: readonly Ended[];
  /** Answers that may show no secret, by what was asked. */
  const answers: (readonly [string, string])[] = [];
  let deliveries: string;
  let feed: string;
  let shownDeliveries: string;

  beforeAll(async () => {
    const receiver = await WebhookReceiver.listen();
    receiver.answers(200, people.add('answer of a receiver', random()));
    const first = await SuiteProcess.start(variables);
    firstKey = canaries.add('first key', readFileSync(join(directory, 'development.key'), 'utf8').trim());
    let { url } = first;

    const ask = async (
      method: string,
      path: string,
      options: { key?: string; body?: unknown; headers?: Readonly<Record<string, string>> } = {},
    ): Promise<Answer> => {
      const { key = ours, body, headers } = options;
      const response = await fetch(url + path, {
        method,
        headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
        body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, text, body: text === '' ? undefined : JSON.parse(text) };
    };
    /** As `ask`, where the answer may show no secret. */
    const askInPublic = async (...[method, path, options]: Parameters<typeof ask>): Promise<Answer> => {
      const answer = await ask(method, path, options);
      answers.push([`${method} ${path}`, answer.text]);
      return answer;
    };

    // Keys: made, used, replaced and revoked.
    const made = async (name: string, ...words: readonly string[]): Promise<readonly [id: string, key: string]> => {
      const { code, stdout } = await gatehouse(variables, ...words);
      expect(code).toBe(0);
      const [id, key] = stdout.trim().split(/\s+/) as [string, string];
      return [id, canaries.add(name, key)];
    };
    const [id, created] = await made('created key', 'keys', 'create', '--environment', 'development', '--name', 'canary');
    const [replacingId, replacing] = await made('rotated key', 'keys', 'rotate', id, '--overlap', '1h');
    for (const key of [firstKey, created, replacing]) expect((await askInPublic('GET', '/organizations', { key })).status).toBe(200);
    expect((await gatehouse(variables, 'keys', 'revoke', replacingId)).code).toBe(0);
    expect((await askInPublic('GET', '/organizations', { key: replacing })).status).toBe(401);
    answers.push(['keys list', (await gatehouse(variables, 'keys', 'list')).stdout]);

    // Webhook secrets: shown by the answers about their endpoint, also from a stored answer.
    const keyed = { 'Idempotency-Key': 'canary' };
    const endpoint = {
      endpoint_url: receiver.url,
      events: ['organization.created', 'organization.updated', 'user.created', 'user.updated', 'api_key.created', 'api_key.revoked'],
    };
    const { body: hook } = await ask('POST', '/webhook_endpoints', { body: endpoint, headers: keyed });
    canaries.add('webhook secret', hook.secret);
    expect((await ask('POST', '/webhook_endpoints', { body: endpoint, headers: keyed })).body).toEqual(hook);
    const { body: organization } = await askInPublic('POST', '/organizations', { body: { name: 'Watched' } });
    await receiver.receives(({ data }) => data.id === organization.id);
    const { body: rotated } = await ask('POST', `/webhook_endpoints/${hook.id}/rotate_secret`, { body: { overlap_seconds: 3600 }, headers: keyed });
    canaries.add('rotated webhook secret', rotated.secret);
    await ask('PATCH', `/webhook_endpoints/${hook.id}`, { body: { status: 'enabled' } });
    await askInPublic('PUT', `/organizations/${organization.id}`, { body: { name: 'Still watched' } });
    await receiver.receives(({ event }) => event === 'organization.updated');
    shownDeliveries = (await askInPublic('GET', `/webhook_endpoints/${hook.id}/deliveries`)).text;
    await askInPublic('POST', '/webhook_endpoints', { body: endpoint });

    // Passwords: as they are, and as another product stored them.
    const password = canaries.add('password', random());
    const { body: user } = await askInPublic('POST', '/user_management/users', {
      body: { email: people.add('email', `ada-${random().slice(0, 20).toLowerCase()}@acme.test`), password, first_name: people.add('name', random()) },
    });
    const imported = { password_hash: hashes.add('password hash', HASH), password_hash_type: 'bcrypt' };
    await askInPublic('PUT', `/user_management/users/${user.id}`, { body: imported });
    await askInPublic('PUT', `/user_management/users/${user.id}`, { body: { first_name: 'Ada' } });
    await askInPublic('GET', `/user_management/users?email=${user.email}`);
    await askInPublic('POST', '/user_management/users', { body: { email: user.email, password }, headers: { 'Idempotency-Key': 'password' } });
    await askInPublic('POST', '/user_management/users', { body: { email: 'grace@acme.test', password, ...imported } });
    await receiver.receives(({ event }) => event === 'user.updated');

    // API keys of customers: shown by the answer that makes them, also by a stored one; then asked about, expired and revoked.
    const apiKeys = `/organizations/${organization.id}/api_keys`;
    const { body: apiKey } = await ask('POST', apiKeys, { body: { name: 'canary' }, headers: keyed });
    canaries.add('API key', apiKey.value);
    expect((await ask('POST', apiKeys, { body: { name: 'canary' }, headers: keyed })).body).toEqual(apiKey);
    const validation = { value: apiKey.value };
    expect((await askInPublic('POST', '/api_keys/validations', { body: validation })).body.api_key.id).toBe(apiKey.id);
    expect((await askInPublic('GET', '/organizations', { key: apiKey.value })).status).toBe(401);
    await askInPublic('POST', '/api_keys/validations', { body: { ...validation, name: 7 } });
    await askInPublic('POST', `/api_keys/${apiKey.id}/expire`, { body: {} });
    await askInPublic('GET', apiKeys);
    await askInPublic('DELETE', `/api_keys/${apiKey.id}`);
    expect((await askInPublic('POST', '/api_keys/validations', { body: validation })).body.api_key).toBeNull();
    await receiver.receives(({ event }) => event === 'api_key.revoked');

    // Errors, with keys in places where they do not belong.
    const lost = canaries.add('unknown key', `sk_${random()}`);
    for (const key of [lost, `${lost} x`, `x${lost}`]) await askInPublic('GET', '/organizations', { key });
    for (const key of [lost, replacing]) {
      await ask('GET', `/organizations/${key}`);
      await ask('GET', `/organizations?after=${key}`);
      await ask('GET', `/${key}`);
      await ask('GET', `/%zz${key}`);
      await ask('POST', '/organizations', { body: `{"name":"${key}"` });
      await ask('POST', '/organizations', { body: { name: { key } } });
      await ask('POST', '/organizations', { body: { name: 'x', metadata: { [key]: 'x'.repeat(1_000) } } });
      await rawExchange(url, `GET ${key} HTTP/1.1\r\nAuthorization ${key}\r\n\r\n`);
      expect((await gatehouse(variables, 'keys', 'revoke', key)).code).not.toBe(0);
    }
    await ask('POST', '/organizations', { body: { name: 'x' }, headers: { 'Idempotency-Key': lost } });

    feed = (await ask('GET', '/events?limit=100')).text;
    expect(feed).toContain('organization.updated');
    expect(await gatehouse(variables, 'backup', backup)).toMatchObject({ code: 0 });
    const killed = await first.killHard();
    const second = await SuiteProcess.start(variables);
    ({ url } = second);
    expect((await ask('POST', '/webhook_endpoints', { body: endpoint, headers: keyed })).body).toEqual(hook);
    runs = [killed, await second.stop()];
    deliveries = JSON.stringify(receiver.received);
    await receiver.close();
  });

  it('are met in the run, every kind', () => {
    expect(canaries.names).toEqual([
      'GATEHOUSE_API_KEY',
      'master key',
      'first key',
      'created key',
      'rotated key',
      'webhook secret',
      'rotated webhook secret',
      'password',
      'API key',
      'unknown key',
    ]);
  });

  it('lie in no file of the data directory, but for the first key in its own', () => {
    expect(canaries.foundInDirectory(directory)).toEqual({ 'development.key': expect.arrayContaining(['first key, as it is']) });
  });

  it('of passwords lie, hashed, in rows alone', () => {
    expect(Object.keys(hashes.foundInDirectory(directory)).filter((file) => !file.startsWith('views'))).toEqual([]);
    expect(hashes.foundInDirectory(backup)).toEqual({});
    for (const text of [feed, deliveries, ...runs.flatMap(({ stdout, stderr }) => [stdout, stderr]), ...answers.map(([, answer]) => answer)])
      expect(hashes.foundIn(text)).toEqual([]);
  });

  it('lie in no backup', () => {
    expect(canaries.foundInDirectory(backup)).toEqual({});
    expect(canaries.foundInDirectory(`${backup}-keys`)).toEqual({});
  });

  it('of persons, and what receivers answered, lie in no backup either: only in what is refilled from the log, and is not in it', () => {
    expect(people.foundInDirectory(backup)).toEqual({});
    expect(people.foundInDirectory(`${backup}-keys`)).toEqual({});
    expect(readdirSync(join(backup, 'data')).sort()).toEqual(['format', 'log', 'log.state']);
    // They were there, and are found where they may be.
    expect(Object.values(people.foundInDirectory(join(directory, 'views'))).flat()).toEqual(expect.arrayContaining(['email, as it is', 'name, as it is']));
    expect(people.foundIn(shownDeliveries)).toEqual(['answer of a receiver, as it is']);
    expect(
      Object.values(people.foundInDirectory(directory))
        .flat()
        .filter((found) => found.startsWith('answer')),
    ).toEqual([]);
  });

  it('are in no line that is logged; the first key is shown once, by the start that made it', () => {
    const [first, second] = runs as [Ended, Ended];
    const lines = first.stdout.split('\n');
    const shown = lines.filter((line) => canaries.foundIn(line).length > 0);
    expect(shown).toEqual([`  first key  ${firstKey}`]);
    expect(lines.length).toBeGreaterThan(20);
    for (const output of [first.stderr, second.stdout, second.stderr]) expect(canaries.foundIn(output)).toEqual([]);
  });

  it('are in no event, delivery or answer that is not about them', () => {
    expect(canaries.foundIn(feed)).toEqual([]);
    expect(canaries.foundIn(deliveries)).toEqual([]);
    for (const [asked, text] of answers) expect([asked, canaries.foundIn(text)]).toEqual([asked, []]);
  });

  it('would be found', () => {
    const planted = join(root, 'planted');
    const value = canaries.add('planted', `sk_${random()}`);
    for (const text of [
      value,
      `{"a":"${value}"}`,
      Buffer.from(`x${value}`).toString('base64'),
      Buffer.from(`xy${value}z`).toString('base64url'),
      Buffer.from(value).toString('hex'),
    ]) {
      writeFileSync(planted, text);
      expect(canaries.foundInDirectory(root)['planted']).toHaveLength(text.includes(value) ? 2 : 1);
    }
    rmSync(planted);
  });
});

describe('personal values', () => {
  class Person {
    @Text({ doc: 'The name.', personal: true }) name!: string;
    @Text({ doc: 'The address.', personal: true }) email!: string;
    @Text({ doc: 'Shown to everybody.' }) nick!: string;
  }

  it('lie in no file of the log', async () => {
    const canaries = new Canaries();
    const directory = join(root, 'personal');
    const storage = await LmdbStorage.open({ directory });
    const keys = await LmdbKeyStore.open(storage.keys, []);
    const events = new SealingEventStore(new LmdbEventStore(storage), keys, markedFieldsOf({ person: Person }));
    const person = { name: canaries.add('name', 'Augusta Ada King'), email: canaries.add('email', 'ada@lovelace.test'), nick: 'countess-of-numbers' };
    const id = newUlid(Date.now());
    const meta = { environment: 'environment_1', actor: { id: 'spec', source: 'system', name: null }, requestId: id, commandId: id, at: Date.now() };
    const sealed = [{ of: 'person.1', fields: ['data', 'subject'].flatMap((part) => [`${part}.name`, `${part}.email`]) }];
    await events.append('person-environment_1-1', 0, [{ id, type: 'person.created', shape: 1, data: person, subject: person, public: [], sealed, meta }]);
    expect((await events.read('person-environment_1-1'))[0]?.data).toEqual(person);
    await storage.close();
    expect(canaries.foundInDirectory(directory)).toEqual({});
    canaries.add('nick', person.nick);
    expect(Object.values(canaries.foundInDirectory(directory)).flat()).toContain('nick, as it is');
  });
});
