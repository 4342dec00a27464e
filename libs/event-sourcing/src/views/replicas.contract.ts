import { JointWrites } from '../following/joint-writes.ts';
import { LogFollowing } from '../following/memory-follower.ts';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Upcasts } from '#libs/contracts/src/shapes';
import { SystemClock } from '#libs/platform/src/clock';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Readiness } from '#libs/platform/src/readiness';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Leases } from '#libs/read-models/src/leases';
import type { ReadModels, Table, TableDefinition, Write } from '#libs/read-models/src/read-models';
import type { ShortLived } from '#libs/read-models/src/short-lived';
import { Gate, gated, GatedReadModels } from '#libs/testing/src/gate';
import { givenKeys } from '#libs/testing/src/given-keys';
import { KeptMessages } from '#libs/testing/src/kept-messages';
import { mayTake, until } from '#libs/testing/src/until';
import { FollowerStates } from '../following/follower-states.ts';
import { Forwarders } from '../following/forwarder.ts';
import { LeasedFollowers } from '../following/leased-followers.ts';
import { Reactions } from '../following/reaction.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { type EventStore, type NewEvent, type Position, PositionOfAnotherLog, type RecordedEvent } from '../log/event-store.ts';
import { UpcastingEventStore } from '../log/upcasts.ts';
import { Vault } from '../sealing/vault.ts';
import { ReadYourWrites } from './read-your-writes.ts';
import { Projector, ProjectorMetrics } from './projector.ts';
import { GuardedReadModels } from './guarded.read-models.ts';
import { StoppedViews } from './stopped-views.ts';
import { tableOf, type View } from './view.ts';

const clock = new SystemClock();
const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const TAKEN_OVER_WITHIN = 10_000;
/** Instead of a minute: longer than the leases take, which are told beside it. */
const USE_EVERY = 300;
const TEN_LOOKS = 10 * USE_EVERY;

/** How often each amount was counted. */
const amounts: View<{ readonly times: number }> = {
  name: 'amounts',
  version: 1,
  handles: ['counter.counted'],
  indexes: [],
  idsOf: ({ data }) => [`amount_${String(data)}`],
  evolve: (row, { data }) => {
    if (data === 'bad') throw new Error('An amount has to be a number.');
    return { times: (row?.times ?? 0) + 1 };
  },
};
/** What everybody counted last. */
const last: View<{ readonly amount: unknown }> = {
  name: 'last',
  version: 1,
  handles: ['counter.counted'],
  indexes: [],
  idsOf: () => ['last'],
  evolve: (_row, { data }) => ({ amount: data }),
};
const BOTH = [amounts, last] as unknown as readonly View<never>[];
/** Handles nothing whose shape changes. */
const looks: View<{ readonly times: number }> = {
  name: 'looks',
  version: 1,
  handles: ['counter.looked_at'],
  indexes: [],
  idsOf: () => ['looks'],
  evolve: (row) => ({ times: (row?.times ?? 0) + 1 }),
};
/** The release after that one, of the same versions: amounts are objects in its log. */
const LATER = {
  upcasts: { 'counter.counted': [({ data, subject }) => ({ data: { amount: data }, subject })] } satisfies Upcasts,
  views: [
    { ...amounts, idsOf: ({ data }) => [`amount_${(data as { amount: number }).amount}`] },
    { ...last, evolve: (_row, { data }) => data },
    looks,
  ] as readonly View<never>[],
};
const EARLIER = { views: [...BOTH, looks] as readonly View<never>[] };

const keysDirectory = await mkdtemp(join(tmpdir(), 'replicas-keys-'));
const keys = await givenKeys(keysDirectory);
afterAll(() => rm(keysDirectory, { recursive: true }));

/** One process of the cluster, as far as it follows the log. */
class Replica {
  readonly gate = new Gate();
  /** For leases alone, as where their store holds an election. */
  readonly leaseGate = new Gate();
  readonly metrics = new Metrics();
  readonly readiness = new Readiness();
  readonly projector: Projector;
  readonly served: ReadModels;
  readonly followers: LeasedFollowers;
  readonly handled: unknown[] = [];
  /** Leases that it has asked for. */
  readonly asked = new Set<string>();
  subscriptions = 0;
  private readonly lifecycle = new Lifecycle();

