import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { givenMongodb } from '#libs/testing/src/engines/given';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { until } from '#libs/testing/src/until';
import { LmdbReadModels } from './lmdb.read-models.ts';
import { MongodbReadModels } from './mongodb.read-models.ts';
import { ReadModels, type Table, type TableDefinition, type Write } from './read-models.ts';
import { type Stamp, Stamps } from './stamps.ts';

const LAST_USED: Stamp = { name: 'key.last_used_at' };
const SECOND = 1_000;
const log = new PinoLog({ level: 'silent', readable: false });

interface Opened {
  readonly readModels: ReadModels;
  close(): Promise<void>;
}

/** Rows of one place; opening again after `close` finds what was written. */
type Open = () => Promise<Opened>;

/** Counts what is written to tables, and refuses it while it is told to. */
class WatchedReadModels extends ReadModels {
  readonly bulks: (readonly Write[])[] = [];
  isAway = false;
  /** Between a write that everybody sees and whoever waits for it. */
  onSeen = (): void => {};

  constructor(private readonly readModels: ReadModels) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    const table = this.readModels.table(definition);
    const write = table.write.bind(table);
    return Object.assign(Object.create(table) as Table<Row>, {
      write: async (writes: readonly Write[]): Promise<void> => {
        if (this.isAway) throw new Error('away');
        this.bulks.push(writes);
        await write(writes);
        this.onSeen();
      },
    });
  }

  drop(table: string): Promise<void> {
    return this.readModels.drop(table);
  }
}

