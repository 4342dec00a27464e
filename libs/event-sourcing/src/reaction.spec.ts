import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Lifecycle } from '#libs/platform/src/runtime/lifecycle';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { until } from '#libs/testing/src/until';
import { FollowerStates } from './follower-states.ts';
import { LeasedFollowers } from './leased-followers.ts';
import { LmdbEventStore } from './lmdb.event-store.ts';
import { Reactions, type Reaction } from './reaction.ts';

const clock = new SystemClock();
const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';

describe('a reaction', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let lines: string[];
  let running: { lifecycle: Lifecycle; metrics: Metrics } | null;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'reaction-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    lines = [];
    running = null;
  });
  afterEach(async () => {
    await running?.lifecycle.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  /** Another process that runs the reaction on the same storage. */
  async function start(react: Reaction['react']): Promise<void> {
    await running?.lifecycle.stop();
    running = { lifecycle: new Lifecycle(), metrics: new Metrics() };
    const log = new PinoLog({ level: 'error', readable: false, destination: { write: (line: string) => void lines.push(line) } });
    const { lifecycle, metrics } = running;
    const readModels = new LmdbReadModels(storage);
    const leases = new Leases(new LmdbShortLived(storage, clock), newUlid(clock.now()), log, metrics);
    const states = new FollowerStates(readModels, clock);
    const followers = new LeasedFollowers({ events, leases, states, lifecycle, clock, log, metrics });
    const reactions = new Reactions(followers, readModels, clock, log, metrics);
    reactions.add({ name: 'count', handles: ['counted'], react });
    await running.lifecycle.start();
  }

  const happened = (type: string, data: unknown) => {
    const id = newUlid(clock.now());
    const meta = { environment: ENVIRONMENT, actor: { id: 'test', source: 'system', name: null }, requestId: id, commandId: id, at: clock.now() };
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
    expect(await running!.metrics.text()).toContain('gatehouse_reaction_skipped_total{reaction="count"} 1');
  });
});
