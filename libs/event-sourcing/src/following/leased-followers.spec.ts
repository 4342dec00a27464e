import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { until } from '#libs/testing/src/until';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import type { Position } from '../log/event-store.ts';
import { FollowerStates } from './follower-states.ts';
import { JointWrites } from './joint-writes.ts';
import { LeasedFollowers } from './leased-followers.ts';
import { LogFollowing } from './memory-follower.ts';

const clock = new SystemClock();
const log = new PinoLog({ level: 'silent', readable: false });

describe('what follows the log and never began', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  const lifecycles: Lifecycle[] = [];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'leased-followers-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
  });
  afterAll(async () => {
    for (const lifecycle of lifecycles) await lifecycle.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  async function happened(): Promise<Position> {
    const id = newUlid(clock.now());
    const meta = { environment: 'one', actor: { id: 'test', source: 'system', name: null }, requestId: id, commandId: id, at: clock.now() } as const;
    return (await events.append(`test-one-${id}`, 0, [{ id, type: 'happened', shape: 1, data: id, subject: null, public: [], meta }])).position;
  }

  /** Another process. */
  function followers(from: () => Promise<Position>, seen: Position[]): LeasedFollowers & { readonly lifecycle: Lifecycle } {
    const [lifecycle, metrics, readModels] = [new Lifecycle(), new Metrics(), new LmdbReadModels(storage)];
    lifecycles.push(lifecycle);
    const leases = new Leases(new LmdbShortLived(storage, clock), newUlid(clock.now()), log, metrics);
    const states = new FollowerStates(readModels, clock);
    const made = new LeasedFollowers({
      following: new LogFollowing(events, clock, log),
      writes: new JointWrites(readModels),
      leases,
      states,
      lifecycle,
      metrics,
    });
    made.add({
      name: 'work',
      table: readModels.table<never>({ name: 'work', indexes: [], rebuildable: false }),
      from,
      handle: async (batch) => {
        seen.push(...batch.map(({ position }) => position));
        return true;
      },
    });
    return Object.assign(made, { lifecycle });
  }

  it('is not begun by who only has it resumed, where what it would ask does not run', async () => {
    const [passed, met] = [await happened(), await happened()];
    await followers(() => Promise.reject(unavailable('The endpoints are not known.')), []).resume();
    const seen: Position[] = [];
    const { lifecycle } = followers(async () => passed, seen);
    await lifecycle.start();
    await until(() => seen.length > 0);
    expect(seen).toEqual([met]);
  });
});