function stampsSpec(engine: string, given: () => Promise<Open>): void {
  describe(`stamps in ${engine}`, () => {
    let open: Open;
    let opened: Opened;
    let rows: WatchedReadModels;
    let clock: SettableClock;
    let stamps: Stamps;
    const started: Stamps[] = [];
    const start = (own = clock, mostOwners?: number): Stamps => {
      const replica = new Stamps({ readModels: rows, clock: own, log, metrics: new Metrics(), ...(mostOwners !== undefined && { mostOwners }) });
      started.push(replica);
      return replica;
    };
    const latest = (...owners: string[]): Promise<readonly (string | null)[]> => stamps.latest(LAST_USED, 'one', owners);
    const text = (time: number): string => new Date(time).toISOString();

    beforeEach(async () => {
      open = await given();
      opened = await open();
      rows = new WatchedReadModels(opened.readModels);
      clock = new SettableClock();
      stamps = start();
    });
    afterEach(async () => {
      rows.isAway = false;
      for (const each of started.splice(0)) await each.stop();
      await opened.close();
    });

    it('shows the newest time of each owner of an environment, and none of who was never used', async () => {
      stamps.record(LAST_USED, 'one', 'key_a', 2 * SECOND);
      stamps.record(LAST_USED, 'one', 'key_a', 3 * SECOND);
      stamps.record(LAST_USED, 'one', 'key_a', SECOND);
      stamps.record(LAST_USED, 'one', 'key_b');
      stamps.record(LAST_USED, 'two', 'key_c');
      await stamps.round();
      expect(await latest('key_b', 'key_c', 'key_a')).toEqual([text(clock.now()), null, text(3 * SECOND)]);
      expect(await latest()).toEqual([]);
      expect(rows.bulks.map(({ length }) => length)).toEqual([3]);
    });

    it('keeps the stamps of an owner apart', async () => {
      const signedIn: Stamp = { name: 'key.last_signed_in_at' };
      stamps.record(LAST_USED, 'one', 'key_a', 2 * SECOND);
      stamps.record(signedIn, 'one', 'key_a', 3 * SECOND);
      await stamps.round();
      await stamps.end(signedIn, 'one', ['key_a']);
      expect([await latest('key_a'), await stamps.latest(signedIn, 'one', ['key_a'])]).toEqual([[text(2 * SECOND)], [null]]);
    });

    it('stores a first use within a second, by itself', async () => {
      const live = new Stamps({ readModels: rows, clock: new SystemClock(), log, metrics: new Metrics() });
      started.push(live);
      const before = performance.now();
      live.record(LAST_USED, 'one', 'key_a');
      expect(rows.bulks).toEqual([]);
      await until(async () => (await latest('key_a'))[0] !== null);
      expect(performance.now() - before).toBeGreaterThan(100);
    });

    it('stores an owner who is used all the time once in ten seconds, with his last use', async () => {
      const uses: number[] = [];
      for (let elapsed = 0; elapsed < 60 * SECOND; elapsed += SECOND / 4) {
        stamps.record(LAST_USED, 'one', 'key_a');
        uses.push(clock.now());
        await stamps.round();
        clock.forward(SECOND / 4);
      }
      expect(rows.bulks).toHaveLength(6);
      expect(await latest('key_a')).toEqual([text(uses[50 * 4]!)]);
      clock.forward(10 * SECOND);
      await stamps.round();
      expect(await latest('key_a')).toEqual([text(uses.at(-1)!)]);
      // Nobody is remembered for ever: this is a first use again.
      clock.forward(10 * SECOND);
      await stamps.round();
      stamps.record(LAST_USED, 'one', 'key_a');
      await stamps.round();
      expect(await latest('key_a')).toEqual([text(clock.now())]);
    });

    it('stores in its time a use that follows on a stored one which its process has not heard of yet', async () => {
      stamps.record(LAST_USED, 'one', 'key_a');
      rows.onSeen = () => {
        clock.forward(10 * SECOND);
        stamps.record(LAST_USED, 'one', 'key_a');
      };
      await stamps.round();
      rows.onSeen = () => {};
      await stamps.round();
      expect(await latest('key_a')).toEqual([text(clock.now())]);
    });

    it('goes on when the clock is set back, and keeps the newest time', async () => {
      stamps.record(LAST_USED, 'one', 'key_a');
      const newest = clock.now();
      await stamps.round();
      clock.forward(-3_600 * SECOND);
      stamps.record(LAST_USED, 'one', 'key_a');
      await stamps.round();
      stamps.record(LAST_USED, 'one', 'key_a', newest + 1);
      clock.forward(10 * SECOND);
      await stamps.round();
      expect(await latest('key_a')).toEqual([text(newest + 1)]);
    });

    it('writes many owners as bulks', async () => {
      const owners = Array.from({ length: 1_700 }, (_, number) => `key_${number}`);
      for (const owner of owners) stamps.record(LAST_USED, 'one', owner);
      await stamps.round();
      expect(rows.bulks.map(({ length }) => length)).toEqual([500, 500, 500, 200]);
      expect(new Set(await latest(...owners))).toEqual(new Set([text(clock.now())]));
    });

    it('keeps the newest time of an owner whom two replicas stamp, in whatever order they store it', async () => {
      const random = seededNumbers(seedOf('stamps'));
      const replicas = [stamps, start()];
      const owners = ['key_a', 'key_b', 'key_c'];
      const newest = new Map<string, number>();
      for (let step = 0; step < 60; step++) {
        for (const replica of replicas)
          for (const owner of owners) {
            const at = clock.now() - random(20 * SECOND);
            replica.record(LAST_USED, 'one', owner, at);
            newest.set(owner, Math.max(at, newest.get(owner) ?? 0));
          }
        const shown = await latest(...owners);
        clock.forward(11 * SECOND);
        await Promise.all(replicas.map((replica) => replica.round()));
        // It never goes back.
        for (const [index, time] of (await latest(...owners)).entries()) expect(time! >= (shown[index] ?? '')).toBe(true);
      }
      for (const replica of replicas) await replica.stop();
      expect(await latest(...owners)).toEqual(owners.map((owner) => text(newest.get(owner)!)));
    });

    it('shows nothing of an owner who has ended, whatever another replica stores afterwards', async () => {
      const other = start();
      for (const replica of [stamps, other]) replica.record(LAST_USED, 'one', 'key_a');
      stamps.record(LAST_USED, 'one', 'key_b');
      await stamps.round();
      await stamps.end(LAST_USED, 'one', ['key_a', 'key_never_used']);
      clock.forward(365 * 86_400 * SECOND);
      for (const replica of [stamps, other]) for (const owner of ['key_a', 'key_never_used']) replica.record(LAST_USED, 'one', owner);
      await other.round();
      await stamps.round();
      expect(await latest('key_a', 'key_b', 'key_never_used')).toEqual([null, expect.any(String), null]);
      await opened.close();
      opened = await open();
      rows = new WatchedReadModels(opened.readModels);
      const again = start();
      again.record(LAST_USED, 'one', 'key_a');
      await again.round();
      expect(await again.latest(LAST_USED, 'one', ['key_a'])).toEqual([null]);
    });

    it('tries again what could not be stored, and stands in nobody’s way meanwhile', async () => {
      rows.isAway = true;
      stamps.record(LAST_USED, 'one', 'key_a');
      await stamps.round();
      await stamps.round();
      clock.forward(SECOND);
      stamps.record(LAST_USED, 'one', 'key_a');
      stamps.record(LAST_USED, 'one', 'key_b');
      expect(await latest('key_a', 'key_b')).toEqual([null, null]);
      rows.isAway = false;
      await stamps.round();
      expect(await latest('key_a', 'key_b')).toEqual([text(clock.now()), text(clock.now())]);
      expect(rows.bulks.map(({ length }) => length)).toEqual([2]);
    });

    it('holds no more owners than it may: who rests makes room, and who is not stored yet does not', async () => {
      const metrics = new Metrics();
      const small = new Stamps({ readModels: rows, clock, log, metrics, mostOwners: 3 });
      started.push(small);
      const owners = ['key_a', 'key_b', 'key_c', 'key_d', 'key_e'];
      rows.isAway = true;
      for (const owner of owners) small.record(LAST_USED, 'one', owner);
      expect(await metrics.text()).toContain('gatehouse_stamps_lost_total{stamp="key.last_used_at"} 2');
      rows.isAway = false;
      await small.round();
      expect(await latest(...owners)).toEqual([...Array<string>(3).fill(text(clock.now())), null, null]);
      clock.forward(SECOND);
      // One of those who rest was used again, and is stored all the same.
      for (const owner of ['key_a', 'key_d', 'key_e']) small.record(LAST_USED, 'one', owner);
      await small.round();
      expect(await latest('key_a', 'key_b', 'key_d', 'key_e')).toEqual([clock.now(), clock.now() - SECOND, clock.now(), clock.now()].map(text));
      expect(await metrics.text()).toContain('gatehouse_stamps_lost_total{stamp="key.last_used_at"} 2');
    });

    it('stores what it knows when it is stopped, also of who rests, and finds it after a restart', async () => {
      stamps.record(LAST_USED, 'one', 'key_a');
      await stamps.round();
      clock.forward(SECOND);
      stamps.record(LAST_USED, 'one', 'key_a');
      stamps.record(LAST_USED, 'one', 'key_b');
      await stamps.stop();
      await opened.close();
      opened = await open();
      rows = new WatchedReadModels(opened.readModels);
      stamps = start();
      expect(await latest('key_a', 'key_b')).toEqual([text(clock.now()), text(clock.now())]);
    });
  });
}

const directories: string[] = [];
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

stampsSpec('LMDB', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'stamps-'));
  directories.push(directory);
  return async () => {
    const storage = await LmdbStorage.open({ directory });
    return { readModels: new LmdbReadModels(storage), close: () => storage.close() };
  };
});

((await givenMongodb()) === null ? describe.skip : describe)('with MongoDB', () => {
  stampsSpec('MongoDB', async () => {
    const url = (await givenMongodb())!;
    return async () => {
      const storage = await MongodbStorage.connect({ url, log });
      return { readModels: new MongodbReadModels(storage), close: () => storage.close() };
    };
  });
});
