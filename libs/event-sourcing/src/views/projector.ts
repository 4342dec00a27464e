import { setTimeout as pause } from 'node:timers/promises';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import type { Metrics } from '#libs/platform/src/metrics';
import { patiently } from '#libs/platform/src/patience';
import type { Readiness } from '#libs/platform/src/readiness';
import type { Leases } from '#libs/read-models/src/leases';
import { Fenced } from '#libs/read-models/src/read-models';
import type { Cursor } from '../following/cursor.ts';
import type { FollowerState, SharedState, Halt } from '../following/follower-states.ts';
import type { LogFollowing } from '../following/memory-follower.ts';
import type { Awaited } from '../following/position-gate.ts';
import { LogPutBack } from '../following/reading.ts';
import { START, type NewEvent, type Position, PositionOfAnotherLog } from '../log/event-store.ts';
import { leaseOf, ViewRunner, type ViewRunnerNeeds } from './view-runner.ts';
import { rebuiltNameOf } from './rebuild.ts';
import { KNOWN_WITHIN } from './stopped-views.ts';
import { recordSkip } from './view-skips.ts';
import type { View } from './view.ts';

/** How often the shared rows are looked at. */
const LOOK = KNOWN_WITHIN / 2;
/** After a view was marked, before its rows go: by then every process refuses to read them, and what was being read is answered. */
const KNOWN_EVERYWHERE = KNOWN_WITHIN + 500;
/** How often it is shown how much of a view is filled, during a start. */
const SHOWN_EVERY = 100;
/** A checkpoint that only passes over events of others is stored this often: losing one costs reading a little again, and readers elsewhere wait for it. */
const IDLE_CHECKPOINT_EVERY = 100;
/** How often a process says which tables it uses, and looks whether older ones are still used. */
const USE = 60_000;
/** A table of an older version goes when so many looks in a row found it unused: what keeps processes from saying so keeps this one from looking. */
const UNUSED_LOOKS = 10;

export interface ProjectorNeeds extends Omit<ViewRunnerNeeds, 'reader' | 'clock' | 'log'> {
  readonly following: LogFollowing;
  readonly leases: Leases;
  readonly readiness: Readiness;
  readonly metrics: ProjectorMetrics;
  /** In milliseconds, instead of a minute: how often use is told and looked for. */
  readonly useEvery?: number;
}

/** The numbers of all projectors of a process. */
export class ProjectorMetrics {
  private readonly projectors: Projector[] = [];

  constructor(metrics: Metrics) {
    metrics.gauge({
      name: 'projector_lag_seconds',
      help: 'Age of the oldest event that the views which this process brings along, or brought along until nobody could, have not seen; 0 when they have seen all.',
      labels: ['service'],
      collect: async (gauge) => {
        for (const projector of this.projectors) gauge.set({ service: projector.service }, await projector.lag());
      },
    });
    metrics.gauge({
      name: 'view_stopped',
      help: '1 while a view is halted: before an event that it cannot fold, or beyond the end of the log. Told by the process that would bring it along.',
      labels: ['view'],
      collect: (gauge) => {
        gauge.reset();
        for (const projector of this.projectors)
          for (const { view, halt } of projector.held()) gauge.set({ view: view.name }, halt !== null && halt.reason !== 'rebuilding' ? 1 : 0);
      },
    });
    metrics.gauge({
      name: 'view_left_to_later_release',
      help: '1 where a view has come to an event that only a later release can fold, and no process of one has folded it yet. Its queries answer 503 here.',
      labels: ['view'],
      collect: (gauge) => {
        for (const projector of this.projectors) for (const { view, isLeft } of projector.leavings()) gauge.set({ view }, isLeft ? 1 : 0);
      },
    });
  }

  add(projector: Projector): void {
    this.projectors.push(projector);
  }
}

export interface ViewStatus {
  readonly view: string;
  readonly table: string;
  /** What it has seen last; where it is halted, the event that it is halted before. */
  readonly position: Position;
  readonly isStopped: boolean;
  readonly reason: Halt['reason'] | null;
}

/**
 * Keeps the views of a process filled, together with its replicas: each view is brought along by whoever holds its lease, the others follow what is stored of
 * it. A holder goes on from the stored checkpoint, and stands before an event rather than skip it.
 */
