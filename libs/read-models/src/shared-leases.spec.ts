import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Killable } from '#libs/testing/src/killable';
import { mayTake, until } from '#libs/testing/src/until';
import { LeasedWork } from './leased-work.ts';
import { Leases } from './leases.ts';
import { LmdbReadModels } from './lmdb.read-models.ts';
import { LmdbShortLived } from './lmdb.short-lived.ts';
import { SharedLeases } from './shared-leases.ts';
import type { ShortLived } from './short-lived.ts';

const NAMES = Array.from({ length: 12 }, (_, shard) => `shard-${shard}`);
const log = new PinoLog({ level: 'silent', readable: false });

describe('leases that replicas share out', () => {
  let directory: string;
  let storage: LmdbStorage;
  /** What the replicas share. */
  let rows: LmdbReadModels;
  let shortLived: ShortLived;
  let replicas: Replica[];
  /** How long each shard takes for what is under way. */
  let finishing: (shard: string) => Promise<void>;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'shared-leases-'));
    storage = await LmdbStorage.open({ directory });
    rows = new LmdbReadModels(storage);
    shortLived = new LmdbShortLived(storage, new SystemClock());
    replicas = [];
    finishing = async () => {};
  });
  afterEach(async () => {
    await Promise.all(replicas.filter(({ killable }) => !killable.isKilled).map((replica) => replica.lifecycle.stop()));
    await storage.close();
    await rm(directory, { recursive: true });
  });

  interface Replica {
    readonly lifecycle: Lifecycle;
    readonly killable: Killable;
    readonly shares: SharedLeases;
    readonly working: Set<string>;
    readonly taken: string[];
  }

  async function start(): Promise<Replica> {
    const [lifecycle, killable, working, taken] = [new Lifecycle(), new Killable(), new Set<string>(), [] as string[]];
    const id = newUlid(Date.now());
    const leases = new Leases(killable.of(shortLived), id, log, new Metrics());
    const readModels = killable.rows(rows);
    const shares = new SharedLeases('test', NAMES, { leases, readModels, replica: id, log });
    lifecycle.add(shares);
    for (const name of NAMES) {
      const work = async (signal: AbortSignal): Promise<void> => {
        const over = AbortSignal.any([signal, shares.untilOver(name)]);
        working.add(name);
        taken.push(name);
        if (!over.aborted) await new Promise((resolve) => over.addEventListener('abort', resolve));
        await finishing(name);
        working.delete(name);
      };
      lifecycle.add(new LeasedWork(name, work, { leases, log, shares }));
    }
    const replica = { lifecycle, killable, shares, working, taken };
    replicas.push(replica);
    await lifecycle.start();
    return replica;
  }

  const counts = (): readonly number[] => replicas.filter(({ killable }) => !killable.isKilled).map(({ working }) => working.size);
  const allWorked = (): boolean => new Set(replicas.filter(({ killable }) => !killable.isKilled).flatMap(({ working }) => [...working])).size === NAMES.length;
  const areShared = async (...parts: readonly number[]): Promise<void> => {
    await until(() => allWorked() && counts().join() === parts.join());
  };

  it('are all taken by one, and shared out evenly among two and three', async () => {
    await start();
    await areShared(12);
    await start();
    await areShared(6, 6);
    await start();
    await areShared(4, 4, 4);
    // And stay where they are.
    await pause(3_500);
    expect(counts()).toEqual([4, 4, 4]);
  });

  it('are taken by nobody beyond its part, where all begin at the same moment', async () => {
    const first = start();
    const second = start();
    await Promise.all([first, second]);
    await until(() => allWorked() && counts().join() === '6,6');
  });

  it('go on elsewhere when a replica was killed, and at once when it was stopped', async () => {
    const [, second, third] = [await start(), await start(), await start()];
    await areShared(4, 4, 4);
    second.killable.isKilled = true;
    await areShared(6, 6);
    const stopped = Date.now();
    replicas.splice(replicas.indexOf(third), 1);
    await third.lifecycle.stop();
    await areShared(12);
    expect(Date.now() - stopped).toBeLessThan(mayTake(3_000));
  }, 20_000);

  it('are given back when what is under way is done, and no earlier', async () => {
    let finish = (): void => {};
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const first = await start();
    await areShared(12);
    finishing = () => finished;
    const second = await start();
    await pause(2_500);
    expect(first.working.size).toBe(12);
    expect(second.working.size).toBe(0);
    finish();
    await areShared(6, 6);
    expect(second.taken).toHaveLength(6);
  });

  it('are given back by who leaves, when what is under way is done, and not taken by it again', async () => {
    let finish = (): void => {};
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const [first, second] = [await start(), await start()];
    await areShared(6, 6);
    await pause(300);
    const { length } = second.taken;
    finishing = () => finished;
    await second.shares.leave();
    await pause(1_500);
    expect([first.working.size, second.working.size]).toEqual([6, 6]);
    finish();
    await areShared(12, 0);
    // Nor does it come back when the other is gone.
    replicas.splice(replicas.indexOf(first), 1);
    await first.lifecycle.stop();
    await pause(2_500);
    expect([second.working.size, second.taken.length]).toEqual([0, length]);
  }, 30_000);

  it('are not all asked for at every round by who has its part', async () => {
    await start();
    await areShared(12);
    await start();
    await areShared(6, 6);
    const asked = new Map<string, string[]>();
    const lease = shortLived.lease.bind(shortLived);
    shortLived.lease = (name, holder, ...given) => {
      asked.set(holder, [...(asked.get(holder) ?? []), name]);
      return lease(name, holder, ...given);
    };
    // Who asks for one again has been through a round.
    await until(() => asked.size === 2 && [...asked.values()].every((names) => new Set(names).size < names.length));
    // Renewals alone.
    const [one, other] = [...asked.values()].map((names) => new Set(names));
    expect([one!.size, other!.size, new Set([...one!, ...other!]).size]).toEqual([6, 6, 12]);
  });

  it('are all taken by the other where a replica can tell of itself and hold nothing', async () => {
    await start();
    const second = await start();
    await areShared(6, 6);
    second.killable.isCutOff = true;
    await until(() => replicas[0]!.working.size === NAMES.length);
    second.killable.isCutOff = false;
    await areShared(6, 6);
  }, 30_000);

  it('keep nobody waiting one after the other while their store does not answer', async () => {
    const replica = await start();
    await areShared(12);
    const lease = shortLived.lease.bind(shortLived);
    shortLived.lease = () => new Promise(() => {});
    // Renewals have failed, and each shard is asked for anew.
    await pause(4_500);
    const stopped = Date.now();
    await replica.lifecycle.stop();
    shortLived.lease = lease;
    expect(Date.now() - stopped).toBeLessThan(mayTake(8_000));
  }, 30_000);
});
