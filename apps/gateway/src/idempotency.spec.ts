import { hash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { GatewaySettings } from '#libs/platform/src/config/settings';
import { ManyReplicas } from '#libs/platform/src/replicas';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { KeptLog } from '#libs/testing/src/kept-log';
import { until } from '#libs/testing/src/until';
import { AnswerVault } from './answer-vault.ts';
import { Idempotency, type Execute } from './idempotency.ts';
import type { HttpAnswer } from './http-answer.ts';
import { givenGateway, type GivenGateway } from './testing/given-gateway.ts';

const ULID = '01J00000000000000000000000';

describe('a command with an Idempotency-Key', () => {
  let gateway: GivenGateway;
  let count = 0;
  beforeAll(async () => {
    gateway = await givenGateway();
  });
  afterAll(() => gateway.close());

  const newKey = (): Readonly<Record<string, string>> => ({ 'Idempotency-Key': `key-${++count}` });
  const times = (): number => gateway.notes.carriedOut.length;

  it('is carried out once, and answers the same again', async () => {
    const key = newKey();
    const first = await gateway.post('/notes', { text: 'once' }, key);
    const before = times();
    const second = await gateway.post('/notes', { text: 'once' }, key);
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(await second.text()).toBe(await first.text());
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect(second.headers.get('gatehouse-position')).toBe(first.headers.get('gatehouse-position'));
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'));
    expect(times()).toBe(before);
  });

  it('is carried out again where the key is a digest of what is asked, which tells no request from the next', async () => {
    const digest = hash('sha256', 'POST/notes');
    for (const [key, more] of [
      [`retry-${digest}`, 2],
      [`retry-${digest.toUpperCase()}`, 1],
      [`retry-${digest}0`, 1],
      ['retry-8b0e4f9e-2f4c-4a39-9d68-5a6b0b1fce2d', 1],
    ] as const) {
      const before = times();
      const answers = [
        await gateway.post('/notes', { text: 'again' }, { 'Idempotency-Key': key }),
        await gateway.post('/notes', { text: 'again' }, { 'Idempotency-Key': key }),
      ];
      expect([times() - before, answers[1]!.headers.get('idempotent-replayed')]).toEqual([more, more === 2 ? null : 'true']);
    }
  });

  it('is carried out once for twins in flight', async () => {
    const key = newKey();
    let open = (): void => {};
    gateway.notes.gate = new Promise((resolve) => (open = resolve));
    const before = times();
    const twins = Array.from({ length: 5 }, () => gateway.post('/notes', { text: 'wait' }, key));
    await until(() => times() !== before);
    open();
    const answers = await Promise.all((await Promise.all(twins)).map((answer) => answer.text()));
    expect(new Set(answers).size).toBe(1);
    expect(times()).toBe(before + 1);
  });

  it('is refused the same again', async () => {
    const key = newKey();
    const first = await gateway.post('/notes', { text: 'taken' }, key);
    const second = await gateway.post('/notes', { text: 'taken' }, key);
    expect([first.status, second.status]).toEqual([409, 409]);
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect(await second.text()).toBe(await first.text());
  });

  it.each(['away', 'bug'])('is tried again under the same command id after %p', async (text) => {
    const key = newKey();
    gateway.notes.failures = 1;
    const before = times();
    const first = await gateway.post('/notes', { text }, key);
    expect(first.status).toBeGreaterThanOrEqual(500);
    const second = await gateway.post('/notes', { text }, key);
    expect(second.headers.get('idempotent-replayed')).toBeNull();
    expect(times()).toBe(before + 2);
    expect(new Set(gateway.notes.carriedOut.slice(before)).size).toBe(1);
    expect(gateway.notes.attempts.slice(before)).toEqual([1, 2]);
    if (text === 'away') expect(second.status).toBe(201);
  });

  it('is not stored when it was invalid', async () => {
    const key = newKey();
    expect((await gateway.post('/notes', {}, key)).status).toBe(422);
    expect((await gateway.post('/notes', { text: 'valid now' }, key)).status).toBe(201);
  });

  it('replays by key alone, and tells the log of another body', async () => {
    const key = newKey();
    await gateway.post('/notes', { text: 'one' }, key);
    expect(await (await gateway.post('/notes', { text: 'two' }, key)).json()).toMatchObject({ text: 'one' });
    expect(gateway.log.lines.at(-1)).toMatchObject({ level: 'warn', sentence: expect.stringContaining('another body') });
  });

  it('knows the key only in its environment', async () => {
    const key = newKey();
    gateway.keys.usable.set(hash('sha256', 'sk_of_another_environment', 'hex'), 'environment_01J00000000000000000000001');
    const first = (await (await gateway.post('/notes', { text: 'mine' }, key)).json()) as { id: string };
    const other = (await (await gateway.post('/notes', { text: 'theirs' }, { ...key, Authorization: 'Bearer sk_of_another_environment' })).json()) as {
      id: string;
      text: string;
    };
    expect(other.id).not.toBe(first.id);
    expect(other.text).toBe('theirs');
  });

  it('is ignored on POSTs that ask', async () => {
    const key = newKey();
    const before = times();
    await gateway.post('/notes/check', { text: 'asked' }, key);
    const second = await gateway.post('/notes/check', { text: 'asked' }, key);
    expect(times()).toBe(before + 2);
    expect(second.headers.get('idempotent-replayed')).toBeNull();
  });

  it.each(['x'.repeat(256), 'a b'])('refuses the key %p', async (key) => {
    const response = await gateway.post('/notes', { text: 'x' }, { 'Idempotency-Key': key });
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ errors: [{ field: 'Idempotency-Key' }] });
  });

  it('leaves nothing legible in what is kept', async () => {
    const key = newKey();
    await gateway.post('/notes', { text: 'confidential' }, key);
    const stored = await gateway.shortLived.get('idempotency', nameOf('/notes', key['Idempotency-Key']!));
    expect(stored?.value).toMatch(/^[0-9A-Z]{26} [\w-]{43} = /);
    expect(stored?.value).not.toContain('confidential');
  });
});

