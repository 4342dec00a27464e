import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { until } from '#libs/testing/src/until';
import type { Decider, Fact } from '../deciding/decider.ts';
import { LogRepository } from '../deciding/log.repository.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { Naming, streamName } from '../log/naming.ts';
import { LogFollowing } from './memory-follower.ts';
import { StateCache } from './state-cache.ts';

type LampEvent = Fact<'lamp.lit', { readonly colour: string }>;
const lampDecider: Decider<string | null, LampEvent> = {
  category: 'lamp',
  foldVersion: 1,
  initial: null,
  sealed: { 'lamp.lit': null },
  evolve: (_state, { data }) => data.colour,
  toPublicEvent: () => null,
};

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const log = new PinoLog({ level: 'silent', readable: false });

describe('states in memory', () => {
  let directory: string;
  let storage: LmdbStorage;
  let clock: SettableClock;
  let loads: number;
  /** Awaited by each load once it has read. */
  let held: Promise<void>;
  let events: LmdbEventStore;
  let elsewhere: LogRepository;
  let cache: StateCache;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'states-'));
    storage = await LmdbStorage.open({ directory });
    clock = new SettableClock(Date.now());
    events = new LmdbEventStore(storage);
    const [rows, naming] = [new LmdbReadModels(storage), new Naming(createSecretKey(Buffer.alloc(32)))];
    class Counting extends LogRepository {
      override async load<State, Event extends Fact>(decider: Decider<State, Event, Fact>, environment: string, key: string): Promise<State> {
        loads++;
        const state = await super.load(decider, environment, key);
        await held;
        return state;
      }
    }
    [loads, held] = [0, Promise.resolve()];
    elsewhere = new LogRepository(events, rows, naming, clock, log);
    const following = new LogFollowing(events, clock, log);
    cache = new StateCache('lamps', [lampDecider], { following, repository: new Counting(events, rows, naming, clock, log), clock });
  });
  afterEach(async () => {
    await cache.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const state = (key = 'one') => cache.state(lampDecider, ENVIRONMENT, key);
  const light = (colour: string, key = 'one') =>
    elsewhere.transact(lampDecider, systemContext(ENVIRONMENT, clock.now()), key, () => [{ type: 'lamp.lit', data: { colour } }]);

  it('are loaded once, also where many ask at once, until the log tells of a change', async () => {
    await cache.start();
    expect(await Promise.all([state(), state(), state('other')])).toEqual([null, null, null]);
    await state();
    expect(loads).toBe(2);
    await light('red');
    await until(async () => (await state()) === 'red');
    expect(loads).toBe(3);
    await state('other');
    expect(loads).toBe(3);
  });

  it('are not kept where something happened that only a later release knows', async () => {
    await cache.start();
    await light('red');
    await until(async () => (await state()) === 'red');
    const [lit] = await events.read(streamName('lamp', ENVIRONMENT, 'one'));
    await events.append(lit!.stream, 1, [{ ...lit!, id: newUlid(clock.now()), type: 'lamp.dimmed', data: {}, subject: null }]);
    await until(() =>
      state().then(
        () => false,
        (error: unknown) => error instanceof NeedsLaterRelease,
      ),
    );
  });

  it('are not kept where they changed while they were loaded', async () => {
    await cache.start();
    let release = (): void => {};
    held = new Promise((resolve) => (release = resolve));
    const early = state();
    await until(() => Promise.resolve(loads === 1));
    await light('red');
    cache.forget(lampDecider, ENVIRONMENT, 'one');
    release();
    expect(await early).toBeNull();
    expect(await state()).toBe('red');
  });

  it('are loaded each time while nobody knows what the log says', async () => {
    await state();
    await state();
    expect(loads).toBe(2);
    await cache.start();
    await state();
    await state();
    expect(loads).toBe(3);
    await cache.stop();
    clock.forward(30_001);
    await state();
    expect(loads).toBe(4);
  });
});