export class Projector implements BackgroundComponent {
  readonly stage = 'views';
  readonly name: string;
  private readonly views: readonly ViewRunner[];
  /** By the names that somebody asked for: writes of one type wait for the same views, thousands of times a second. */
  private readonly named = new WeakMap<ReadonlySet<string>, readonly ViewRunner[]>();
  private stopping: AbortController | null = null;
  private running: Promise<unknown> = Promise.resolve();
  private resting: NodeJS.Timeout | null = null;
  private isHurried = false;
  private wake: () => void = () => {};
  private hasFailed = false;
  private lookedForUseAt = -Infinity;
  /** Tables of older versions: the last use that is known, and how many looks ago it was the last already. */
  private unused: ReadonlyMap<string, { readonly use: string; readonly looks: number }> = new Map();

  constructor(
    readonly service: string,
    views: readonly View<never>[],
    private readonly needs: ProjectorNeeds,
  ) {
    this.name = `projector ${service}`;
    const { reader, clock, log } = needs.following;
    this.views = views.map((view) => new ViewRunner(view as unknown as View<unknown>, { ...needs, reader, clock, log }));
    reader.watch(() => this.wasRead());
    needs.metrics.add(this);
  }

  /** Resolves when the views have caught up with the log as it was at the call, whoever brings them along. */
  async start(): Promise<void> {
    if (this.views.length === 0 || this.stopping !== null) return;
    const { events, readiness, stopped } = this.needs;
    this.stopping = new AbortController();
    const { signal } = this.stopping;
    stopped.keepFresh(() => this.look());
    await this.askForLeases();
    this.running = Promise.all([this.renew(signal), this.tellUse(signal), this.work(signal)]);
    const head = await patiently(() => events.head(), { log: this.needs.following.log, what: 'The end of the log' });
    if (head === START) for (const view of this.views) view.beginWithLog();
    const showing = setInterval(() => this.showFilling(head), SHOWN_EVERY);
    try {
      await this.until((view) => view.isFilledTo(head), signal);
    } finally {
      clearInterval(showing);
    }
    for (const { view } of this.views) readiness.viewFilled(view.name, 1);
  }

  async stop(): Promise<void> {
    if (this.stopping === null) return;
    this.stopping.abort();
    this.needs.stopped.keepFresh(null);
    this.hurry();
    this.moved();
    await this.running;
    const held = this.held();
    await this.rest();
    for (const view of held) view.lose();
    await Promise.all(held.map((view) => this.needs.leases.release(view.lease)));
    this.stopping = null;
  }

  /** Resolves once every view that is not halted has seen the log up to `position`, here or elsewhere. */
  caughtUpWith(position: Position): Promise<void> {
    return this.needs.following.gate.reached(position, Infinity, this.views);
  }

  /** Those of these names, which are not to change, for whoever waits for them; none where nothing is brought along, as while a command of the operator is carried out. */
  shown(names: ReadonlySet<string>): readonly Awaited[] {
    if (this.stopping === null) return [];
    let views = this.named.get(names);
    if (views === undefined) this.named.set(names, (views = this.views.filter(({ view }) => names.has(view.name))));
    return views;
  }

  get all(): readonly Awaited[] {
    return this.views;
  }

  /** The views that this process brings along. */
  held(): readonly ViewRunner[] {
    return this.views.filter(({ isHeld }) => isHeld);
  }

  /** Whether each view waits for a process of a later release. */
  leavings(): readonly { readonly view: string; readonly isLeft: boolean }[] {
    return this.views.map(({ view, awaitsLaterRelease }) => ({ view: view.name, isLeft: awaitsLaterRelease }));
  }

  async status(): Promise<readonly ViewStatus[]> {
    await this.lookEverywhere();
    return this.views.map(({ view, table, position, halt }) => ({
      view: view.name,
      table: table.definition.name,
      position: halt === null || halt.reason === 'rebuilding' ? position : halt.position,
      isStopped: halt !== null,
      reason: halt?.reason ?? null,
    }));
  }

