import { JointWrites } from './joint-writes.ts';
import { LogFollowing } from './memory-follower.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { until } from '#libs/testing/src/until';
import type { Recorded } from '../deciding/decider.ts';
import { AppendTooLarge } from '../log/event-store.ts';
import { FollowerStates } from './follower-states.ts';
import { LeasedFollowers } from './leased-followers.ts';
import { UnreadableRecord } from '../log/lazy-record.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { eventLogDamaged } from '../log/log-damage.ts';
import { Reactions, type Reaction } from './reaction.ts';
import { LmdbKeyStore } from '../sealing/lmdb.key-store.ts';
import { Vault } from '../sealing/vault.ts';

const clock = new SystemClock();
const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';

describe('a reaction', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let keys: LmdbKeyStore;
  let lines: string[];
  /** Milliseconds by which followers, and what happens, are ahead of the clock of the leases. */
  let later: number;
  const laterClock = { now: () => clock.now() + later };
  let running: { lifecycle: Lifecycle; metrics: Metrics } | null;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'reaction-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    keys = await LmdbKeyStore.open(storage.keys, []);
    lines = [];
    running = null;
    later = 0;
  });
  afterEach(async () => {
    await running?.lifecycle.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  /** Another process that runs the reaction on the same storage. */
  async function start(react: Reaction['react'], reactTogether?: Reaction['reactTogether']): Promise<void> {
    await running?.lifecycle.stop();
    running = { lifecycle: new Lifecycle(), metrics: new Metrics() };
    const log = new PinoLog({ level: 'error', readable: false, destination: { write: (line: string) => void lines.push(line) } });
    const { lifecycle, metrics } = running;
    const readModels = new LmdbReadModels(storage);
    const leases = new Leases(new LmdbShortLived(storage, clock), newUlid(clock.now()), log, metrics);
    const states = new FollowerStates(readModels, clock);
    const followers = new LeasedFollowers({
      following: new LogFollowing(events, laterClock, log),
      writes: new JointWrites(readModels),
      leases,
      states,
      lifecycle,
      metrics,
    });
    const reactions = new Reactions(followers, readModels, new Vault(keys), clock, log, metrics);
    reactions.add({ name: 'count', handles: ['counted'], react, ...(reactTogether && { reactTogether }) });
    await running.lifecycle.start();
  }

  const happened = (type: string, data: unknown) => {
    const id = newUlid(clock.now());
    const meta = { environment: ENVIRONMENT, actor: { id: 'test', source: 'system', name: null }, requestId: id, commandId: id, at: laterClock.now() };
    return events.append(`test-${ENVIRONMENT}-${id}`, 0, [{ id, type, shape: 1, data, subject: null, public: [], meta }]);
  };

  it('meets every event that it handles, in order, and none that it does not', async () => {
    await happened('counted', 1);
    await happened('something_else', 2);
    const seen: unknown[] = [];
    await start(async ({ data }) => void seen.push(data));
    await happened('counted', 3);
    await until(() => seen.length === 2);
    expect(seen).toEqual([1, 3]);
  });

  it('meets several together where that costs less, and each for itself where that fails', async () => {
    for (const each of [1, 2, 3]) await happened('counted', each);
    const seen: unknown[] = [];
    let isFailing = false;
    const alone = async ({ data }: Recorded): Promise<void> => void seen.push(data);
    const together = async (several: readonly Recorded[]): Promise<void> => {
      seen.push(several.map(({ data }) => data));
      if (isFailing) throw new Error('One of them cannot be handled so.');
    };
    await start(alone, together);
    await until(() => seen.length === 1);
    await happened('counted', 4);
    await until(() => seen.length === 2);
    await running!.lifecycle.stop();
    isFailing = true;
    for (const each of [5, 6]) await happened('counted', each);
    await start(alone, together);
    await until(() => seen.length === 5);
    expect(seen).toEqual([[1, 2, 3], 4, [5, 6], 5, 6]);
  });

  it('goes on after a restart where it was', async () => {
    const seen: unknown[] = [];
    await start(async ({ data }) => void seen.push(data));
    await happened('counted', 1);
    await until(() => seen.length === 1);
    await running!.lifecycle.stop();
    await happened('counted', 2);
    await start(async ({ data }) => void seen.push(data));
    await until(() => seen.length === 2);
    expect(seen).toEqual([1, 2]);
  });

  it('meets an event again that it was handling when it was stopped', async () => {
    const seen: unknown[] = [];
    let entered = false;
    await start(async () => {
      entered = true;
      throw unavailable('away');
    });
    await happened('counted', 1);
    await until(() => entered);
    await start(async ({ data }) => void seen.push(data));
    await until(() => seen.length === 1);
  });

  it('tells of an event that it cannot handle, and goes on with the next', async () => {
    const seen: unknown[] = [];
    await start(async ({ data }) => {
      if (data === 'bad') throw new Error('cannot be counted');
      seen.push(data);
    });
    await happened('counted', 'bad');
    await happened('counted', 'good');
    await until(() => seen.length === 1);
    expect(lines.join()).toContain('cannot be counted');
    // It may quote the event, and backups hold it.
    const rows = new LmdbReadModels(storage).table<never>({ name: 'reaction-count', indexes: [], rebuildable: false });
    const { rows: skipped } = await rows.page(ENVIRONMENT, { order: 'asc', limit: 10 });
    const { stream, error } = JSON.parse(skipped[0]!.text) as { readonly stream: string; readonly error: string };
    expect(error).not.toContain('counted');
    expect(await new Vault(keys).open(error, { stream, field: 'error' })).toBe('Error: cannot be counted');
    expect(await running!.metrics.text()).toContain('gatehouse_reaction_skipped_total{reaction="count"} 1');
  });

  it('is halted before an event whose consequences the log does not take at once, says so, and passes nothing over', async () => {
    let entered = false;
    await start(async () => {
      entered = true;
      throw new AppendTooLarge('test', 2_000_000);
    });
    await happened('counted', 1);
    await happened('counted', 2);
    const shown = async (metric: string): Promise<string | undefined> =>
      new RegExp(`gatehouse_reaction_${metric}\\{reaction="count"\\} (\\S+)`).exec(await running!.metrics.text())?.[1];
    await until(async () => (await shown('stopped')) === '1');
    // As long as an event that fails for another reason is tried.
    await pause(3_500);
    expect([entered, await shown('stopped'), await shown('skipped_total')]).toEqual([true, '1', '0']);
    expect(lines.join()).toContain('has 2000000 bytes');
    expect(await lag()).toBeGreaterThan(3);
    const seen: unknown[] = [];
    await start(async ({ data }) => void seen.push(data));
    await until(() => seen.length === 2);
    expect([seen, await shown('stopped')]).toEqual([[1, 2], '0']);
  });

  /** In seconds, as it is shown. */
  const lag = async (): Promise<number> => {
    const shown = /gatehouse_follower_lag_seconds\{work="reaction.count"\} (\S+)/.exec(await running!.metrics.text());
    return Number(shown![1]);
  };

  it.each(['the event', 'what it would have to change'])('sets aside an event where that was damaged, and does not wait for it: %s', async (what) => {
    const seen: unknown[] = [];
    const subscribe = events.subscribe.bind(events);
    events.subscribe = async function* (...given) {
      for await (const batch of subscribe(...given))
        yield batch.map((event) => (what === 'the event' && event.data === 1 ? new UnreadableRecord(event, eventLogDamaged(event.stream)) : event));
    };
    await happened('counted', 1);
    await happened('counted', 2);
    await start(async ({ data }) => {
      if (data === 1) throw eventLogDamaged('test-1');
      seen.push(data);
    });
    await until(() => seen.length === 1);
    expect(seen).toEqual([2]);
    expect(await running!.metrics.text()).toContain('gatehouse_reaction_skipped_total{reaction="count"} 1');
  });

  it('shows how old the oldest event is that it has not handled, and nothing at the end of the log', async () => {
    let isAway = true;
    let tries = 0;
    await happened('counted', 1);
    const recordedAt = clock.now();
    await happened('something_else', 2);
    await start(async () => {
      tries += 1;
      if (isAway) throw unavailable('away');
    });
    await until(() => tries > 1);
    const age = (clock.now() - recordedAt) / 1_000;
    expect(await lag()).toBeGreaterThanOrEqual(age);
    isAway = false;
    await until(async () => (await lag()) === 0);
    await happened('something_else', 3);
    await until(async () => (await lag()) === 0);
  });

  it('knows that a log was quiet: what comes then is not as old as what came before', async () => {
    let [handled, isOver] = [0, false];
    await happened('counted', 1);
    await start(async () => {
      handled += 1;
      while (handled > 1 && !isOver) await pause(10);
    });
    await until(() => handled === 1);
    later = 3_600_000;
    await pause(3_000);
    await happened('counted', 2);
    const lags = [await lag()];
    await until(() => handled === 2);
    lags.push(await lag());
    isOver = true;
    expect(Math.max(...lags)).toBeLessThan(1_800);
  });

  it('leaves to others to tell how far they are, when it has stopped', async () => {
    await happened('counted', 1);
    let entered = false;
    await start(async () => {
      entered = true;
      throw unavailable('away');
    });
    await until(() => entered);
    expect(await lag()).toBeGreaterThan(0);
    await running!.lifecycle.stop();
    expect(await lag()).toBe(0);
  });
});
