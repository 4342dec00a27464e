import { JointWrites } from '../following/joint-writes.ts';
import { LogFollowing } from '../following/memory-follower.ts';
import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { newCommandId, newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { Readiness } from '#libs/platform/src/readiness';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { Fenced, MAX_ROW_BYTES, type ReadModels } from '#libs/read-models/src/read-models';
import { until } from '#libs/testing/src/until';
import { ReadYourWrites } from './read-your-writes.ts';
import type { Decider, Fact } from '../deciding/decider.ts';
import { type EventStore, START, type NewEvent } from '../log/event-store.ts';
import { FollowerStates } from '../following/follower-states.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { LogPositions } from './log.positions.ts';
import { LogRepository } from '../deciding/log.repository.ts';
import { Naming } from '../log/naming.ts';
import { Projector, ProjectorMetrics, type ProjectorNeeds } from './projector.ts';
import { LmdbKeyStore } from '../sealing/lmdb.key-store.ts';
import { SealingEventStore } from '../sealing/sealing.event-store.ts';
import { GuardedReadModels } from './guarded.read-models.ts';
import { StoppedViews } from './stopped-views.ts';
import { primaryView, tableOf, type View } from './view.ts';

const clock = new SystemClock();
const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';

interface Counter {
  readonly total: number;
}
type Counted = Fact<'counter.counted', number>;

const counterDecider: Decider<Counter | null, Counted> = {
  category: 'counter',
  foldVersion: 1,
  initial: null,
  sealed: { 'counter.counted': null },
  evolve: (state, { data }) => ({ total: (state?.total ?? 0) + data }),
  toPublicEvent: () => null,
};
const counters = primaryView<Counter | null, Counted, Counter>({
  name: 'counters',
  version: 1,
  decider: counterDecider,
  indexes: [],
  rowOf: (state) => state,
});

/** How often each amount was counted, over all counters. */
const amounts: View<{ readonly times: number; readonly rest?: string }> = {
  name: 'amounts',
  version: 1,
  handles: ['counter.counted'],
  indexes: [],
  idsOf: ({ data }) => {
    if (data === 'no id') throw new Error('An amount has to be a number.');
    return [`amount_${String(data)}`];
  },
  evolve: (row, { data }) => {
    if (data === 'bad') throw new Error('An amount has to be a number.');
    return { times: (row?.times ?? 0) + 1, ...(data === 'too large' && { rest: 'x'.repeat(MAX_ROW_BYTES) }) };
  },
};

/** Views of different rows in one list. */
const anyView = (view: unknown): View<never> => view as View<never>;

describe('the projector', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: EventStore;
  let readModels: LmdbReadModels;
  let metrics: Metrics;
  let readiness: Readiness;
  let served: ReadModels;
  let projector: Projector | null;
  let following: LogFollowing;
  let needs: ProjectorNeeds;
  let store: LmdbShortLived;
  const holder = newUlid(clock.now());

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'projector-'));
    await open();
    projector = null;
  });
  afterEach(async () => {
    await projector?.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  async function open(): Promise<void> {
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    readModels = new LmdbReadModels(storage);
  }

  /** As another run of the process does. */
  async function start(views: readonly View<never>[] = [anyView(counters), anyView(amounts)]): Promise<Projector> {
    await projector?.stop();
    metrics = new Metrics();
    readiness = new Readiness();
    const stopped = new StoppedViews();
    const log = new PinoLog({ level: 'silent', readable: false });
    store = new LmdbShortLived(storage, clock);
    const leases = new Leases(store, holder, log, metrics);
    const states = new FollowerStates(readModels, clock);
    following = new LogFollowing(events, clock, log);
    const writes = new JointWrites(readModels);
    needs = { events, following, writes, readModels, leases, states, stopped, readiness, metrics: new ProjectorMetrics(metrics), useEvery: 50 };
    projector = new Projector('counting', views, needs);
    served = new GuardedReadModels(readModels, stopped, new ReadYourWrites({ ...needs, views, elsewhere: [], projector, metrics }));
    await projector.start();
    return projector;
  }

  const versions = new Map<string, number>();
  beforeEach(() => versions.clear());

  function event(type: string, data: unknown): NewEvent {
    const id = newUlid(clock.now());
    const meta = { environment: ENVIRONMENT, actor: { id: 'spec', source: 'system', name: null }, requestId: id, commandId: id, at: clock.now() } as const;
    return { id, type, shape: 1, data, subject: null, public: [], meta };
  }

  async function count(key: string, data: unknown, type = 'counter.counted'): Promise<string> {
    const version = versions.get(key) ?? 0;
    versions.set(key, version + 1);
    return (await events.append(`counter-${ENVIRONMENT}-${key}`, version, [event(type, data)])).position;
  }

  async function rowOf(view: View<never>, id: string): Promise<unknown> {
    const row = await served.table(tableOf(view)).get(ENVIRONMENT, id);
    return row === null ? null : (JSON.parse(row.text) as unknown);
  }

  const total = (id: string) => rowOf(anyView(counters), id);
  const times = (amount: unknown) => rowOf(anyView(amounts), `amount_${String(amount)}`);

  it('fills its views before it has started, and keeps them filled', async () => {
    for (const amount of [1, 2, 2]) await count('a', amount);
    const running = await start();
    expect([await total('a'), await times(2)]).toEqual([{ total: 5 }, { times: 2 }]);
    expect(readiness.obstacle()).toBe('starting');
    await running.caughtUpWith(await count('b', 7));
    expect([await total('b'), await times(7)]).toEqual([{ total: 7 }, { times: 1 }]);
    expect(await metrics.text()).toContain('gatehouse_projector_lag_seconds{service="counting"} 0');
  });

  it('goes on where it was, and folds nothing twice', async () => {
    await count('a', 1);
    await start();
    await projector!.stop();
    await count('a', 1);
    await start();
    expect([await total('a'), await times(1)]).toEqual([{ total: 2 }, { times: 2 }]);
    // A crash that took the checkpoint, but not the rows.
    for (const view of [counters, amounts]) await readModels.table(tableOf(anyView(view))).write([], '');
    await start();
    expect([await total('a'), await times(1)]).toEqual([{ total: 2 }, { times: 2 }]);
  });

  it('finds the rows done that were written with their events', async () => {
    const folded: unknown[] = [];
    const watched = { ...counters, evolve: (...given: Parameters<typeof counters.evolve>) => (folded.push(given), counters.evolve(...given)) };
    const running = await start([anyView(watched)]);
    const log = new PinoLog({ level: 'silent', readable: false });
    const repository = new LogRepository(events, readModels, new Naming(createSecretKey(Buffer.alloc(32, 1))), clock, log);
    repository.registerPrimaryView(counters);
    const context = { ...systemContext(ENVIRONMENT, clock.now()), commandId: newCommandId(clock.now()) };
    const { position } = await repository.transact(counterDecider, context, 'a', () => [{ type: 'counter.counted', data: 3 }]);
    await running.caughtUpWith(position);
    expect(await total('a')).toEqual({ total: 3 });
    expect(folded).toEqual([]);
  });

  it('passes over what no view handles, and remembers that it did', async () => {
    await count('a', 1);
    const position = await count('a', 1, 'counter.looked_at');
    const running = await start();
    await running.caughtUpWith(position);
    expect((await running.status()).map((status) => status.position)).toEqual([position, position]);
    await until(async () => (await readModels.table(tableOf(anyView(amounts))).checkpoint()) === position);
  });

  it('remembers that it did, although nothing is recorded any more and its process has read the log already', async () => {
    const position = await count('a', 1);
    await (await start([anyView(counters)])).caughtUpWith(position);
    const nothing = anyView({ ...amounts, name: 'nothing', handles: ['counter.broken'] });
    const other = new Projector('others', [nothing], { ...needs, metrics: new ProjectorMetrics(new Metrics()) });
    await other.start();
    try {
      await until(async () => (await readModels.table(tableOf(nothing)).checkpoint()) === position, 5_000);
    } finally {
      await other.stop();
    }
  });

  describe('of a log that holds what is sealed', () => {
    const people: View<{ readonly name: string | null }> = {
      name: 'people',
      version: 1,
      handles: ['person.created'],
      indexes: [],
      idsOf: ({ stream }) => [stream.slice(stream.lastIndexOf('-') + 1)],
      evolve: (_row, { data }) => data as { name: string | null },
    };
    /** Of the same events, and without a look at what is sealed. */
    const created: View<{ readonly times: number }> = {
      ...people,
      name: 'created',
      evolve: (row: { times: number } | null) => ({ times: (row?.times ?? 0) + 1 }),
    } as never;
    let stored: EventStore;
    let keys: LmdbKeyStore;

    beforeEach(async () => {
      stored = events;
      await openKeys();
    });

    /** As another process does. */
    async function openKeys(): Promise<void> {
      keys = await LmdbKeyStore.open(storage.keys, []);
      events = new SealingEventStore(stored, keys, () => ({ personal: [], secret: [] }));
    }

    const personal = (created: NewEvent, id: string): NewEvent => ({ ...created, sealed: [{ of: `person.${id}`, fields: ['data.name'] }] });
    const create = async (id: string) =>
      (await events.append(`person-${ENVIRONMENT}-${id}`, 0, [personal(event('person.created', { name: `name of ${id}` }), id)])).position;

    it('stands before whom it has no key of, never with an empty value, and goes on once the key is back', async () => {
      await create('1');
      const stream = `person-${ENVIRONMENT}-2` as const;
      const missing = await create('2');
      await openKeys();
      const findMany = keys.findMany.bind(keys);
      keys.findMany = async (purposes) => findMany(purposes.filter((purpose) => purpose !== `person.${stream}`));
      const running = await start([anyView(people), anyView(created)]);
      await running.caughtUpWith(await create('3'));
      expect(await running.status()).toMatchObject([{ view: 'people', position: missing, isStopped: true }, { isStopped: false }]);
      expect([await rowOf(anyView(created), '2'), await rowOf(anyView(created), '3')]).toEqual([{ times: 1 }, { times: 1 }]);
      await expect(rowOf(anyView(people), '2')).rejects.toMatchObject({ kind: 'unavailable' });
      expect(await readModels.table(tableOf(anyView(people))).get(ENVIRONMENT, '2')).toBeNull();

      await openKeys();
      await start([anyView(people), anyView(created)]);
      expect([await rowOf(anyView(people), '2'), await rowOf(anyView(people), '3')]).toEqual([{ name: 'name of 2' }, { name: 'name of 3' }]);
    });

    it('waits for keys that do not answer, and does not halt for that', async () => {
      const running = await start([anyView(people)]);
      const findMany = keys.findMany.bind(keys);
      let questions = 0;
      keys.findMany = (purposes) => (++questions <= 3 ? Promise.reject(unavailable('Nobody answers.')) : findMany(purposes));
      await openKeys();
      const position = await create('1');
      await running.caughtUpWith(position);
      expect(await rowOf(anyView(people), '1')).toEqual({ name: 'name of 1' });
      expect(questions).toBeGreaterThan(3);
    });
  });

  it.each(['bad', 'no id', 'too large'])(
    'stops a view before an event that it cannot fold, or whose row is too large (%s), and only that view',
    async (amount) => {
      await count('a', 1);
      const bad = await count('a', amount);
      await count('b', 1);
      const running = await start();
      await running.caughtUpWith(await count('b', 1));
      expect(await total('b')).toEqual({ total: 2 });
      await expect(times(1)).rejects.toMatchObject({ kind: 'unavailable' });
      // What came before is there: nothing of it is folded again.
      expect(JSON.parse((await readModels.table(tableOf(anyView(amounts))).get(ENVIRONMENT, 'amount_1'))!.text)).toEqual({ times: 1 });
      expect(await running.status()).toMatchObject([{ isStopped: false }, { view: 'amounts', position: bad, isStopped: true }]);
      expect(await metrics.text()).toContain('gatehouse_view_stopped{view="amounts"} 1');
      // Also after a restart, as long as nobody decided anything.
      await start();
      await expect(times(1)).rejects.toMatchObject({ kind: 'unavailable' });
    },
  );

  it('goes on past an event that an operator left out, now and ever after', async () => {
    await count('a', 1);
    const bad = await count('a', 'bad');
    await count('a', 1);
    const running = await start();
    const record = (type: string) => ({ ...event(type, null), meta: { ...event(type, null).meta, environment: SYSTEM_ENVIRONMENT } });
    await expect(running.skip('amounts', START, 'by mistake', record)).rejects.toThrow('is not halted');
    await running.skip('amounts', bad, 'written by a bug', record);
    expect(await times(1)).toEqual({ times: 2 });
    expect(await metrics.text()).toContain('gatehouse_view_stopped{view="amounts"} 0');
    await running.refill();
    expect(await times(1)).toEqual({ times: 2 });
  });

  it('fills a new version of a view anew, and drops the old one', async () => {
    for (const amount of [1, 2]) await count('a', amount);
    await start();
    await projector!.stop();
    await storage.close();
    await open();
    const next = { ...amounts, version: 2, evolve: () => ({ times: -1 }) };
    await start([anyView(counters), anyView(next)]);
    expect([await rowOf(anyView(next), 'amount_2'), await total('a')]).toEqual([{ times: -1 }, { total: 3 }]);
    const filled = () => new FollowerStates(readModels, clock).names('view.');
    await until(async () => (await filled()).join() === 'view.amounts-v2,view.counters-v1.1');
    expect(await readModels.table(tableOf(anyView(amounts))).get(ENVIRONMENT, 'amount_2')).toBeNull();
  });

  it('drops the old version at once for whoever knows that nobody else uses it', async () => {
    await count('a', 1);
    await start();
    const next = { ...amounts, version: 2 };
    const running = await start([anyView(counters), anyView(next)]);
    await running.dropOldVersionsNow();
    expect(await new FollowerStates(readModels, clock).names('view.')).toEqual(['view.amounts-v2', 'view.counters-v1.1']);
    expect(await readModels.table(tableOf(anyView(amounts))).get(ENVIRONMENT, 'amount_1')).toBeNull();
    expect([await rowOf(anyView(next), 'amount_1'), await total('a')]).toEqual([{ times: 1 }, { total: 1 }]);
  });

  it('fills a view anew under a later token, so that nothing of before comes back late', async () => {
    await count('a', 1);
    const running = await start();
    const table = readModels.table(tableOf(counters));
    const { token } = (await store.lease(`view.${table.definition.name}`, holder, 3_000))!;
    const position = await table.checkpoint();
    await table.write([], position, token);
    await running.refill();
    await expect(table.write([], position, token)).rejects.toThrow(Fenced);
    expect(await total('a')).toEqual({ total: 1 });
  });

  describe('tells how far behind views are', () => {
    const told = async (): Promise<number> => Number(/^gatehouse_projector_lag_seconds\{service="counting"\} (\S+)$/m.exec(await metrics.text())![1]);

    /** Whoever asks for a lease hears that; resolves when none is held. The answer: ends it. */
    async function leases(answer: () => Promise<null>): Promise<() => void> {
      store.lease = answer;
      await until(() => projector!.held().length === 0);
      return () => Reflect.deleteProperty(store, 'lease');
    }

    const cutOff = () => leases(() => Promise.reject(new Error('The store is away.')));

    it('while nobody can bring them along, and until somebody does', async () => {
      await start();
      const mend = await cutOff();
      expect(await told()).toBe(0);
      const position = await count('a', 4);
      await until(async () => (await told()) > 0.05);
      const before = await told();
      await until(async () => (await told()) > before);
      mend();
      await projector!.caughtUpWith(position);
      expect(await told()).toBe(0);
    });

    it('until another process is seen to have gone on', async () => {
      await start();
      const mend = await cutOff();
      const position = await count('a', 4);
      await until(async () => (await told()) > 0);
      const [other, replica] = [new LmdbShortLived(storage, clock), newUlid(clock.now())];
      for (const view of [counters, amounts]) {
        const table = readModels.table(tableOf(anyView(view)));
        const lease = `view.${table.definition.name}`;
        await until(async () => (await other.lease(lease, replica, 60_000)) !== null);
        await table.write([], position, (await other.lease(lease, replica, 60_000))!.token);
      }
      mend();
      await until(async () => (await told()) === 0);
      expect(projector!.held()).toEqual([]);
    });

    it('and not, where another process has taken the lease', async () => {
      await start();
      const end = await leases(() => Promise.resolve(null));
      await count('a', 4);
      // The first look would be what it counts from.
      await told();
      await pause(20);
      expect(await told()).toBe(0);
      end();
    });
  });

  describe('of which one cannot be opened', () => {
    const position = () => count('a', 1);
    const checkpointOf = (view: View<never>) => readModels.table(tableOf(view)).checkpoint();

    /** The database does not answer for it. Resolves when it was asked; the answer ends that, and resolves when the views are filled. */
    async function openWithout(failing: View<never>): Promise<() => Promise<unknown>> {
      const table = readModels.table.bind(readModels);
      let [asked, isAway] = [0, true];
      readModels.table = (definition) => {
        const opened = table(definition);
        const prepare = opened.prepare.bind(opened);
        if (definition.name === tableOf(failing).name)
          opened.prepare = () => (asked++, isAway ? Promise.reject(new Error('The database does not answer.')) : prepare());
        return opened;
      };
      const started = start();
      await until(() => asked > 2);
      return () => {
        isAway = false;
        return started;
      };
    }

    it.each([anyView(counters), anyView(amounts)])('($name) brings the others along, and that one when it can be', async (failing) => {
      const other = failing.name === 'counters' ? anyView(amounts) : anyView(counters);
      const first = await position();
      const mend = await openWithout(failing);
      await until(async () => (await checkpointOf(other)) === first);
      const second = await position();
      await until(async () => (await checkpointOf(other)) === second);
      expect(await checkpointOf(failing)).toBe(START);
      await mend();
      await projector!.caughtUpWith(second);
      expect([await total('a'), await times(1)]).toEqual([{ total: 2 }, { times: 2 }]);
    });

    it('tells how far that one is behind', async () => {
      await position();
      const mend = await openWithout(anyView(amounts));
      const told = async () => Number(/^gatehouse_projector_lag_seconds\{service="counting"\} (\S+)$/m.exec(await metrics.text())![1]);
      await until(async () => (await told()) > 0.05);
      await mend();
      await until(async () => (await told()) === 0);
    });
  });

  it('fills all views anew', async () => {
    for (const amount of [1, 2, 2]) await count('a', amount);
    const running = await start();
    await readModels.table(tableOf(counters)).write([{ environment: ENVIRONMENT, id: 'a', position: '~', revision: 9, text: '{"total":"spoilt"}' }]);
    await running.refill();
    expect([await total('a'), await times(2)]).toEqual([{ total: 5 }, { times: 2 }]);
  });

  describe('tells a reader', () => {
    it('when its position is there', async () => {
      const running = await start();
      const position = await count('a', 4);
      await new LogPositions(following, running).reached(position, clock.now() + 5_000);
      expect(await total('a')).toEqual({ total: 4 });
    });

    it('when it is shown already, without asking where the log ends', async () => {
      let asked = 0;
      const log = events;
      events = Object.create(log, {
        head: { value: () => ((asked += 1), log.head()) },
        headAtHand: { get: () => ((asked += 1), log.headAtHand) },
      }) as typeof log;
      const running = await start();
      const position = await count('a', 4);
      await running.caughtUpWith(position);
      const positions = new LogPositions(following, running);
      const before = asked;
      for (let times = 0; times < 1_000; times += 1) await positions.reached(position, clock.now() + 5_000);
      // Whoever follows the log asks about every second.
      expect(asked - before).toBeLessThan(500);
    });

    it('at once that a position does not exist', async () => {
      const running = await start();
      await count('a', 4);
      const positions = new LogPositions(following, running);
      for (const wrong of ['9999999999999999', 'nonsense', '-1', ''])
        await expect(positions.reached(wrong, clock.now() + 5_000)).rejects.toMatchObject({ code: 'position_not_reached' });
    });

    it('at its deadline that it has to wait longer', async () => {
      const running = await start();
      await running.stop();
      const position = await count('a', 4);
      await expect(new LogPositions(following, running).reached(position, clock.now() + 20)).rejects.toMatchObject({ code: 'service_unavailable' });
    });
  });
});