function nameOf(path: string, key: string): string {
  return hash('sha256', `environment_${ULID}\n${path}\n${key}`, 'base64url');
}

describe('through several gateways', () => {
  let gateways: readonly [GivenGateway, GivenGateway];
  beforeAll(async () => {
    const first = await givenGateway();
    gateways = [first, await givenGateway({}, { beside: first })];
  });
  afterAll(async () => {
    for (const gateway of [...gateways].reverse()) await gateway.close();
  });

  it('is carried out once, and twins get the same answer', async () => {
    const [one, other] = gateways;
    let open = (): void => {};
    one.notes.gate = other.notes.gate = new Promise((resolve) => (open = resolve));
    const twins = [...gateways, ...gateways].map((gateway) => gateway.post('/notes', { text: 'wait' }, { 'Idempotency-Key': 'twins' }));
    await until(() => one.notes.carriedOut.length + other.notes.carriedOut.length > 0);
    open();
    const answers = await Promise.all(twins);
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1);
    expect(one.notes.carriedOut.length + other.notes.carriedOut.length).toBe(1);
  });

  it('is carried out again under the same command id when the gateway is gone that had begun, not before its deadline', async () => {
    const [, other] = gateways;
    const commandId = '01J0000000000000000000ZY0000';
    const until = Date.now() + 1_500;
    await other.shortLived.putIfAbsent('idempotency', nameOf('/notes', 'gone'), `${commandId} body a-gateway-that-is-gone ${until} 2`, until + 60_000);
    const answer = await other.post('/notes', { text: 'gone' }, { 'Idempotency-Key': 'gone' });
    expect([answer.status, Date.now() >= until]).toEqual([201, true]);
    expect([other.notes.carriedOut.at(-1), other.notes.attempts.at(-1)]).toEqual([commandId, 3]);
  });

  it('is not carried out beside a gateway whose clock is behind: its deadline alone says nothing', async () => {
    const [, other] = gateways;
    const commandId = '01J0000000000000000000ZX0000';
    const begun = performance.now();
    await other.shortLived.putIfAbsent('idempotency', nameOf('/notes', 'behind'), `${commandId} body a-gateway ${Date.now() - 60_000} 1`, Date.now() + 60_000);
    expect((await other.post('/notes', { text: 'behind' }, { 'Idempotency-Key': 'behind' })).status).toBe(201);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(1_000);
    expect(other.notes.attempts.at(-1)).toBe(2);
  });
});

