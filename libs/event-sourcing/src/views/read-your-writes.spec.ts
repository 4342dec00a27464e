import { JointWrites } from '../following/joint-writes.ts';
import { LogFollowing } from '../following/memory-follower.ts';
import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { newCommandId, newUlid } from '#libs/platform/src/ids';
import { DomainError } from '#libs/platform/src/domain-error';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Readiness } from '#libs/platform/src/readiness';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import type { Table, TableDefinition } from '#libs/read-models/src/read-models';
import { mayTake, until } from '#libs/testing/src/until';
import type { Decider, Fact } from '../deciding/decider.ts';
import { LogRepository } from '../deciding/log.repository.ts';
import { FollowerStates } from '../following/follower-states.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { Naming } from '../log/naming.ts';
import { ReadYourWrites } from './read-your-writes.ts';
import { Projector, ProjectorMetrics } from './projector.ts';
import { GuardedReadModels } from './guarded.read-models.ts';
import { StoppedViews } from './stopped-views.ts';
import { primaryView, tableOf, type View } from './view.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';

interface Shelf {
  readonly books: number;
}
type ShelfEvent = Fact<'shelf.filled' | 'shelf.dusted', { readonly book: string }>;

const shelfDecider: Decider<Shelf | null, ShelfEvent> = {
  category: 'shelf',
  foldVersion: 1,
  initial: null,
  sealed: { 'shelf.filled': null, 'shelf.dusted': null },
  evolve: (state) => ({ books: (state?.books ?? 0) + 1 }),
  toPublicEvent: () => null,
};
const shelves = primaryView<Shelf | null, ShelfEvent, Shelf>({
  name: 'shelves',
  version: 1,
  decider: shelfDecider,
  indexes: [],
  rowOf: (state) => state,
});

/** What a view of several streams may do before it has seen something. */
let held: Promise<void> = Promise.resolve();
/** Where each book stands. */
const places: View<{ readonly shelf: string }> = {
  name: 'places',
  version: 1,
  handles: ['shelf.filled'],
  indexes: [],
  idsOf: ({ data }) => [(data as { book: string }).book],
  evolve: () => ({ shelf: '' }),
  async evolveBatch() {
    await held;
    return (_row, { stream, data }) => {
      if ((data as { book: string }).book === 'bad') throw new Error('No such book.');
      return { shelf: stream.split('-').at(-1)! };
    };
  },
};
/** Nobody counts on it. */
const dusted: View<{ readonly times: number }> = {
  name: 'dusted',
  version: 1,
  handles: ['shelf.dusted'],
  awaited: false,
  indexes: [],
  idsOf: () => ['all'],
  evolve: (row) => ({ times: (row?.times ?? 0) + 1 }),
};
const views = [shelves, places, dusted] as unknown as readonly View<never>[];

/** What another service wants to be known there. */
const elsewhere = [{ name: 'places', version: 1, handles: ['shelf.filled'] }];

