import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import type { NewEvent, RecordedEvent } from '../log/event-store.ts';
import { keyProblems } from './key-check.ts';
import type { KeyPurpose } from './key-store.ts';
import { LmdbKeyStore } from './lmdb.key-store.ts';
import { markedFieldsOf } from './marked-fields.ts';
import { Origins } from './origins.ts';
import { SealingEventStore } from './sealing.event-store.ts';

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const STREAM = `settings-${ENVIRONMENT}-${ENVIRONMENT}`;
const ADA = { address: '192.0.2.1', userAgent: 'console/1.0', operator: 'Ada Lovelace' };

describe('from where something was recorded', () => {
  let directory: string;
  let storage: LmdbStorage;
  let stored: LmdbEventStore;
  let keys: LmdbKeyStore;
  let events: SealingEventStore;
  let origins: Origins;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'origins-'));
    storage = await LmdbStorage.open({ directory });
    stored = new LmdbEventStore(storage);
    keys = await LmdbKeyStore.open(storage.keys, []);
    events = new SealingEventStore(stored, keys, markedFieldsOf({}));
    origins = new Origins(keys);
  });
  afterAll(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const record = async (at: string): Promise<RecordedEvent> => {
    const id = newUlid(Date.now());
    const meta = { environment: ENVIRONMENT, actor: { id: 'a', source: 'api', name: null }, requestId: id, commandId: id, at: Date.parse(at), origin: ADA };
    const event: NewEvent = { id, type: 'settings.changed', shape: 1, data: { a: 1 }, subject: null, public: [], meta };
    await events.append(STREAM, (await events.last(STREAM))?.version ?? 0, [event]);
    return (await events.last(STREAM))!;
  };

  it('lies sealed, is read by who asks for it, and opens in no other record', async () => {
    const [first, second] = [await record('2026-01-31T23:59:59.999Z'), await record('2026-01-31T23:59:59.999Z')];
    for (const text of [JSON.stringify(await stored.read(STREAM)), JSON.stringify(await events.read(STREAM))])
      for (const personal of Object.values(ADA)) expect(text).not.toContain(personal);
    expect(await origins.of(first)).toEqual(ADA);
    expect(first.data).toEqual({ a: 1 });
    const { data, subject } = first;
    await expect(origins.of({ ...first, data, subject, meta: { ...first.meta, origin: second.meta.origin! } })).rejects.toThrow();
    expect(await origins.of({ ...first, data, subject, meta: { ...first.meta, origin: ADA } })).toBeNull();
  });

  it('ends with its month, and keeps nobody from reading the record', async () => {
    const [january, february] = [await record('2026-01-31T23:59:59.999Z'), await record('2026-02-01T00:00:00.000Z')];
    expect(await origins.endBefore(ENVIRONMENT, Date.parse('2026-01-31T23:59:59.999Z'))).toBe(0);
    expect(await origins.endBefore(ENVIRONMENT, Date.parse('2026-02-01T00:00:00.000Z'))).toBe(1);
    expect(await origins.endBefore(ENVIRONMENT, Date.parse('2026-02-28T00:00:00.000Z'))).toBe(0);
    expect([await origins.of(january), await origins.of(february)]).toEqual([null, ADA]);
    expect((await events.read(STREAM)).map(({ data }) => data)).toEqual([{ a: 1 }, { a: 1 }, { a: 1 }, { a: 1 }]);
    // Whoever is that late records it without.
    expect((await record('2026-01-15T00:00:00.000Z')).meta.origin).toBeUndefined();
  });

  it('is missed by who looks for keys, and by nobody else, where its key was lost', async () => {
    const march = await record('2026-03-01T00:00:00.000Z');
    const lost = await mkdtemp(join(tmpdir(), 'origins-lost-'));
    const without = await LmdbStorage.open({ directory: lost });
    try {
      const others = await LmdbKeyStore.open(without.keys, []);
      for (const purpose of ['naming', 'passwords'] satisfies KeyPurpose[]) await others.obtain(purpose);
      const missed = [];
      for await (const problem of keyProblems(stored, { keys: others, marked: markedFieldsOf({}), alsoNeeded: () => null })) missed.push(problem.detail);
      expect(missed).toContainEqual(expect.stringContaining(`origins.${ENVIRONMENT}-2026-03 is missing`));
      expect((await new SealingEventStore(stored, others, markedFieldsOf({})).read(STREAM)).length).toBeGreaterThan(0);
      await expect(new Origins(others).of(march)).rejects.toMatchObject({ code: 'service_unavailable' });
    } finally {
      await without.close();
      await rm(lost, { recursive: true });
    }
  });
});