  constructor(
    { events, readModels, shortLived, bus, foreign }: Pick<Cluster, 'events' | 'readModels' | 'shortLived' | 'bus' | 'foreign'>,
    private readonly announces: boolean,
    views = BOTH,
    /** The shapes that its release knows beyond the first. */
    upcasts: Upcasts = {},
  ) {
    const { gate, metrics, readiness, lifecycle } = this;
    const log = new PinoLog({ level: 'silent', readable: false });
    const own = new GatedReadModels(readModels, gate);
    const stopped = new StoppedViews();
    const store = gated(gated(this.noted(shortLived), gate, ['lease', 'release']), this.leaseGate, ['lease', 'release']);
    const leases = new Leases(store, newUlid(clock.now()), log, metrics);
    const states = new FollowerStates(own, clock);
    const log_ = gated(this.counted(new UpcastingEventStore(events, { upcasts }), foreign), gate, ['head', 'read']);
    const [following, writes] = [new LogFollowing(log_, clock, log), new JointWrites(own)];
    this.projector = new Projector('counting', views, {
      events: log_,
      following,
      writes,
      readModels: own,
      leases,
      states,
      stopped,
      readiness,
      metrics: new ProjectorMetrics(metrics),
      useEvery: USE_EVERY,
    });
    lifecycle.add(this.projector);
    const awaited = new ReadYourWrites({ views, elsewhere: [], readModels: own, projector: this.projector, following, metrics });
    this.served = new GuardedReadModels(own, stopped, awaited);
    this.followers = new LeasedFollowers({ following, writes, leases, states, lifecycle, metrics });
    if (!announces) return;
    new Forwarders(this.followers, own, bus, log, metrics).add({ service: 'identity', categories: ['counter'] });
    new Reactions(this.followers, own, new Vault(keys), clock, log, metrics).add({
      name: 'count',
      handles: ['counter.counted'],
      react: async ({ data }) => void this.handled.push(data),
    });
  }

  start(): Promise<void> {
    return this.lifecycle.start();
  }

  async stop(): Promise<void> {
    this.gate.open();
    this.leaseGate.open();
    await this.lifecycle.stop();
    await this.projector.stop();
  }

  get held(): readonly string[] {
    return this.projector.held().map(({ view }) => view.name);
  }

  async row(view: View<never>, id: string): Promise<unknown> {
    const row = await this.served.table(tableOf(view)).get(ENVIRONMENT, id);
    return row === null ? null : (JSON.parse(row.text) as unknown);
  }

  private noted(shortLived: ShortLived): ShortLived {
    const lease: ShortLived['lease'] = (name, ...given) => {
      this.asked.add(name);
      return shortLived.lease(name, ...given);
    };
    return new Proxy(shortLived, { get: (target, name) => (name === 'lease' ? lease : boundTo(target, name)) });
  }

  private counted(events: EventStore, foreign: ReadonlySet<Position>): EventStore {
    const subscribe = (after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> => {
      this.subscriptions++;
      if (foreign.has(after)) throw new PositionOfAnotherLog(after);
      return events.subscribe(after, signal);
    };
    return new Proxy(events, { get: (target, name) => (name === 'subscribe' ? subscribe : boundTo(target, name)) });
  }
}

function boundTo(target: object, name: string | symbol): unknown {
  const found = Reflect.get(target, name) as unknown;
  return typeof found === 'function' ? (found.bind(target) as unknown) : found;
}

/** What is made of the log. */
interface Rows {
  readonly readModels: ReadModels;
  readonly shortLived: ShortLived;
  close(): Promise<void>;
}

/** Opens the rows of one place, in which they are found again. */
type OpenRows = (directory: string) => Promise<Rows>;

/** The engines of a cluster: the log, and beside it what is made of it. */
class Cluster {
  static async open(directory: string, openRows: OpenRows): Promise<Cluster> {
    return new Cluster(await LmdbStorage.open({ directory: join(directory, 'log') }), await openRows(directory));
  }

  readonly events: LmdbEventStore;
  readonly bus = new KeptMessages();
  /** Positions that the log had before it was put back; EventStoreDB tells of them. */
  readonly foreign = new Set<Position>();

  private constructor(
    private readonly log: LmdbStorage,
    private readonly rows: Rows,
  ) {
    this.events = new LmdbEventStore(log);
  }

  get readModels(): ReadModels {
    return this.rows.readModels;
  }

  get shortLived(): ShortLived {
    return this.rows.shortLived;
  }

