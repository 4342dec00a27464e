import { JointWrites } from '../following/joint-writes.ts';
import { LogFollowing } from '../following/memory-follower.ts';
import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { notFound } from '#libs/platform/src/domain-error';
import { newCommandId, newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Readiness } from '#libs/platform/src/readiness';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { FollowerStates } from '../following/follower-states.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { Naming } from '../log/naming.ts';
import { Projector, ProjectorMetrics } from '../views/projector.ts';
import { differences } from '../views/rebuild.ts';
import { StoppedViews } from '../views/stopped-views.ts';
import { primaryView, tableOf } from '../views/view.ts';
import type { Decider, Decision, Fact } from './decider.ts';
import { LogRepository } from './log.repository.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';

/** Who has which book: of one pair there is one loan at a time, and each has an id of its own. */
interface Loan {
  readonly id: string;
  readonly weeks: number;
  readonly created_at: string;
}
interface Returned {
  readonly id: string;
  readonly isOver: true;
}
type LoanState = Loan | Returned | null;
type LoanEvent =
  | Fact<'loan.created', { readonly id: string; readonly weeks: number }>
  | Fact<'loan.extended', { readonly id: string }>
  | Fact<'loan.ended', { readonly id: string }>;

const loanDecider: Decider<LoanState, LoanEvent> = {
  category: 'loan',
  foldVersion: 1,
  initial: null,
  sealed: { 'loan.created': null, 'loan.extended': null, 'loan.ended': null },
  evolve(state, { type, data, at }) {
    switch (type) {
      case 'loan.created':
        return { ...data, created_at: at };
      case 'loan.extended':
        return isLoan(state) ? { ...state, weeks: state.weeks + 1 } : state;
      case 'loan.ended':
        return { id: data.id, isOver: true };
    }
  },
  toPublicEvent: () => null,
};
const loans = primaryView<LoanState, LoanEvent, Loan>({
  name: 'loans',
  version: 1,
  decider: loanDecider,
  rowIdOf: ({ id }) => id,
  indexes: [{ name: 'weeks', keys: ({ weeks }) => [String(weeks)] }],
  rowOf: (state) => (isLoan(state) ? state : null),
});

function isLoan(state: LoanState): state is Loan {
  return state !== null && 'weeks' in state;
}

type Decide = Decision<LoanState, LoanEvent>;
const lend: Decide = (state, context) => (isLoan(state) ? [] : [{ type: 'loan.created', data: { id: context.id('loan'), weeks: 2 } }]);
const extend =
  (id: string): Decide =>
  (state) => {
    if (!isLoan(state) || state.id !== id) throw notFound('Loan', id);
    return [{ type: 'loan.extended', data: { id } }];
  };
const end: Decide = (state) => (isLoan(state) ? [{ type: 'loan.ended', data: { id: state.id } }] : []);
/** Several rows in one append. */
const replace: Decide = (state, context) => {
  const id = context.id('loan');
  return [...end(state, context), { type: 'loan.created', data: { id, weeks: 1 } }, { type: 'loan.extended', data: { id } }];
};

describe('rows of streams that a natural key names', () => {
  const clock = new SystemClock();
  const log = new PinoLog({ level: 'silent', readable: false });
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let readModels: LmdbReadModels;
  let repository: LogRepository;
  let projector: Projector | null;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'natural-keys-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    readModels = new LmdbReadModels(storage);
    repository = new LogRepository(events, readModels, new Naming(createSecretKey(Buffer.alloc(32, 1))), clock, log);
    repository.registerPrimaryView(loans);
    projector = null;
  });
  afterEach(async () => {
    await projector?.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const transact = (decide: Decide, key = 'book.reader') =>
    repository.transact(loanDecider, { ...systemContext(ENVIRONMENT, clock.now()), commandId: newCommandId(clock.now()) }, key, decide);
  const idOf = async (decide: Decide, key?: string): Promise<string> => (await transact(decide, key)).state!.id;

  async function row(id: string): Promise<unknown> {
    const found = await readModels.table(tableOf(loans)).get(ENVIRONMENT, id);
    return found === null ? null : (JSON.parse(found.text) as unknown);
  }

  /** Without positions: at once a row has that of the whole append, later that of the fact which concerned it last. */
  async function rows(): Promise<readonly unknown[]> {
    const all: unknown[] = [];
    for await (const { environment, id, text } of readModels.table(tableOf(loans)).dump()) all.push({ environment, id, text });
    return all;
  }

  async function project(): Promise<void> {
    const metrics = new Metrics();
    const needs = {
      events,
      following: new LogFollowing(events, clock, log),
      writes: new JointWrites(readModels),
      readModels,
      leases: new Leases(new LmdbShortLived(storage, clock), newUlid(clock.now()), log, metrics),
      states: new FollowerStates(readModels, clock),
      stopped: new StoppedViews(),
      readiness: new Readiness(),
      metrics: new ProjectorMetrics(metrics),
    };
    projector = new Projector('loans', [loans as never], needs);
    await projector.start();
  }

  it('are found under the ids in the facts, at once', async () => {
    const id = await idOf(lend);
    expect(await row(id)).toMatchObject({ id, weeks: 2 });
    await transact(extend(id));
    expect(await row(id)).toMatchObject({ id, weeks: 3 });
    expect(await row('book.reader')).toBeNull();
  });

  it('are others for each incarnation, and no command of an earlier one reaches a later one', async () => {
    const first = await idOf(lend);
    await transact(end);
    expect(await row(first)).toBeNull();
    const second = await idOf(lend);
    expect(second).not.toBe(first);
    expect([await row(first), await row(second)]).toMatchObject([null, { id: second, weeks: 2 }]);
    await expect(transact(extend(first))).rejects.toMatchObject({ code: 'entity_not_found' });
  });

  it('are written each as its last fact leaves it, where one append concerns several', async () => {
    const first = await idOf(lend);
    const second = await idOf(replace);
    expect([await row(first), await row(second)]).toMatchObject([null, { id: second, weeks: 2 }]);
  });

  it('of one key have one winner', async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => idOf(lend)));
    expect(new Set(ids).size).toBe(1);
    expect(await rows()).toHaveLength(1);
  });

  it('are decided on the stream, whatever a row says', async () => {
    const id = await idOf(lend);
    await readModels
      .table(tableOf(loans))
      .write([{ environment: ENVIRONMENT, id: 'book.reader', position: '9', revision: 9, text: JSON.stringify({ id: 'loan_x', weeks: 9, created_at: '' }) }]);
    expect((await transact(extend(id))).state).toMatchObject({ id, weeks: 3 });
  });

  it('are the same by transact, by the projector and by a rebuild', async () => {
    for (const key of ['a.b', 'a.c']) {
      await transact(extend(await idOf(lend, key)), key);
      await transact(end, key);
      await transact(lend, key);
    }
    await transact(replace, 'a.c');
    const atOnce = await rows();
    expect(atOnce).toHaveLength(5);
    await project();
    expect(await rows()).toEqual(atOnce);
    for await (const difference of differences([loans as never], { events, readModels })) expect(difference).toBeNull();
    // Nothing was written at once.
    await projector!.stop();
    await readModels.table(tableOf(loans)).clear();
    await project();
    expect(await rows()).toEqual(atOnce);
  });
});
