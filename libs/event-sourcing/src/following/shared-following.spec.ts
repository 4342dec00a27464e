import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { SharedLeases } from '#libs/read-models/src/shared-leases';
import { Killable } from '#libs/testing/src/killable';
import { until } from '#libs/testing/src/until';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import type { Position, RecordedEvent } from '../log/event-store.ts';
import { FollowerStates } from './follower-states.ts';
import { JointWrites } from './joint-writes.ts';
import { LeasedFollowers } from './leased-followers.ts';
import { LogFollowing } from './memory-follower.ts';

const SHARDS = [0, 1, 2, 3];
const NAMES = SHARDS.map((shard) => `shard-${shard}`);
const clock = new SystemClock();
const log = new PinoLog({ level: 'silent', readable: false });

describe('a log that is followed in shards, which replicas share out', () => {
  let directory: string;
  let storage: LmdbStorage;
  /** What the replicas share. */
  let rows: LmdbReadModels;
  let shortLived: LmdbShortLived;
  let events: LmdbEventStore;
  let replicas: Replica[];
  /** Data of the records, in the order in which they were handled, by shard and replica. */
  let handled: { readonly shard: number; readonly by: number; readonly data: unknown }[];
  let handling: (shard: number, by: number) => Promise<void>;
  let count: number;
  /** Ends what a spec holds up. */
  let letGo: () => void;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'shared-following-'));
    storage = await LmdbStorage.open({ directory });
    [rows, shortLived, events] = [new LmdbReadModels(storage), new LmdbShortLived(storage, clock), new LmdbEventStore(storage)];
    [replicas, handled, count] = [[], [], 0];
    handling = async () => {};
    letGo = () => {};
  });
  afterEach(async () => {
    letGo();
    await Promise.all(replicas.filter(({ killable }) => !killable.isKilled).map(({ lifecycle }) => lifecycle.stop()));
    await storage.close();
    await rm(directory, { recursive: true });
  });

  interface Replica {
    readonly lifecycle: Lifecycle;
    readonly killable: Killable;
    readonly leases: Leases;
  }

  /** Another process of a cluster. */
  async function start(from?: () => Promise<Position>): Promise<Replica> {
    const [lifecycle, killable, by, metrics] = [new Lifecycle(), new Killable(), replicas.length, new Metrics()];
    const readModels = killable.rows(rows);
    const replica = newUlid(clock.now());
    const leases = new Leases(killable.of(shortLived), replica, log, metrics);
    const followers = new LeasedFollowers({
      following: new LogFollowing(events, clock, log),
      writes: new JointWrites(readModels),
      leases,
      states: new FollowerStates(readModels, clock),
      lifecycle,
      metrics,
    });
    const shares = new SharedLeases('spec', NAMES, { leases, readModels, replica, log });
    lifecycle.add(shares);
    for (const shard of SHARDS) {
      followers.add({
        name: NAMES[shard]!,
        table: readModels.table<never>({ name: `spec-${shard}`, indexes: [], rebuildable: false }),
        from,
        shares,
        handle: async (batch) => {
          const own = batch.filter(({ stream }) => shardOf(stream) === shard);
          if (own.length === 0) return false;
          await handling(shard, by);
          if (!killable.isKilled) handled.push(...own.map(({ data }) => ({ shard, by, data })));
          return true;
        },
      });
    }
    const started = { lifecycle, killable, leases };
    replicas.push(started);
    await lifecycle.start();
    return started;
  }

  const shardOf = (stream: string): number => Number(stream.split('-')[2]);
  const heldBy = ({ leases }: Replica): number => NAMES.filter((name) => leases.isHeld(name)).length;
  const areShared = (...parts: readonly number[]): Promise<void> =>
    until(
      () =>
        replicas
          .filter(({ killable }) => !killable.isKilled)
          .map(heldBy)
          .join() === parts.join(),
    );

  /** So many records of each shard, one after the other. */
  async function record(each: number): Promise<void> {
    for (let round = 0; round < each; round++, count++)
      await Promise.all(SHARDS.map((shard) => events.append(`counter-spec-${shard}`, count, [counted(count)])));
  }

  const expectWhole = (): void => {
    for (const shard of SHARDS) {
      const seen = handled.filter((one) => one.shard === shard).map(({ data }) => data);
      // By first appearance.
      expect([shard, [...new Set(seen)]]).toEqual([shard, Array.from({ length: count }, (_, index) => index)]);
    }
  };

  it('is handled whole and in order while replicas come and go, and none handles again what another gave back', async () => {
    await start();
    await record(20);
    await areShared(4);
    await start();
    await record(20);
    await areShared(2, 2);
    await until(() => handled.length >= count * SHARDS.length);
    const before = handled.length;
    await record(20);
    await until(() => handled.length >= count * SHARDS.length);
    expectWhole();
    expect(handled).toHaveLength(count * SHARDS.length);
    expect(new Set(handled.slice(before).map(({ by }) => by))).toEqual(new Set([0, 1]));
  });

  it('goes on where a killed replica has stored how far it was', async () => {
    const first = await start();
    await start();
    await areShared(2, 2);
    await record(10);
    first.killable.isKilled = true;
    await record(10);
    await areShared(4);
    await record(10);
    await until(() => SHARDS.every((shard) => new Set(handled.filter((one) => one.shard === shard).map(({ data }) => data)).size === count));
    expectWhole();
  }, 20_000);

  it('is given back behind a batch that takes its time, once that is handled and stored', async () => {
    const finished = new Promise<void>((resolve) => (letGo = resolve));
    await start();
    await areShared(4);
    handling = (_shard, by) => (by === 0 ? finished : Promise.resolve());
    await record(1);
    await start();
    // Longer than a round, in which the first learns of the second.
    await pause(2_500);
    expect([handled.length, ...replicas.map(heldBy)]).toEqual([0, 4, 0]);
    letGo();
    await areShared(2, 2);
    await record(1);
    await until(() => handled.filter(({ data }) => data === 1).length === SHARDS.length);
    expect(handled.filter(({ data }) => data === 0).map(({ by }) => by)).toEqual([0, 0, 0, 0]);
    expectWhole();
  });

  it('stops no other shard where one is slow', async () => {
    await start();
    const held = new Promise<void>((resolve) => (letGo = resolve));
    handling = (shard) => (shard === 0 ? held : Promise.resolve());
    await record(5);
    await until(() => handled.length === 15);
    expect(handled.some(({ shard }) => shard === 0)).toBe(false);
  });

  it('begins where it is told, once', async () => {
    await record(3);
    const begin = await events.head();
    await record(1);
    let asked = 0;
    await start(async () => {
      asked++;
      return begin;
    });
    await until(() => handled.length === 4);
    expect(handled.map(({ data }) => data)).toEqual([3, 3, 3, 3]);
    await replicas[0]!.lifecycle.stop();
    await start(() => Promise.reject(new Error('There is a checkpoint.')));
    await record(1);
    await until(() => handled.length === 8);
    expect([asked, handled.slice(4).map(({ data }) => data)]).toEqual([4, [4, 4, 4, 4]]);
  });
});

function counted(data: number): Omit<RecordedEvent, 'stream' | 'version' | 'position'> {
  const id = newUlid(clock.now());
  const meta = { environment: 'spec', actor: { id: 'spec', source: 'system', name: null }, requestId: id, commandId: id, at: clock.now() };
  return { id, type: 'counter.counted', shape: 1, data, subject: null, public: [], meta };
}