  async close(): Promise<void> {
    await Promise.all([this.log, this.rows].map((each) => each.close()));
  }
}

/** `isShared`: whether rows are of more processes than one. */
export function replicasContract(openRows: OpenRows, { isShared }: { readonly isShared: boolean }): void {
  let directory: string;
  let cluster: Cluster;
  let replicas: Replica[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'replicas-'));
    cluster = await Cluster.open(directory, openRows);
    replicas = [];
    versions.clear();
  });
  afterEach(async () => {
    await stopAll();
    await cluster.close();
    await rm(directory, { recursive: true });
  });

  async function start(
    options: { readonly announces?: true; readonly views?: readonly View<never>[]; readonly upcasts?: Upcasts; readonly readModels?: ReadModels } = {},
  ): Promise<Replica> {
    const { events, readModels, shortLived, bus, foreign } = cluster;
    const engines = { events, readModels: options.readModels ?? readModels, shortLived, bus, foreign };
    const replica = new Replica(engines, options.announces ?? false, options.views, options.upcasts);
    replicas.push(replica);
    await replica.start();
    return replica;
  }

  async function stopAll(): Promise<void> {
    await Promise.all(replicas.splice(0).map((replica) => replica.stop()));
  }

  const versions = new Map<string, number>();

  async function count(data: unknown, { key = 'a', type = 'counter.counted', shape = 1 } = {}): Promise<Position> {
    const version = versions.get(key) ?? 0;
    versions.set(key, version + 1);
    return (await cluster.events.append(`counter-${ENVIRONMENT}-${key}`, version, [{ ...event(type, data), shape }])).position;
  }

  function event(type: string, data: unknown, environment = ENVIRONMENT): NewEvent {
    const id = newUlid(clock.now());
    const meta = { environment, actor: { id: 'spec', source: 'system', name: null }, requestId: id, commandId: id, at: clock.now() } as const;
    return { id, type, shape: 1, data, subject: null, public: [], meta };
  }

  const refuses = (replica: Replica) =>
    replica.row(BOTH[0]!, 'amount_1').then(
      () => false,
      (error: { readonly kind?: string }) => error.kind === 'unavailable',
    );
  const times = (replica: Replica, amount: unknown) => replica.row(BOTH[0]!, `amount_${String(amount)}`);
  const checkpoint = (view: View<never> = BOTH[0]!) => cluster.readModels.table(tableOf(view)).checkpoint();

  describe('fill views', () => {
    it('one at a time, which reads the log once for all of them; the others see what it stores', async () => {
      await count(1);
      const [first, second] = [await start(), await start()];
      expect([first.held, second.held]).toEqual([['amounts', 'last'], []]);
      for (let amount = 1; amount <= 20; amount++) await second.projector.caughtUpWith(await count(amount));
      expect([await times(second, 1), await second.row(BOTH[1]!, 'last')]).toEqual([{ times: 2 }, { amount: 20 }]);
      // What no view handles is passed by all the same.
      const began = Date.now();
      for (let index = 0; index < 5; index++) await second.projector.caughtUpWith(await count(index, { type: 'counter.looked_at' }));
      expect(Date.now() - began).toBeLessThan(mayTake(5 * 500));
      expect([first.subscriptions, second.subscriptions]).toEqual([1, 0]);
      expect(await second.metrics.text()).toContain('gatehouse_lease_held{work="view.amounts-v1"} 0');
      expect(await first.metrics.text()).toContain('gatehouse_lease_held{work="view.amounts-v1"} 1');
    });

    it('so that what was recorded is found, whoever is asked; and no more than once, and in time', async () => {
      const replicas = [await start(), await start()];
      const find = (replica: Replica, amount: unknown, patience = 5_000) =>
        replica.served.table(tableOf(BOTH[0]!)).find({ environment: ENVIRONMENT, deadline: Date.now() + patience }, `amount_${String(amount)}`);
      for (let amount = 0; amount < 20; amount++) {
        await count(amount);
        expect(await find(replicas[amount % 2]!, amount)).not.toBeNull();
      }
      expect(await find(replicas[1]!, 'never')).toBeNull();
      replicas[0]!.gate.close();
      await count('late');
      await expect(find(replicas[1]!, 'late', 200)).rejects.toMatchObject({ code: 'service_unavailable' });
      expect(await find(replicas[1]!, 1)).not.toBeNull();
    });

    it('at once when the one that does is told to stop', async () => {
      await count(0);
      const [first, second] = [await start(), await start()];
      await first.stop();
      await second.projector.caughtUpWith(await count(1));
      expect(second.held).toEqual(['amounts', 'last']);
      expect(await times(second, 1)).toEqual({ times: 1 });
    });

    it('when the one that does hangs, and lose nothing when that one goes on past its lease', async () => {
      const [first, second] = [await start(), await start()];
      for (let amount = 0; amount < 10; amount++) await count(amount % 2);
      await second.projector.caughtUpWith(await cluster.events.head());
      first.gate.close();
      // The first has these in its hands, and will write them later.
      for (let amount = 0; amount < 10; amount++) await count(amount % 2);
      const hung = Date.now();
      await second.projector.caughtUpWith(await cluster.events.head());
      expect(Date.now() - hung).toBeLessThan(mayTake(TAKEN_OVER_WITHIN));
      expect(await times(second, 1)).toEqual({ times: 10 });
      for (let amount = 0; amount < 10; amount++) await count(amount % 2);
      await second.projector.caughtUpWith(await cluster.events.head());
      const stored = await checkpoint();
      first.gate.open();
      await until(() => first.held.length === 0);
      await pause(200);
      expect(await checkpoint()).toBe(stored);
      await first.projector.caughtUpWith(await count(1));
      expect([await times(first, 1), await times(first, 0), await first.row(BOTH[1]!, 'last')]).toEqual([{ times: 16 }, { times: 15 }, { amount: 1 }]);
      expect([first.held, second.held]).toEqual([[], ['amounts', 'last']]);
    });

    it('of two releases, of which one does not know a shape: it leaves what handles that to the other, and nothing else', async () => {
      const early = await start({ announces: true, ...EARLIER });
      const young = await start({ announces: true, ...LATER });
      expect(early.held).toEqual(['amounts', 'last', 'looks']);
      const told = cluster.bus.published;
      await count(1);
      await until(() => early.handled.length === 1);
      // In one batch with what comes before it.
      await Promise.all([count(2), count({ amount: 3 }, { key: 'b', shape: 2 }), count(4, { key: 'c' }), count(null, { key: 'd', type: 'counter.looked_at' })]);
      const head = await cluster.events.head();
      await young.projector.caughtUpWith(head);
      expect([early.held, young.held]).toEqual([['looks'], ['amounts', 'last']]);
      for (const replica of [young, early]) {
        await until(async () => !(await refuses(replica)));
        for (const amount of [1, 2, 3, 4]) expect(await times(replica, amount)).toEqual({ times: 1 });
        expect(await replica.row(BOTH[1]!, 'last')).toEqual({ amount: 4 });
      }
      // Nothing is told to be halted, where the others would see it.
      const states = await new FollowerStates(cluster.readModels, clock).read(['view.amounts-v1', 'view.last-v1', 'reaction.count', 'forwarder.identity']);
      expect(states.map(({ halt }) => halt)).toEqual([null, null, null, null]);
      expect(await early.metrics.text()).toContain('gatehouse_follower_left_to_later_release{work="reaction.count"} 1');
      // What the one had handled, the other need not: each event was reacted to, and announced, once.
      await until(() => young.handled.length === 2);
      expect([early.handled, young.handled]).toEqual([
        [1, 2],
        [{ amount: 3 }, { amount: 4 }],
      ]);
      await until(() => told.length >= 5);
      expect(told.map(({ value }) => JSON.parse(value) as { shape: number }).map(({ shape }) => shape)).toEqual([1, 1, 2, 2, 1]);
      // For as long as it runs, it does not ask again, also where nobody else is there.
      await young.stop();
      early.asked.clear();
      await pause(3_500);
      expect([early.held, [...early.asked]]).toEqual([['looks'], ['view.looks-v1']]);
      expect(await early.metrics.text()).toContain('gatehouse_lease_held{work="reaction.count"} 0');
    });

    it('by a release that does not know a shape, alone: it starts, and refuses what it cannot know until one comes that does', async () => {
      await count(1);
      await count({ amount: 2 }, { shape: 2 });
      await count(null, { key: 'b', type: 'counter.looked_at' });
      const early = await start({ announces: true, ...EARLIER });
      expect(early.held).toEqual(['looks']);
      await expect(times(early, 1)).rejects.toThrow(NeedsLaterRelease);
      expect(await early.row(looks as never, 'looks')).toEqual({ times: 1 });
      await expect(early.projector.refill()).rejects.toThrow('cannot be filled by this release');
      expect(await early.metrics.text()).toContain('gatehouse_view_left_to_later_release{view="amounts"} 1');
      const young = await start({ announces: true, ...LATER });
      await until(async () => !(await refuses(early)));
      for (const replica of [young, early]) expect(await times(replica, 2)).toEqual({ times: 1 });
      expect(await early.metrics.text()).toContain('gatehouse_view_left_to_later_release{view="amounts"} 0');
    });

    it('start when views are full, whoever fills them', async () => {
      const first = await start();
      await count(1);
      first.gate.close();
      await count(1);
      const second = new Replica(cluster, false);
      replicas.push(second);
      const starting = second.start();
      await until(() => /^filling amounts: \d+ %/.test(second.readiness.obstacle() ?? ''));
      await starting;
      expect(await times(second, 1)).toEqual({ times: 2 });
    });

    it('of two releases, each its own version, and drop the old one when nobody uses it any more', async () => {
      await count(1);
      const old = await start();
      const next = [{ ...BOTH[0]!, version: 2, evolve: () => ({ times: -1 }) }, BOTH[1]!] as unknown as readonly View<never>[];
      const young = await start({ views: next });
      expect([old.held, young.held]).toEqual([['amounts', 'last'], ['amounts']]);
      await pause(1_000);
      const position = await count(1);
      await Promise.all([old.projector.caughtUpWith(position), young.projector.caughtUpWith(position)]);
      expect([await times(old, 1), await young.row(next[0]!, 'amount_1')]).toEqual([{ times: 2 }, { times: -1 }]);
      expect(await young.metrics.text()).not.toContain('work="view.amounts-v1"');
      // As in an election, which ends leases while their holders go on.
      old.leaseGate.close();
      await until(() => old.held.length === 0);
      await pause(2 * TEN_LOOKS);
      expect([await times(old, 1), await checkpoint()]).toEqual([{ times: 2 }, position]);
      old.leaseGate.open();
      await until(() => old.held.includes('amounts'));
      await old.stop();
      const states = new FollowerStates(cluster.readModels, clock);
      const isKnown = async (): Promise<boolean> => (await states.names('view.')).includes('view.amounts-v1');
      await pause(TEN_LOOKS / 2);
      expect([await isKnown(), await checkpoint()]).toEqual([true, position]);
      await until(async () => !(await isKnown()));
      expect(await checkpoint()).toBe('');
      await until(async () => (await states.usesOf(['view.amounts-v1']))[0] === '');
      expect(await young.row(next[0]!, 'amount_1')).toEqual({ times: -1 });
    });

    if (isShared)
      it('and fill a table anew that was dropped while its process was paused, whatever that was about to store', async () => {
        await count(1);
        await (await start()).stop();
        const old = await start();
        const next = [{ ...BOTH[0]!, version: 2 }, BOTH[1]!] as unknown as readonly View<never>[];
        await start({ views: next });
        await until(() => old.held.includes('amounts'));
        old.gate.close();
        const second = await count(1);
        const states = new FollowerStates(cluster.readModels, clock);
        await until(async () => (await states.usesOf(['view.amounts-v1']))[0] === '', 20_000);
        const answers: unknown[] = [];
        const asking = setInterval(
          () =>
            void times(old, 1)
              .then((answer) => answers.push(answer))
              .catch(() => answers.push('refused')),
          20,
        );
        old.gate.open();
        await until(async () => answers.length > 0 && old.held.includes('amounts') && !(await refuses(old)));
        clearInterval(asking);
        await old.projector.caughtUpWith(second);
        expect(await times(old, 1)).toEqual({ times: 2 });
        expect(answers).not.toContain(null);
      });

    if (isShared)
      it('and fill a table anew that was dropped while its rows were about to be read, also where the lease is theirs again by then', async () => {
        await count(1);
        await (await start()).stop();
        const { name } = tableOf(BOTH[0]!);
        const [rows, { readModels }] = [new Gate(), cluster];
        const table = <Row>(definition: TableDefinition<Row>): Table<Row> => {
          const opened = readModels.table(definition);
          return definition.name === name ? gated(opened, rows, ['getMany']) : opened;
        };
        const old = await start({ readModels: new Proxy(readModels, { get: (target, member) => (member === 'table' ? table : boundTo(target, member)) }) });
        const next = [{ ...BOTH[0]!, version: 2 }, BOTH[1]!] as unknown as readonly View<never>[];
        await start({ views: next });
        await until(() => old.held.includes('amounts'));
        const isReading = rows.closeBefore(() => true);
        const second = await count(1);
        await isReading;
        old.gate.close();
        const states = new FollowerStates(cluster.readModels, clock);
        await until(async () => (await states.usesOf([`view.${name}`]))[0] === '', 20_000);
        expect(await old.metrics.text()).toContain(`gatehouse_lease_held{work="view.${name}"} 0`);
        old.gate.open();
        await until(async () => (await old.metrics.text()).includes(`gatehouse_lease_held{work="view.${name}"} 1`));
        rows.open();
        await until(async () => old.held.includes('amounts') && !(await refuses(old)));
        await old.projector.caughtUpWith(second);
        expect(await times(old, 1)).toEqual({ times: 2 });
      });

    it('and leave a table to whoever holds its lease without saying that it is used, as earlier releases do', async () => {
      const states = new FollowerStates(cluster.readModels, clock);
      const earlier = cluster.readModels.table<never>({ name: 'amounts-v0', indexes: [], rebuildable: true });
      await earlier.write([], 'somewhere');
      await states.tell('view.amounts-v0', { halt: null, carriedOut: '' }, 1);
      const renew = (): Promise<unknown> => cluster.shortLived.lease('view.amounts-v0', 'of an earlier release', 3_000);
      await renew();
      const renewing = setInterval(() => void renew(), 500);
      await start();
      await pause(2 * TEN_LOOKS);
      expect(await earlier.checkpoint()).toBe('somewhere');
      clearInterval(renewing);
      await until(async () => (await states.names('view.')).every((name) => name !== 'view.amounts-v0'), 20_000);
    });
  });

  describe('refuse queries together', () => {
    it('within a second, when a view cannot go on, until an operator has decided, anywhere', async () => {
      const [first, second] = [await start(), await start()];
      await count(1);
      const bad = await count('bad');
      await until(() => refuses(first));
      await until(() => refuses(second), 1_200);
      expect(await second.projector.status()).toMatchObject([{ view: 'amounts', position: bad, isStopped: true, reason: 'unfoldable' }, { isStopped: false }]);
      expect(await first.metrics.text()).toContain('gatehouse_view_stopped{view="amounts"} 1');
      // Readers of other views need not wait for it.
      await second.projector.caughtUpWith(await count(2));
      await second.projector.skip('amounts', bad, 'written by a bug', (type) => event(type, null, SYSTEM_ENVIRONMENT));
      expect([await times(second, 2), first.held]).toEqual([{ times: 1 }, ['amounts', 'last']]);
      await until(async () => !(await refuses(first)));
    });

    it('also after another took over', async () => {
      const [first, second] = [await start(), await start()];
      await count('bad');
      await until(() => refuses(second));
      await first.stop();
      await until(() => second.held.length === 2);
      await second.projector.caughtUpWith(await count(1));
      expect(await refuses(second)).toBe(true);
      expect((await second.projector.status())[0]).toMatchObject({ isStopped: true });
    });

    it('but not while views are filled for the first time, beside processes that are as old as the log', async () => {
      const { events, shortLived, bus, readModels, foreign } = cluster;
      const slow = new Gate();
      slow.close();
      const first = new Replica({ foreign, events, shortLived, bus, readModels: new GatedReadModels(readModels, slow) }, false);
      replicas.push(first);
      const starting = first.start();
      await until(() => first.held.length === 2);
      const second = await start();
      const position = await count(1);
      let refused = 0;
      const watching = setInterval(() => void refuses(second).then((is) => (refused += Number(is))), 1);
      slow.open();
      await starting;
      await second.projector.caughtUpWith(position);
      await pause(1_000);
      clearInterval(watching);
      expect(refused).toBe(0);
      expect([await times(first, 1), await times(second, 1)]).toEqual([{ times: 1 }, { times: 1 }]);
    });

    it('while views are filled anew, which a third may ask for', async () => {
      for (let amount = 0; amount < 50; amount++) await count(1);
      const [first, second] = [await start(), await start()];
      const rows = cluster.readModels.table(tableOf(BOTH[0]!));
      await rows.write([{ environment: ENVIRONMENT, id: 'amount_1', position: '~', revision: 0, text: '{"times":-1}' } satisfies Write]);
      // Emptied rows are never shown: only the old row, and the right one.
      const seen = new Set<string>();
      let isWatching = true;
      const watching = Promise.all(
        [first, second].map(async (replica) => {
          for (; isWatching; await pause(1)) seen.add(await times(replica, 1).then(JSON.stringify, () => 'refused'));
        }),
      );
      const third = new Replica(cluster, false);
      replicas.push(third);
      await third.projector.refill();
      const isFilled = async (replica: Replica): Promise<boolean> => (await times(replica, 1).then(JSON.stringify, () => 'refused')) === '{"times":50}';
      await until(async () => (await isFilled(first)) && (await isFilled(second)));
      isWatching = false;
      await watching;
      expect([...seen].sort()).toEqual(['refused', '{"times":-1}', '{"times":50}']);
      expect([await times(first, 1), await times(second, 1)]).toEqual([{ times: 50 }, { times: 50 }]);
      expect(third.held).toEqual([]);
    });

    it('and fill views anew where the one that began to has gone', async () => {
      for (let amount = 0; amount < 50; amount++) await count(1);
      const [first, second] = [await start(), await start()];
      const asked = second.projector.refill();
      await until(() => refuses(second));
      first.gate.close();
      await asked;
      first.gate.open();
      await until(async () => !(await refuses(first)));
      expect([await times(first, 1), await times(second, 1)]).toEqual([{ times: 50 }, { times: 50 }]);
    });
  });

  describe('announce and react', () => {
    it('one at a time, and hand over without a loss', async () => {
      const announced = () => new Set(cluster.bus.published.map(({ value }) => (JSON.parse(value) as { readonly data: unknown }).data));
      const both = [await start({ announces: true }), await start({ announces: true })] as const;
      let counted = 0;
      let isCounting = true;
      const counting = (async () => {
        for (; isCounting; await pause(5)) await count(++counted);
      })();
      const handled = () => both.flatMap((replica) => replica.handled);
      await until(() => handled().length > 20);
      // Whichever was first to take the lease.
      const [first, second] = both[0].handled.length > 0 ? both : [both[1], both[0]];
      expect(second.handled).toEqual([]);
      first.gate.close();
      await until(() => second.handled.length > 20);
      first.gate.open();
      await pause(1_500);
      await second.stop();
      const before = first.handled.length;
      await until(() => first.handled.length > before + 20);
      isCounting = false;
      await counting;
      const all = Array.from({ length: counted }, (_, index) => index + 1);
      await until(() => new Set(handled()).size === counted && announced().size === counted);
      // Repeats aside, in order.
      expect([...announced()]).toEqual(all);
    });
  });

  describe('find the log restored to an earlier state', () => {
    /** Of the log as it is now. */
    async function copyOfLog(): Promise<string> {
      const copy = join(directory, 'copy');
      await cluster.close();
      await cp(join(directory, 'log'), copy, { recursive: true });
      cluster = await Cluster.open(directory, openRows);
      return copy;
    }

    async function putBack(copy: string): Promise<void> {
      await cluster.close();
      await rm(join(directory, 'log'), { recursive: true });
      await cp(copy, join(directory, 'log'), { recursive: true });
      cluster = await Cluster.open(directory, openRows);
    }

    /** Answers the end of the log, once all that follows it has come there. */
    async function endReached({ projector }: Replica): Promise<Position> {
      const head = await cluster.events.head();
      const table = (name: string) => cluster.readModels.table<never>({ name, indexes: [], rebuildable: false });
      await until(async () => (await table('forwarder-identity').checkpoint()) === head && (await table('reaction-count').checkpoint()) === head);
      await projector.caughtUpWith(head);
      return head;
    }

    it('and are halted, and say so, until one command repairs all of it', async () => {
      for (let amount = 0; amount < 10; amount++) await count(1);
      const copy = await copyOfLog();
      const early = await start({ announces: true });
      for (let amount = 0; amount < 10; amount++) await count(2);
      const head = await endReached(early);
      await stopAll();
      await putBack(copy);
      versions.set('a', 10);

      const [first, second] = [await start({ announces: true }), await start({ announces: true })];
      const stand = async () => (await second.followers.status()).every(({ isAhead }) => isAhead);
      await until(stand);
      await until(() => first.metrics.text().then((text) => (text.match(/gatehouse_follower_ahead\{.*\} 1/g) ?? []).length === 2));
      expect(await first.metrics.text()).toContain('gatehouse_view_stopped{view="amounts"} 1');
      expect([await refuses(first), await refuses(second)]).toEqual([true, true]);
      expect(await second.projector.status()).toMatchObject([
        { position: head, reason: 'ahead' },
        { position: head, reason: 'ahead' },
      ]);
      // Also when the log has grown past the old position meanwhile.
      for (let amount = 0; amount < 20; amount++) await count(3);
      await stopAll();
      const [third, fourth] = [await start({ announces: true }), await start({ announces: true })];
      expect(await refuses(third)).toBe(true);
      await Promise.all([fourth.projector.refill(), fourth.followers.resume()]);
      expect([await times(third, 1), await times(third, 2), await times(fourth, 3)]).toEqual([{ times: 10 }, null, { times: 20 }]);
      await count(4);
      await until(() => [...third.handled, ...fourth.handled].includes(4));
      expect(await fourth.followers.status()).toMatchObject([{ isAhead: false }, { isAhead: false }]);
    });

    it('and are halted where it has grown past what they know while nobody looked, and has another record there', async () => {
      for (let amount = 0; amount < 5; amount++) await count(1);
      const copy = await copyOfLog();
      const early = await start({ announces: true });
      for (let amount = 0; amount < 5; amount++) await count(2);
      const head = await endReached(early);
      await stopAll();
      // Without a change, they go on where they were.
      const same = await start({ announces: true });
      expect([await times(same, 1), await times(same, 2)]).toEqual([{ times: 5 }, { times: 5 }]);
      expect((await same.followers.status()).map(({ isAhead }) => isAhead)).toEqual([false, false]);
      await stopAll();
      await putBack(copy);
      versions.set('a', 5);
      for (let amount = 0; amount < 10; amount++) await count(3);
      expect((await cluster.events.head()) > head).toBe(true);

      const [first, second] = [await start({ announces: true }), await start({ announces: true })];
      await until(async () => (await second.followers.status()).every(({ isAhead }) => isAhead));
      await until(() => first.metrics.text().then((text) => (text.match(/gatehouse_follower_ahead\{.*\} 1/g) ?? []).length === 2));
      expect([await refuses(first), await refuses(second)]).toEqual([true, true]);
      expect(await second.projector.status()).toMatchObject([
        { position: head, reason: 'ahead' },
        { position: head, reason: 'ahead' },
      ]);
      await Promise.all([second.projector.refill(), second.followers.resume()]);
      expect([await times(first, 1), await times(first, 2), await times(second, 3)]).toEqual([{ times: 5 }, null, { times: 10 }]);
      await count(4);
      await until(() => [...first.handled, ...second.handled].includes(4));
      await stopAll();
      const last = await start({ announces: true });
      expect([await times(last, 3), (await last.followers.status()).map(({ isAhead }) => isAhead)]).toEqual([{ times: 10 }, [false, false]]);
    });

    it('and are halted, asking no more, also where it has grown past what they know and does not have their position', async () => {
      const early = await start({ announces: true });
      for (let amount = 0; amount < 10; amount++) await count(1);
      const head = await endReached(early);
      await stopAll();
      cluster.foreign.add(head);
      for (let amount = 0; amount < 10; amount++) await count(2);

      const [first, second] = [await start({ announces: true }), await start({ announces: true })];
      await until(async () => (await second.followers.status()).every(({ isAhead }) => isAhead));
      await until(() => first.metrics.text().then((text) => (text.match(/gatehouse_follower_ahead\{.*\} 1/g) ?? []).length === 2));
      expect([await refuses(first), await refuses(second)]).toEqual([true, true]);
      expect(await second.projector.status()).toMatchObject([
        { position: head, reason: 'ahead' },
        { position: head, reason: 'ahead' },
      ]);
      const asked = first.subscriptions + second.subscriptions;
      await pause(2_500);
      expect(first.subscriptions + second.subscriptions).toBe(asked);
      await stopAll();
      const third = await start({ announces: true });
      await until(async () => (await third.followers.status()).every(({ isAhead }) => isAhead));
      expect([await refuses(third), third.subscriptions]).toEqual([true, 0]);
      await Promise.all([third.projector.refill(), third.followers.resume()]);
      expect([await times(third, 1), await times(third, 2)]).toEqual([{ times: 10 }, { times: 10 }]);
      await count(4);
      await until(() => third.handled.includes(4));
      expect(await third.followers.status()).toMatchObject([{ isAhead: false }, { isAhead: false }]);
    });
  });
}