  /** In seconds. */
  async lag(): Promise<number> {
    const { reader, clock } = this.needs.following;
    const views = this.views.filter(({ isToldOf }) => isToldOf);
    if (views.length === 0) return 0;
    const head = await reader.head();
    const behind = views.map((view) => view.behindSince(head)).filter((since) => since !== null && since > 0) as readonly number[];
    return behind.length === 0 ? 0 : Math.max(0, clock.now() - Math.min(...behind)) / 1_000;
  }

  /**
   * Leaves out the event before which a view is halted, for ever and in every rebuild; resolves when the view has gone on. The decision and its reason are
   * recorded in the log, where whoever holds the view finds it.
   * @throws Error when the view does not stand before that position
   */
  async skip(viewName: string, position: Position, reason: string, record: (type: string) => NewEvent): Promise<void> {
    await this.look();
    const view = this.views.find((each) => each.view.name === viewName);
    const isHaltedThere = (): boolean => view?.halt?.reason === 'unfoldable' && view.halt.position === position;
    if (view === undefined || !isHaltedThere()) throw new Error(`${viewName} is not halted before position ${position}.`);
    await recordSkip(this.needs.events, { view: viewName, position, reason }, record);
    this.hurry();
    await this.until((each) => each !== view || !isHaltedThere());
    await this.caughtUpWith(await this.needs.events.head());
  }

  /** Forgets all rows and fills the views anew from the whole log, wherever they are brought along; queries that need them are refused meanwhile. */
  async refill(): Promise<void> {
    if (this.views.length === 0) return;
    const request = await this.needs.states.request(this.views.map(({ lease }) => lease));
    // A process that only carries out a command takes part for as long, since there may be nobody else.
    await this.start();
    await this.look();
    this.hurry();
    await this.until(({ carriedOut, left }) => left !== null || carriedOut >= request);
    const left = this.views.find((view) => view.left !== null);
    if (left !== undefined) throw new Error(`${left.view.name} cannot be filled by this release. ${left.left!.message}`);
  }

  /** The tables of older versions go at once, for whoever knows that no other process uses any: nobody forgets in them who was erased. */
  async dropOldVersionsNow(): Promise<void> {
    const { leases } = this.needs;
    for (const { table, use } of await this.oldVersions()) {
      const token = await leases.acquireOrRenew(leaseOf(table));
      if (token !== null) await this.drop(table, use, token);
      await leases.forget(leaseOf(table));
    }
  }