describe('after a restart', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'idempotency-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it('finds the answer', async () => {
    const key = { 'Idempotency-Key': 'over-a-restart' };
    const before = await givenGateway({}, { directory });
    const first = await (await before.post('/notes', { text: 'kept' }, key)).text();
    await before.close();
    const after = await givenGateway({}, { directory });
    const second = await after.post('/notes', { text: 'kept' }, key);
    expect(await second.text()).toBe(first);
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    await after.close();
  });

  it('carries out at once, under the same command id, what the process before had only reserved', async () => {
    const key = { 'Idempotency-Key': 'reserved' };
    const gateway = await givenGateway({}, { directory });
    const commandId = '01J0000000000000000000ZZ0000';
    const held = `${commandId} hash-of-the-body a-process-before ${Date.now() + 60_000}`;
    await gateway.shortLived.putIfAbsent('idempotency', nameOf('/notes', 'reserved'), held, Date.now() + 60_000);
    expect((await gateway.post('/notes', { text: 'again' }, key)).status).toBe(201);
    // A release that counted no attempts had written it.
    expect([gateway.notes.carriedOut, gateway.notes.attempts]).toEqual([[commandId], [2]]);
    expect((await gateway.post('/notes', { text: 'again' }, key)).headers.get('idempotent-replayed')).toBe('true');
    await gateway.close();
  });
});

describe('among several processes', () => {
  const clock = new SystemClock();
  const settings = readSettings(GatewaySettings, {});
  const request = { environment: 'environment_1', path: '/notes', key: 'shared', body: '{}', requestId: 'req' };
  const made = (text: string): HttpAnswer => ({ status: 201, text });
  let directory: string;
  let storage: LmdbStorage;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'idempotency-'));
    storage = await LmdbStorage.open({ directory });
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const processes = async (): Promise<readonly [Idempotency, Idempotency]> => {
    const store = new LmdbShortLived(storage, clock);
    const keys = await LmdbKeyStore.open(storage.keys, []);
    const start = (): Idempotency => new Idempotency(store, new AnswerVault(keys), new ManyReplicas(), clock, settings, new KeptLog());
    return [start(), start()];
  };

  it('waits for the answer of another', async () => {
    const [one, other] = await processes();
    let answer = (_answer: HttpAnswer): void => {};
    const executed = new Promise<HttpAnswer>((resolve) => (answer = resolve));
    const deadline = clock.now() + 10_000;
    const first = one.run({ ...request, deadline }, () => executed);
    const second = other.run({ ...request, deadline }, () => Promise.reject(new Error('carried out twice')));
    answer(made('{"by":"one"}'));
    expect([(await first).text, (await second).text]).toEqual(['{"by":"one"}', '{"by":"one"}']);
    expect((await second).headers).toEqual({ 'Idempotent-Replayed': 'true' });
  });

  it('takes over under the same command id when the deadline of another has passed, whose late answer then counts no more', async () => {
    const [one, other] = await processes();
    const begun: Parameters<Execute>[0][] = [];
    let answer = (_answer: HttpAnswer): void => {};
    const executed = new Promise<HttpAnswer>((resolve) => (answer = resolve));
    const first = one.run({ ...request, deadline: clock.now() + 100 }, (command) => {
      begun.push(command);
      return executed;
    });
    const second = await other.run({ ...request, deadline: clock.now() + 10_000 }, async (command) => {
      begun.push(command);
      return made('{"by":"other"}');
    });
    await other.settled();
    answer(made('{"by":"one"}'));
    await first;
    await one.settled();
    expect(second.text).toBe('{"by":"other"}');
    expect(begun[0]!.commandId).toBe(begun[1]!.commandId);
    expect(begun.map(({ attempt }) => attempt)).toEqual([1, 2]);
    const third = await one.run({ ...request, deadline: clock.now() + 100 }, () => Promise.reject(new Error('carried out again')));
    expect(third.text).toBe('{"by":"other"}');
  });

  it('answers 503 when another is not done in time', async () => {
    const [one, other] = await processes();
    void one.run({ ...request, deadline: clock.now() + 10_000 }, () => new Promise(() => {}));
    const late = other.run({ ...request, deadline: clock.now() + 120 }, () => Promise.reject(new Error('carried out twice')));
    await expect(late).rejects.toMatchObject({ code: 'service_unavailable' });
  });
});
