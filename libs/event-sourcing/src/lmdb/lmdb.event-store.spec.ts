import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import { byteTextKeys, numberKeys } from '#libs/platform/src/storage/lmdb-keys';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { type Acknowledged, eventsAt, startLogWriter } from '#libs/testing/src/log-writer-process';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import { eventStoreContract, newEvent, take } from '../log/event-store.contract.ts';
import { START } from '../log/event-store.ts';
import { LmdbEventStore, type LogProblem } from './lmdb.event-store.ts';

const directories: string[] = [];
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'event-store-'));
  directories.push(directory);
  return directory;
}

eventStoreContract('LMDB', async () => {
  const directory = await newDirectory();
  return async () => {
    const storage = await LmdbStorage.open({ directory });
    return { store: new LmdbEventStore(storage), close: () => storage.close() };
  };
});

describe('the log in LMDB', () => {
  it('acknowledges, shows and delivers nothing before it is on disk', async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const storage = await LmdbStorage.open({ directory: await newDirectory(), flushGate: () => gate });
    const store = new LmdbEventStore(storage);
    const event = newEvent();
    let seen = 0;
    const acknowledge = (): number => seen++;
    const appended = store.append('thing-1', 0, [event]).then(acknowledge);
    const repeated = store.append('thing-1', 0, [event]).then(acknowledge);
    const delivered = take(store, 1).then(acknowledge);
    await pause(100);
    expect([seen, await store.head()]).toEqual([0, START]);
    // Whoever decides on it may see it: what follows is on disk only after it.
    expect(await store.read('thing-1')).toHaveLength(1);
    release();
    await Promise.all([appended, repeated, delivered]);
    expect(await store.head()).not.toBe(START);
    await storage.close();
  });

  it('is read in slices, between which other work gets its turn', async () => {
    const directory = await newDirectory();
    const written = await LmdbStorage.open({ directory });
    await new LmdbEventStore(written).append(
      'thing-1',
      0,
      Array.from({ length: 1_000 }, () => newEvent()),
    );
    await written.close();
    const storage = await LmdbStorage.open({ directory });
    const reading = take(new LmdbEventStore(storage), 1_000);
    let [turns, isRead] = [0, false];
    void reading.then(() => (isRead = true));
    for (; !isRead; turns++) await turn();
    expect(turns).toBeGreaterThanOrEqual(9);
    await storage.close();
  });

  it('keeps what was just written in memory, and no more of it than 16 MiB', async () => {
    const storage = await LmdbStorage.open({ directory: await newDirectory() });
    const store = new LmdbEventStore(storage);
    for (let version = 0; version < 20; version++) await store.append('thing-1', version, [newEvent('x'.repeat(1_000_000))]);
    const [once, again] = [await store.read('thing-1'), await store.read('thing-1')];
    // One that is read from disk is another object each time.
    expect(once.filter((record, index) => record === again[index]).map(({ version }) => version)).toEqual(Array.from({ length: 16 }, (_, index) => index + 5));
    await storage.close();
  });

  /** A log of 20 records in 4 streams, changed by `damage`. */
  const damaged = async (
    damage: (log: LmdbStorage['log']) => void,
  ): Promise<{ readonly storage: LmdbStorage; readonly store: LmdbEventStore; readonly sentences: readonly string[] }> => {
    const sentences: string[] = [];
    const storage = await LmdbStorage.open({ directory: await newDirectory(), onFatal: (sentence) => sentences.push(sentence) });
    const store = new LmdbEventStore(storage);
    for (let number = 0; number < 20; number++) await store.append(`thing-${number % 4}`, Math.floor(number / 4), [newEvent()]);
    damage(storage.log);
    await storage.log.flushed();
    return { storage, store: new LmdbEventStore(storage), sentences };
  };
  const problemsOf = async (store: LmdbEventStore): Promise<LogProblem[]> => {
    const problems: LogProblem[] = [];
    for await (const problem of store.verify()) problems.push(problem);
    return problems;
  };

  it('finds every record whole', async () => {
    const { storage, store } = await damaged((log) => log.db('log', numberKeys).put(21, Buffer.alloc(0)));
    storage.log.db('log', numberKeys).remove(21);
    await storage.log.flushed();
    expect(await problemsOf(store)).toEqual([]);
    await storage.close();
  });

  it('notices a record that was changed, names it, and takes nothing more', async () => {
    const { storage, store, sentences } = await damaged((log) => {
      const records = log.db('log', numberKeys);
      const value = Buffer.from(records.get(7)!);
      value[value.length - 3]! ^= 1;
      records.put(7, value);
    });
    expect(await problemsOf(store)).toMatchObject([{ position: '0000000000000007', stream: 'thing-2' }]);
    await expect(store.read('thing-2')).rejects.toMatchObject({ position: '0000000000000007' });
    await expect(take(store, 20)).rejects.toMatchObject({ position: '0000000000000007' });
    expect(sentences).toEqual([expect.stringContaining('0000000000000007')]);
    await expect(store.append('thing-9', 0, [newEvent()])).rejects.toMatchObject({ kind: 'unavailable' });
    await storage.close();
  });

  it('notices a record in the place of another, and one that is missing', async () => {
    const { storage, store } = await damaged((log) => {
      const records = log.db('log', numberKeys);
      records.put(7, Buffer.from(records.get(8)!));
      records.remove(12);
    });
    expect(await problemsOf(store)).toMatchObject([
      { position: '0000000000000007', stream: 'thing-2' },
      { position: '0000000000000012', stream: 'thing-3' },
      { detail: expect.stringContaining('index') },
    ]);
    await storage.close();
  });

  it('cuts off what got through behind a commit that failed, and only that', async () => {
    for (const isIndexed of [false, true]) {
      const directory = await newDirectory();
      const storage = await LmdbStorage.open({ directory });
      const store = new LmdbEventStore(storage);
      for (let version = 0; version < 5; version++) await store.append('thing-1', version, [newEvent()]);
      storage.log.db('log', numberKeys).remove(4);
      const index = storage.log.db('streams', byteTextKeys);
      if (!isIndexed) index.remove([...index.getKeys()].at(3)!);
      await storage.log.flushed();
      // An end without a mark, as after a failure.
      storage.fail('tried out');
      await storage.close();
      const again = await LmdbStorage.open({ directory });
      if (isIndexed) expect(() => new LmdbEventStore(again)).toThrow('0000000000000004');
      else {
        const reopened = new LmdbEventStore(again);
        expect([await reopened.head(), (await reopened.read('thing-1')).length]).toEqual(['0000000000000003', 3]);
        expect(await problemsOf(reopened)).toEqual([]);
      }
      await again.close();
    }
  });

  it('fills its pages: two records of 1.5 KB lie on each, not one', async () => {
    const directory = await newDirectory();
    const storage = await LmdbStorage.open({ directory });
    const store = new LmdbEventStore(storage);
    const records = 500;
    for (let number = 0; number < records; number++) await store.append(`thing-${number}`, 0, [newEvent('x'.repeat(1_200))]);
    await storage.close();
    const { size } = await stat(join(directory, 'log', 'data.mdb'));
    // 4,096 bytes each where a page is split for every record.
    expect(size / records).toBeLessThan(3_000);
  });

  it('has every acknowledged append, and no half ones, after kill -9 at any moment', async () => {
    const directory = await newDirectory();
    const acknowledged: Acknowledged[] = [];
    const chosen = seededNumbers(seedOf('killed writers'));
    const wholeEnds = new Set([0]);
    for (let version = 0; version < 1_000; wholeEnds.add(version)) version += eventsAt(version);
    for (let round = 0; round < 6; round++) {
      const writer = startLogWriter(directory);
      await writer.hasAcknowledged(1 + chosen(400));
      writer.child.kill('SIGKILL');
      acknowledged.push(...(await writer.ended).acknowledged);
      const storage = await LmdbStorage.open({ directory });
      const store = new LmdbEventStore(storage);
      expect(await problemsOf(store)).toEqual([]);
      const records = await take(store, Number(await store.head()));
      const byPosition = new Map(records.map((record) => [record.position, record]));
      for (const { stream, version, position, id } of acknowledged) expect(byPosition.get(position)).toMatchObject({ stream, version, id });
      // Appends are there as a whole: a stream ends where one of them ended.
      const ends = new Map(records.map(({ stream, version }) => [stream, version]));
      for (const version of ends.values()) expect(wholeEnds.has(version)).toBe(true);
      await storage.close();
    }
    expect(acknowledged.length).toBeGreaterThan(6);
  });
});