  private async renew(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.needs.leases.nextRenewal(signal);
      if (!signal.aborted) await this.askForLeases();
    }
  }

  /** Beside everything else, some of which takes long. */
  private async tellUse(signal: AbortSignal): Promise<void> {
    const { states, useEvery = USE } = this.needs;
    const leases = this.views.map(({ lease }) => lease);
    while (!signal.aborted) {
      const isTold = await states.use(leases).then(
        () => true,
        (error: unknown) => this.failed(error),
      );
      await pause(isTold ? useEvery : Math.min(LOOK, useEvery), undefined, { signal }).catch(() => {});
    }
  }

  private async askForLeases(): Promise<void> {
    await Promise.all(
      this.views.map(async (view) => {
        if (view.left !== null) return;
        const token = await this.needs.leases.acquireOrRenew(view.lease, view.outdated);
        if (this.stopping?.signal.aborted !== false) return;
        // It was left while this was asked.
        if (view.left !== null) await this.needs.leases.release(view.lease);
        else if (token === null) {
          if (view.isHeld) this.lose(view);
        } else if (view.take(token)) this.hurry();
      }),
    );
  }

  private lose(view: ViewRunner): void {
    this.needs.following.log.warn('Another process may bring a view along since; this one goes on when it gets the lease again.', { view: view.view.name });
    if (this.needs.leases.isCutOff) view.abandon();
    else view.lose();
    this.hurry();
  }

  /** Everything but the leases, one thing after the other. */
  private async work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.isHurried = false;
      try {
        await this.needs.stopped.freshen();
        await this.rebuild(signal);
        await this.openTaken(signal);
        await this.rest();
        await Promise.all(this.held().map((view) => view.tell()));
        await Promise.all(this.views.filter(({ seemsAbandoned }) => seemsAbandoned).map((view) => view.look()));
        await this.dropOldVersions();
        this.hasFailed = false;
      } catch (error) {
        this.failed(error);
      }
      this.moved();
      if (!this.isHurried) await this.sleep();
    }
  }

  private sleep(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(LOOK, this.needs.useEvery ?? USE));
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** There is something to do that should not wait. */
  private hurry(): void {
    this.isHurried = true;
    this.wake();
  }

  /** What the others know, and tell of the views that they bring along. */
  private async look(): Promise<void> {
    const { leases, states } = this.needs;
    // A process that was paused past its lease does not know any more what it thinks it knows.
    for (const view of this.held()) if (!leases.isHeld(view.lease)) this.lose(view);
    const shared = await states.read(this.views.map(({ lease }) => lease));
    for (const [index, view] of this.views.entries()) view.learn(shared[index]!);
    await Promise.all(this.views.filter(({ awaitsLaterRelease }) => awaitsLaterRelease).map((view) => view.look()));
  }

  private async lookEverywhere(): Promise<void> {
    await this.needs.stopped.freshen();
    await Promise.all(this.views.filter(({ isElsewhere }) => isElsewhere).map((view) => view.look()));
  }

  /** Empties the views that are to be filled anew; they are then opened like any other. */
  private async rebuild(signal: AbortSignal): Promise<void> {
    const views = this.views.filter(({ isToBeRebuilt }) => isToBeRebuilt);
    if (views.length === 0) return;
    try {
      for (const view of views) view.beginRebuild();
      await Promise.all(views.map((view) => view.tell()));
      await pause(KNOWN_EVERYWHERE, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await this.askForLeases();
      for (const view of views) if (view.phase === 'clearing') await this.orLost(view, () => view.clear());
    } finally {
      for (const view of views) view.rebuildFinished();
    }
  }

  /** What hung or broke off begins anew from what is stored. They may be far behind: those that are not do not wait for them. */
  private async openTaken(signal: AbortSignal): Promise<void> {
    for (const view of this.views) if (await view.isPassable()) view.phase = 'taken';
    const cursors: Cursor[] = [];
    const opened: ViewRunner[] = [];
    const open = async (view: ViewRunner): Promise<void> => {
      const cursor = await view.open();
      if (cursor === null) return;
      cursors.push(cursor);
      opened.push(view);
    };
    const taken = this.views.filter(({ phase }) => phase === 'taken');
    const openings = await Promise.allSettled(taken.map((view) => this.orLost(view, () => open(view))));
    if (opened.length > 0) await this.followFrom(cursors, opened, signal);
    // Those that could be opened do not stand still for those that could not.
    for (const opening of openings) if (opening.status === 'rejected') throw opening.reason;
  }

  private async followFrom(cursors: readonly Cursor[], opened: readonly ViewRunner[], signal: AbortSignal): Promise<void> {
    try {
      await this.needs.following.reader.seat(cursors, signal);
    } catch (error) {
      for (const view of opened) view.reopen();
      throw error;
    }
    for (const view of opened) void this.follow(view);
  }

  private async follow(view: ViewRunner): Promise<void> {
    try {
      await view.follow();
    } catch (error) {
      if (error instanceof Fenced) this.lose(view);
      else if (error instanceof PositionOfAnotherLog) view.haltOutside();
      else {
        // Where the log was put back, opening it tells.
        if (!(error instanceof LogPutBack)) this.failed(error);
        view.reopen();
      }
    }
    this.moved();
  }

  private async orLost(view: ViewRunner, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Fenced)) throw error;
      this.lose(view);
    }
  }

  /**
   * Of views that nobody uses any more. Processes of older releases go on with theirs, also while an election or a slow store has cost them the lease; those of
   * releases that say nothing of their use are known by the lease alone.
   */
  private async dropOldVersions(): Promise<void> {
    const { leases, useEvery = USE } = this.needs;
    const now = performance.now();
    if (now - this.lookedForUseAt < useEvery || !this.views.every(({ phase }) => phase === 'following' || phase === 'elsewhere')) return;
    this.lookedForUseAt = now;
    const before = this.unused;
    const unused = new Map((await this.oldVersions()).map(({ table, use }) => [table, { use, looks: 0 }]));
    this.unused = unused;
    for (const [table, { use }] of [...unused]) {
      const known = before.get(table);
      if (known?.use !== use) continue;
      const token = await leases.acquireOrRenew(leaseOf(table));
      if (token !== null) {
        const looks = known.looks + 1;
        unused.set(table, { use, looks });
        if (looks >= UNUSED_LOOKS) await this.drop(table, use, token);
      }
      await leases.forget(leaseOf(table));
    }
  }

  private async oldVersions(): Promise<readonly { readonly table: string; readonly use: string }[]> {
    const { states } = this.needs;
    const tables = (await states.names(leaseOf(''))).map((lease) => lease.slice(leaseOf('').length));
    const old = tables.filter((table) => this.views.some((view) => isOlder(table, view.table.definition.name)));
    const uses = await states.usesOf(old.map(leaseOf));
    return old.map((table, index) => ({ table, use: uses[index]! }));
  }

  private async drop(table: string, use: string, token: number): Promise<void> {
    const { readModels, states } = this.needs;
    const lease = leaseOf(table);
    const [last] = await states.usesOf([lease]);
    if (last !== use) return;
    const [{ carriedOut }] = (await states.read([lease])) as readonly [SharedState];
    // For a process that was paused for so long: it is not to take a table without rows for a whole one.
    const emptied: FollowerState = { halt: { reason: 'rebuilding', position: START }, carriedOut };
    await states.tell(lease, emptied, token);
    try {
      await readModels.drop(table, token);
    } catch (error) {
      // Rows of whoever took over may have gone: it has to begin again.
      if (error instanceof Fenced) await states.request([lease]);
      throw error;
    }
    await readModels.drop(rebuiltNameOf(table));
    await states.forget(lease, emptied, token);
    this.needs.following.log.info('The table of an older version of a view is removed, since no process uses it any more.', { table });
  }

  private failed(error: unknown): void {
    if (!this.hasFailed) this.needs.following.log.error('The views of a service cannot be written and are tried again.', { service: this.service, error });
    this.hasFailed = true;
  }

  /** Something was read of the log, or handled by anybody. */
  private wasRead(): void {
    if (this.stopping === null) return;
    if (this.settle()) this.moved();
    this.resting ??= setTimeout(() => {
      this.resting = null;
      void this.rest();
    }, IDLE_CHECKPOINT_EVERY).unref();
  }

  /** Views that are filled serve. Answers whether that is news. */
  private settle(): boolean {
    let isNews = false;
    for (const view of this.views) if (view.halt !== null && view.settle()) isNews = true;
    return isNews;
  }

  /** What cannot be stored now is stored later. */
  private async rest(): Promise<void> {
    await Promise.allSettled(this.views.map((view) => view.rest()));
  }

  /** Whoever waits looks again. */
  private moved(): void {
    this.needs.following.gate.moved();
  }

  private until(isOver: (view: ViewRunner) => boolean, signal?: AbortSignal): Promise<void> {
    return this.needs.following.gate.until(() => signal?.aborted === true || this.views.every(isOver), { awaited: this.views });
  }

  private showFilling(head: Position): void {
    for (const { view, position, opened } of this.views) this.needs.readiness.viewFilled(view.name, portion(opened.from, position, head));
  }
}

/** Whether a table is one of an earlier version of the view, or of the fold, whose table is `name`. */
function isOlder(table: string, name: string): boolean {
  const [ours, theirs] = [name, table].map((each) => /^(.*)-v(\d+)(?:\.(\d+))?$/.exec(each));
  if (ours == null || theirs == null || ours[1] !== theirs[1]) return false;
  const [version, other] = [Number(ours[2]), Number(theirs[2])];
  return other < version || (other === version && Number(theirs[3] ?? 0) < Number(ours[3] ?? 0));
}

/** How much of the way from one position to another lies behind a third, by how positions sort: exact enough to be shown. */
function portion(from: Position, position: Position, head: Position): number {
  const number = (each: Position): number => Number.parseFloat(each.replaceAll(/\D/g, '').slice(0, 16)) || 0;
  const way = number(head) - number(from);
  return position >= head || way <= 0 ? 1 : Math.min(0.999, Math.max(0, (number(position) - number(from)) / way));
}
