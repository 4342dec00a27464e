import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import type { ErasablePurpose } from './key-store.ts';
import { LmdbKeyStore } from './lmdb.key-store.ts';
import { markedFieldsOf } from './marked-fields.ts';
import type { WrappedKey } from './master-keys.ts';
import { SealingEventStore } from './sealing.event-store.ts';

/** Records and keys as they lie on disk. The file is only ever added to. */
const examples = JSON.parse(readFileSync(new URL('sealed-records.examples.json', import.meta.url), 'utf8')) as {
  readonly master_key: string;
  readonly keys: readonly WrappedKey[];
  /** The first one is of a release whose records do not say what is sealed in them. */
  readonly records: readonly RecordedEvent[];
  readonly opened: readonly Pick<RecordedEvent, 'data' | 'subject'>[];
};
const [USER, MONTH] = examples.keys.map(({ purpose }) => purpose as ErasablePurpose) as [ErasablePurpose, ErasablePurpose];

describe('sealed records of every release', () => {
  let directory: string;
  let storage: LmdbStorage;
  let keys: LmdbKeyStore;
  let events: SealingEventStore;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealed-records-'));
    storage = await LmdbStorage.open({ directory });
    for (const key of examples.keys)
      await writeFile(join(directory, 'keys', `${createHash('sha256').update(key.purpose).digest('hex').slice(0, 40)}.key`), JSON.stringify(key));
    keys = await LmdbKeyStore.open(storage.keys, [examples.master_key]);
    events = new SealingEventStore(new LmdbEventStore(storage), keys, markedFieldsOf({}));
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const read = async () => (await events.inClear(examples.records)).map(({ data, subject }) => ({ data, subject }));

  it('are opened', async () => {
    expect(await read()).toEqual(examples.opened);
  });

  it('say what is sealed in them to whoever reads them, also those that do not say it on disk', async () => {
    const [former, own] = await events.inClear(examples.records);
    expect('sealed' in examples.records[0]!).toBe(false);
    expect(former!.sealed).toEqual([{ of: own!.sealed![0]!.of, fields: expect.arrayContaining(['data.email', 'subject.email']) }]);
  });

  it('are forgotten at once, whatever release sealed them', async () => {
    await keys.destroy(USER);
    const [former, own, session] = await read();
    expect(former).toMatchObject({ data: { email: null, name: null, metadata: null, email_verified: true }, subject: { email: null, object: 'user' } });
    expect(own).toMatchObject({ data: { last_name: null }, subject: { email: null, name: null } });
    expect(session!.data).toEqual({ ...(examples.opened[2]!.data as object), user: { ip: null } });
    await keys.destroy(MONTH);
    expect((await read())[2]!.data).toEqual({ user: { ip: null }, entries: [{ text: null }, { text: null }, { text: null }], open: 1 });
  });

  it('stay readable where a field was marked as personal only later', async () => {
    const later = new SealingEventStore(new LmdbEventStore(storage), keys, () => ({ personal: ['locale'], secret: [] }));
    const [former] = examples.records;
    const [opened] = await later.inClear([{ ...former!, data: { ...(former!.data as object), locale: 'en' } }]);
    expect(opened!.data).toMatchObject({ locale: 'en', email: 'ada@acme.test' });
  });
});