describe('views that answers wait for', () => {
  const clock = new SystemClock();
  const naming = new Naming(createSecretKey(Buffer.alloc(32, 1)));
  const log = new PinoLog({ level: 'silent', readable: false });
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let readModels: LmdbReadModels;
  let shortLived: LmdbShortLived;
  let processes: Process[];

  /** One replica of a service, as far as it writes and shows. */
  class Process {
    readonly metrics = new Metrics();
    readonly projector: Projector;
    readonly awaited: ReadYourWrites;
    readonly repository: LogRepository;

    constructor(own: readonly View<never>[] = views) {
      const { metrics } = this;
      const leases = new Leases(shortLived, newUlid(clock.now()), log, metrics);
      const states = new FollowerStates(readModels, clock);
      const stopped = new StoppedViews();
      const [following, writes] = [new LogFollowing(events, clock, log), new JointWrites(readModels)];
      const needs = { events, following, writes, readModels, leases, states, stopped, readiness: new Readiness(), metrics: new ProjectorMetrics(metrics) };
      this.projector = new Projector(own === views ? 'library' : 'desk', own, needs);
      this.awaited = new ReadYourWrites({ views: own, elsewhere, readModels, projector: this.projector, following, metrics });
      this.repository = new LogRepository(events, readModels, naming, clock, log, stopped, this.awaited);
      this.repository.registerPrimaryView(shelves);
    }

    record(type: ShelfEvent['type'], book: string, shelf = 'a') {
      const context = { ...systemContext(ENVIRONMENT, clock.now()), commandId: newCommandId(clock.now()) };
      return this.repository.transact(shelfDecider, context, shelf, () => [{ type, data: { book } }]);
    }

    async placeOf(book: string): Promise<string | null> {
      const row = await readModels.table(tableOf(places)).get(ENVIRONMENT, book);
      return row === null ? null : (JSON.parse(row.text) as { shelf: string }).shelf;
    }

    async late(): Promise<number> {
      return Number(/answers_before_views_total (\d+)/.exec(await this.metrics.text())?.[1]);
    }
  }

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'read-your-writes-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    readModels = new LmdbReadModels(storage);
    shortLived = new LmdbShortLived(storage, clock);
    held = Promise.resolve();
    processes = [];
  });
  afterEach(async () => {
    for (const { projector } of processes) await projector.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  async function start(own?: readonly View<never>[]): Promise<Process> {
    const process = new Process(own);
    await process.projector.start();
    processes.push(process);
    return process;
  }

  it('show what a command recorded when it is answered, whichever process brings them along', async () => {
    const [holder, other] = [await start(), await start()];
    expect([holder.projector.held().length, other.projector.held().length]).toEqual([3, 0]);
    for (const [index, process] of [holder, other, holder, other].entries()) {
      await process.record('shelf.filled', `book${index}`, `shelf${index}`);
      expect(await process.placeOf(`book${index}`)).toBe(`shelf${index}`);
    }
    expect([await holder.late(), await other.late()]).toEqual([0, 0]);
  });

  it('show it in another service, where that is asked for, or the answer is given after a second', async () => {
    const [library, desk] = [await start(), await start([])];
    for (const book of ['one', 'two']) {
      await desk.record('shelf.filled', book);
      expect(await library.placeOf(book)).toBe('a');
    }
    expect(desk.awaited.waitForViews([{ type: 'shelf.dusted' }], '0000000000000001')).toBeNull();
    let release = (): void => {};
    held = new Promise((resolve) => (release = resolve));
    await desk.record('shelf.filled', 'late');
    expect([await library.placeOf('late'), await desk.late()]).toEqual([null, 1]);
    release();
  });

  it('show a row too that could not be written with its event', async () => {
    const process = await start();
    const away = Object.assign(Object.create(readModels) as LmdbReadModels, {
      table: <Row>(definition: TableDefinition<Row>): Table<Row> =>
        Object.assign(Object.create(readModels.table(definition)) as Table<Row>, { write: () => Promise.reject(new Error('disk on fire')) }),
    });
    const repository = new LogRepository(events, away, naming, clock, log, new StoppedViews(), process.awaited);
    repository.registerPrimaryView(shelves);
    const context = { ...systemContext(ENVIRONMENT, clock.now()), commandId: newCommandId(clock.now()) };
    const { state } = await repository.transact(shelfDecider, context, 'a', () => [{ type: 'shelf.dusted', data: { book: 'one' } }]);
    expect((await readModels.table(tableOf(shelves)).get(ENVIRONMENT, 'a'))?.text).toBe(JSON.stringify(state));
    expect(await process.late()).toBe(0);
  });

  it('are waited for by a command that changes nothing since somebody else just did, where no row shows that yet', async () => {
    const lost = Object.assign(Object.create(readModels) as LmdbReadModels, {
      table: <Row>(definition: TableDefinition<Row>): Table<Row> =>
        Object.assign(Object.create(readModels.table(definition)) as Table<Row>, { write: async () => {} }),
    });
    for (const [tables, isAwaited] of [[lost, true] as const, [readModels, false] as const]) {
      const positions: string[] = [];
      const awaited = { waitForViews: (_facts: unknown, position: string) => (positions.push(position), null) };
      const repository = new LogRepository(events, tables, naming, clock, log, new StoppedViews(), awaited);
      repository.registerPrimaryView(shelves);
      const context = () => ({ ...systemContext(ENVIRONMENT, clock.now()), commandId: newCommandId(clock.now()) });
      const { position } = await repository.transact(shelfDecider, context(), `shelf-${isAwaited}`, () => [{ type: 'shelf.filled', data: { book: 'one' } }]);
      positions.length = 0;
      await repository.transact(shelfDecider, context(), `shelf-${isAwaited}`, () => []);
      expect(positions).toEqual(isAwaited ? [position] : []);
    }
  });

  it('are waited for by a command that is refused what somebody else holds, where no row shows that yet: whoever looks finds who', async () => {
    const lost = Object.assign(Object.create(readModels) as LmdbReadModels, {
      table: <Row>(definition: TableDefinition<Row>): Table<Row> =>
        Object.assign(Object.create(readModels.table(definition)) as Table<Row>, { write: async () => {} }),
    });
    for (const [tables, isAwaited] of [[lost, true] as const, [readModels, false] as const]) {
      const positions: string[] = [];
      const awaited = { waitForViews: (_facts: unknown, position: string) => (positions.push(position), null) };
      const repository = new LogRepository(events, tables, naming, clock, log, new StoppedViews(), awaited);
      repository.registerPrimaryView(shelves);
      const claim = { kind: 'shelf.number', value: `${isAwaited}`, refusal: () => new DomainError('conflict', 'number_taken', 'Another shelf has it.') };
      const numbered: typeof shelfDecider = { ...shelfDecider, claims: (state) => (state === null ? [] : [claim]) };
      const fill = (shelf: string) =>
        repository.transact(numbered, { ...systemContext(ENVIRONMENT, clock.now()), commandId: newCommandId(clock.now()) }, shelf, () => [
          { type: 'shelf.filled', data: { book: 'one' } },
        ]);
      const { position } = await fill(`first-${isAwaited}`);
      positions.length = 0;
      await expect(fill(`second-${isAwaited}`)).rejects.toMatchObject({ code: 'number_taken' });
      expect(positions).toEqual(isAwaited ? [position] : []);
    }
  });

  it('cost nothing where none of them folds what was recorded', async () => {
    const { awaited } = await start();
    expect(awaited.waitForViews([{ type: 'shelf.dusted' }, { type: 'shelf.moved' }], '0000000000000001')).toBeNull();
    expect(awaited.waitForViews([{ type: 'shelf.dusted' }, { type: 'shelf.filled' }], '0000000000000001')).not.toBeNull();
  });

  it('are waited for a second; then the command is answered, and counted', async () => {
    const process = await start();
    let release = (): void => {};
    held = new Promise((resolve) => (release = resolve));
    const began = performance.now();
    const { state } = await process.record('shelf.filled', 'late');
    const took = performance.now() - began;
    expect({ state, shown: await process.placeOf('late'), late: await process.late() }).toEqual({ state: { books: 1 }, shown: null, late: 1 });
    expect(took).toBeGreaterThan(900);
    expect(took).toBeLessThan(mayTake(3_000));
    release();
    await process.record('shelf.filled', 'next');
    expect([await process.placeOf('late'), await process.placeOf('next'), await process.late()]).toEqual(['a', 'a', 1]);
  });

  it('keep nobody waiting while they are halted, or while nothing is brought along', async () => {
    const process = await start();
    await process.record('shelf.filled', 'bad');
    const began = performance.now();
    await process.record('shelf.filled', 'good');
    const commandLine = new Process();
    await commandLine.record('shelf.filled', 'by hand');
    expect(performance.now() - began).toBeLessThan(mayTake(900));
    expect([await process.late(), await commandLine.late()]).toEqual([0, 0]);
  });

  it('have seen what was recorded before somebody asked for the head, or say that they have not, where that is wanted', async () => {
    const [holder, other] = [await start(), await start()];
    let release = (): void => {};
    held = new Promise((resolve) => (release = resolve));
    const before = await events.head();
    const recorded = holder.record('shelf.filled', 'elsewhere');
    await until(async () => (await events.head()) !== before);
    await expect(other.awaited.waitForHead(clock.now() + 200)).rejects.toMatchObject({ code: 'service_unavailable' });
    await other.awaited.waitBrieflyForHead(tableOf(places).name);
    expect(await other.placeOf('elsewhere')).toBeNull();
    release();
    await other.awaited.waitBrieflyForHead(tableOf(places).name);
    expect(await other.placeOf('elsewhere')).toBe('a');
    await other.awaited.waitForHead(clock.now() + 5_000);
    await recorded;
  });

  it('are looked at once more for what is not there: that of the table, at the end of the log', async () => {
    const [holder, other] = [await start(), await start()];
    const served = new GuardedReadModels(readModels, new StoppedViews(), other.awaited);
    const find = async (view: Pick<View<unknown>, 'name' | 'version'>, patience = 5_000) => {
      const table = served.table({ ...tableOf(view as View<unknown>), indexes: [] });
      return (await table.find({ environment: ENVIRONMENT, deadline: clock.now() + patience }, 'found'))?.text ?? null;
    };
    expect(await find(places)).toBeNull();
    let release = (): void => {};
    held = new Promise((resolve) => (release = resolve));
    const before = await events.head();
    const recorded = holder.record('shelf.filled', 'found');
    await until(async () => (await events.head()) !== before);
    // What is behind is another view than these.
    expect(await find(shelves)).toBeNull();
    expect(await find({ name: 'of-nobody-here', version: 1 })).toBeNull();
    await expect(find(places, 200)).rejects.toMatchObject({ code: 'service_unavailable' });
    const late = find(places);
    release();
    expect(await late).toBe('{"shelf":"a"}');
    await recorded;
  });
});
