import { hash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START, type NewEvent, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { newCommandId } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { loadedFirst } from './cluster-ground.ts';
import { reference } from './reference.ts';
import type { Ground, Pace, Row, Scenario } from './scenario.ts';
import { loaded, timing, type SuiteResult } from './suite-load.ts';
import { KEY, Suite } from './suite.ts';
import { count, percent, rate, row } from './table.ts';

const KEYS = 100_000;
const ORGANIZATIONS = 100;
/** One in so many questions is about a value that is no key. */
const UNKNOWN_EVERY = 10;
/** Appends in flight: enough to share each flush, few enough to stay small. */
const TOGETHER = 2_000;

export const API_KEY_SCENARIOS: readonly Scenario[] = [{ name: 'api-keys', organizations: 'none', measure: validations }];

async function validations(ground: Ground, pace: Pace): Promise<readonly Row[]> {
  const directory = join(ground.directory, 'api-keys');
  const values = await seeded(directory);
  const suite = await Suite.start(directory, pace.profiles === null ? [] : [await loadedFirst('profiler.js', join(pace.profiles, 'api-keys'))]);
  try {
    await suite.caughtUp();
    const asked = values.map((value, index) => ((index + 1) % UNKNOWN_EVERY === 0 ? newValue() : value));
    await refuseWrong(suite, asked);
    const file = await ground.fileOf(
      'validations',
      asked.map((value) => `/api_keys/validations ${JSON.stringify({ value })}`),
    );
    const ask = (): Promise<SuiteResult> => loaded(suite, { url: suite.url, script: 'send', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
    const first = await ask();
    const plain = await reference(pace.seconds);
    const result = await ask();
    const share = result.perSecond / plain.perSecond;
    return [
      row(`\`POST /api_keys/validations\`, ${count(KEYS)} keys that nobody asked for yet, 32 connections`, 'measured', timing(first), true),
      row(`the same, once each was asked for; one in ${UNKNOWN_EVERY} unknown`, '≥ 25,000/s', timing(result), result.perSecond >= 25_000),
      row('the same, of a plain Fastify POST with a schema', '≥ 42 %', `${percent(share)} of ${rate(plain.perSecond)}`, share >= 0.42),
    ];
  } finally {
    await suite.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** A load of answers that say nothing would be fast as well. */
async function refuseWrong(suite: Suite, asked: readonly string[]): Promise<void> {
  for (const [index, value] of asked.slice(0, 2 * UNKNOWN_EVERY).entries()) {
    const { api_key } = (await suite.ask('/api_keys/validations', { value })) as { readonly api_key: object | null };
    if ((api_key === null) !== ((index + 1) % UNKNOWN_EVERY === 0)) throw new Error('A key is not valid, or a value that is none is one.');
  }
}

/** The first is made as a customer makes it, and the rest straight into the log after its example. Answers their values. */
async function seeded(directory: string): Promise<readonly string[]> {
  const suite = await Suite.start(directory);
  const organizations: string[] = [];
  for (let index = 0; index < ORGANIZATIONS; index++)
    organizations.push(((await suite.post('/organizations', { name: `Bench ${index}` })) as { readonly id: string }).id);
  const example = (await suite.post(`/organizations/${organizations[0]}/api_keys`, { name: 'Build server' })) as { readonly id: string };
  await suite.stop();
  const storage = await LmdbStorage.open({ directory });
  const values: string[] = [];
  try {
    const store = new LmdbEventStore(storage);
    const recorded = await creation(store, example.id);
    const { stream, id, type, shape, data, subject, public: announced, sealed, meta } = recorded;
    // As in `seed.ts`: the origin opens in this one record alone.
    const text = JSON.stringify({ id, type, shape, data, subject, public: announced, sealed, meta: { ...meta, origin: undefined } } satisfies NewEvent);
    const command = meta.commandId.slice(0, -4);
    const { hash: exampleHash } = data as { readonly hash: string };
    let pending: Promise<unknown>[] = [];
    for (let index = 0; index < KEYS; index++) {
      const [value, own] = [newValue(), newCommandId(Date.now()).slice(0, -4)];
      values.push(value);
      const event = text
        .replaceAll(command, own)
        .replaceAll(organizations[0]!, organizations[index % ORGANIZATIONS]!)
        .replaceAll(exampleHash, hash('sha256', value, 'hex'));
      pending.push(store.append(stream.replace(command, own), 0, [JSON.parse(event) as NewEvent]));
      if (pending.length < TOGETHER) continue;
      await Promise.all(pending);
      pending = [];
    }
    await Promise.all(pending);
  } finally {
    await storage.close();
  }
  await Suite.command(directory, 'rebuild');
  return values;
}

async function creation(store: LmdbEventStore, id: string): Promise<RecordedEvent> {
  for await (const batch of store.subscribe(START, new AbortController().signal)) {
    const found = batch.find(({ stream }) => stream.endsWith(id));
    if (found !== undefined) return found;
  }
  throw new Error(`The suite recorded nothing of ${id}.`);
}

function newValue(): string {
  return `sk_${randomBytes(32).toString('base64url')}`;
}
