import { setTimeout as pause } from 'node:timers/promises';
import type { Part } from '#libs/platform/src/lifecycle';
import type { Metrics } from '#libs/platform/src/metrics';
import type { Readiness } from '#libs/platform/src/readiness';
import type { Leases } from '#libs/read-models/src/leases';
import { Fenced } from '#libs/read-models/src/read-models';
import type { FollowerState, SharedState, Standing } from '../following/follower-states.ts';
import { START, type NewEvent, type Position } from '../log/event-store.ts';
import { LogReading } from './log-reading.ts';
import { leaseOf, ProjectedView, type ProjectedViewNeeds } from './projected-view.ts';
import { rebuiltNameOf } from './rebuild.ts';
import { KNOWN_WITHIN } from './stopped-views.ts';
import { recordSkip } from './view-skips.ts';
import type { View } from './view.ts';

/** How often the shared rows are looked at. */
const LOOK = KNOWN_WITHIN / 2;
/** After a view was marked, before its rows go: by then every process refuses to read them, and what was being read is answered. */
const KNOWN_EVERYWHERE = KNOWN_WITHIN + 500;
/** How often the checkpoints of views that others bring along are read, while somebody waits for them. */
const POLL = 25;
/** How often a process says which tables it uses, and looks whether older ones are still used. */
const USE = 60_000;
/** A table of an older version goes when so many looks in a row found it unused: what keeps processes from saying so keeps this one from looking. */
const UNUSED_LOOKS = 10;

export interface ProjectorNeeds extends ProjectedViewNeeds {
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
      help: 'Age of the oldest event that the views which this process brings along have not seen; 0 when they have seen all.',
      labels: ['service'],
      collect: async (gauge) => {
        for (const projector of this.projectors) gauge.set({ service: projector.service }, await projector.lag());
      },
    });
    metrics.gauge({
      name: 'view_stopped',
      help: '1 while a view stands still: before an event that it cannot fold, or beyond the end of the log. Told by the process that would bring it along.',
      labels: ['view'],
      collect: (gauge) => {
        gauge.reset();
        for (const projector of this.projectors)
          for (const { view, standing } of projector.held()) gauge.set({ view: view.name }, standing !== null && standing.reason !== 'rebuilding' ? 1 : 0);
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
  /** What it has seen last; where it stands still, the event that it stands before. */
  readonly position: Position;
  readonly isStopped: boolean;
  readonly reason: Standing['reason'] | null;
}

interface Waiter {
  readonly views: readonly ProjectedView[];
  readonly isOver: (view: ProjectedView) => boolean;
  readonly resolve: () => void;
}

/**
 * Keeps the views of a process filled, together with its replicas: each view is brought along by whoever holds its lease, the others follow what is stored of
 * it. A holder goes on from the stored checkpoint, and stands before an event rather than skip it.
 */
export class Projector implements Part {
  readonly stage = 'views';
  readonly name: string;
  private readonly views: readonly ProjectedView[];
  private readings: LogReading[] = [];
  private stopping: AbortController | null = null;
  private running: Promise<unknown> = Promise.resolve();
  private readonly waiting = new Set<Waiter>();
  private polling: Promise<void> | null = null;
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
    this.views = views.map((view) => new ProjectedView(view as unknown as View<unknown>, needs));
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
    const head = await events.head();
    if (head === START) for (const view of this.views) view.beginWithLog();
    const showing = setInterval(() => this.showFilling(head), POLL);
    try {
      await this.until((view) => view.isFilledTo(head), { signal });
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
    await this.running;
    await Promise.all(this.readings.map((reading) => reading.end()));
    this.readings = [];
    for (const view of this.held()) {
      await view.rest().catch(() => {});
      view.lose();
      await this.needs.leases.release(view.lease);
    }
    this.stopping = null;
  }

  /** Resolves once every view that does not stand still has seen the log up to `position`, here or elsewhere; or when `signal` aborts. */
  caughtUpWith(position: Position, signal?: AbortSignal): Promise<void> {
    return this.until((view) => view.hasSeen(position), { signal });
  }

  /** The same for the views of these names. At once where nothing is brought along, as while a command of the operator is carried out. */
  async shows(names: ReadonlySet<string>, position: Position, signal: AbortSignal): Promise<void> {
    if (this.stopping === null) return;
    const views = this.views.filter(({ view }) => names.has(view.name));
    await this.until((view) => view.hasSeen(position), { views, signal });
  }

  /** The views that this process brings along. */
  held(): readonly ProjectedView[] {
    return this.views.filter(({ isHeld }) => isHeld);
  }

  /** Whether each view waits for a process of a later release. */
  leavings(): readonly { readonly view: string; readonly isLeft: boolean }[] {
    return this.views.map(({ view, awaitsLaterRelease }) => ({ view: view.name, isLeft: awaitsLaterRelease }));
  }

  async status(): Promise<readonly ViewStatus[]> {
    await this.lookEverywhere();
    return this.views.map(({ view, table, position, standing }) => ({
      view: view.name,
      table: table.definition.name,
      position: standing === null || standing.reason === 'rebuilding' ? position : standing.position,
      isStopped: standing !== null,
      reason: standing?.reason ?? null,
    }));
  }

  /** In seconds. */
  async lag(): Promise<number> {
    if (this.readings.length === 0) return 0;
    const head = await this.needs.events.head();
    const behind = this.readings.filter(({ position, lastAt }) => position < head && lastAt > 0).map(({ lastAt }) => lastAt);
    return behind.length === 0 ? 0 : Math.max(0, this.needs.clock.now() - Math.min(...behind)) / 1_000;
  }

  /**
   * Leaves out the event before which a view stands still, for ever and in every rebuild; resolves when the view has gone on. The decision and its reason are
   * recorded in the log, where whoever holds the view finds it.
   * @throws Error when the view does not stand before that position
   */
  async skip(viewName: string, position: Position, reason: string, record: (type: string) => NewEvent): Promise<void> {
    await this.look();
    const view = this.views.find((each) => each.view.name === viewName);
    const standsThere = (): boolean => view?.standing?.reason === 'unfoldable' && view.standing.position === position;
    if (view === undefined || !standsThere()) throw new Error(`${viewName} does not stand still before position ${position}.`);
    await recordSkip(this.needs.events, { view: viewName, position, reason }, record);
    this.hurry();
    await this.until((each) => each !== view || !standsThere());
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
    await this.until(({ mended, left }) => left !== null || mended >= request);
    const left = this.views.find((view) => view.left !== null);
    if (left !== undefined) throw new Error(`${left.view.name} cannot be filled by this release. ${left.left!.message}`);
  }

  private async renew(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.needs.leases.round(signal);
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
        const token = await this.needs.leases.ask(view.lease, view.outdated);
        if (this.stopping?.signal.aborted !== false) return;
        // It was left while this was asked.
        if (view.left !== null) await this.needs.leases.release(view.lease);
        else if (token === null) {
          if (view.isHeld) this.lose(view);
        } else if (view.take(token)) this.hurry();
      }),
    );
  }

  private lose(view: ProjectedView): void {
    this.needs.log.warn('Another process may bring a view along since; this one goes on when it gets the lease again.', { view: view.view.name });
    view.lose();
    this.hurry();
  }

  /** Everything but the leases, one thing after the other. */
  private async work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.isHurried = false;
      try {
        await this.needs.stopped.freshen();
        await this.mend(signal);
        await this.openTaken();
        await this.tendReadings();
        await Promise.all(this.held().map((view) => view.tell()));
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
    await Promise.all(this.views.filter(({ awaitsLaterRelease }) => awaitsLaterRelease).map((view) => view.lookAtCheckpoint()));
  }

  private async lookEverywhere(): Promise<void> {
    await this.needs.stopped.freshen();
    await Promise.all(this.views.filter(({ isHeld }) => !isHeld).map((view) => view.lookAtCheckpoint()));
  }

  /** Empties the views that are to be filled anew; they are then opened like any other. */
  private async mend(signal: AbortSignal): Promise<void> {
    const views = this.views.filter(({ isToBeMended }) => isToBeMended);
    if (views.length === 0) return;
    try {
      for (const view of views) view.beginMending();
      await Promise.all(views.map((view) => view.tell()));
      await pause(KNOWN_EVERYWHERE, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await this.askForLeases();
      for (const view of views) if (view.phase === 'clearing') await this.orLost(view, () => view.clear());
    } finally {
      for (const view of views) view.mendingFinished();
    }
  }

  private async openTaken(): Promise<void> {
    for (const view of this.views) if (await view.isPassable()) view.phase = 'taken';
    const taken = this.views.filter(({ phase }) => phase === 'taken');
    await Promise.all(taken.map((view) => this.orLost(view, () => view.open())));
    // They may be far behind: those that are not do not wait for them.
    const opened = taken.filter(({ isFollowing }) => isFollowing);
    if (opened.length > 0) this.read(opened);
  }

  private async orLost(view: ProjectedView, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Fenced)) throw error;
      this.lose(view);
    }
  }

  private read(views: readonly ProjectedView[]): void {
    this.readings.push(
      new LogReading(views, {
        events: this.needs.events,
        onMoved: () => this.moved(),
        onFenced: (view) => this.lose(view),
        onFailure: (error) => this.failed(error),
      }),
    );
  }

  /** What hangs or broke begins anew from what is stored; those that have come to the same place go on together, so that the log is read once. */
  private async tendReadings(): Promise<void> {
    const head = this.readings.length === 0 ? START : await this.needs.events.head();
    for (const reading of this.readings) {
      if (!reading.hasEnded && !reading.isLost(head)) continue;
      for (const view of reading.views) view.reopen();
      void reading.end();
    }
    this.readings = this.readings.filter((reading) => !reading.hasEnded && reading.views.length > 0);
    if (this.readings.length < 2 || !this.readings.every(({ isAtLiveEnd }) => isAtLiveEnd)) return;
    const views = this.readings.flatMap((reading) => reading.views);
    await Promise.all(this.readings.map((reading) => reading.end()));
    this.readings = [];
    this.read(views.filter(({ isFollowing }) => isFollowing));
  }

  /**
   * Of views that nobody uses any more. Processes of older releases go on with theirs, also while an election or a slow store has cost them the lease; those of
   * releases that say nothing of their use are known by the lease alone.
   */
  private async dropOldVersions(): Promise<void> {
    const { states, leases, useEvery = USE } = this.needs;
    const now = performance.now();
    if (now - this.lookedForUseAt < useEvery || !this.views.every(({ phase }) => phase === 'following' || phase === 'elsewhere')) return;
    this.lookedForUseAt = now;
    const tables = (await states.names(leaseOf(''))).map((lease) => lease.slice(leaseOf('').length));
    const old = tables.filter((table) => this.views.some((view) => isOlder(table, view.table.definition.name)));
    const uses = await states.usesOf(old.map(leaseOf));
    const before = this.unused;
    const unused = new Map(old.map((table, index) => [table, { use: uses[index]!, looks: 0 }]));
    this.unused = unused;
    for (const [table, { use }] of [...unused]) {
      const known = before.get(table);
      if (known?.use !== use) continue;
      const token = await leases.ask(leaseOf(table));
      if (token !== null) {
        const looks = known.looks + 1;
        unused.set(table, { use, looks });
        if (looks >= UNUSED_LOOKS) await this.drop(table, use, token);
      }
      await leases.leave(leaseOf(table));
    }
  }

  private async drop(table: string, use: string, token: number): Promise<void> {
    const { readModels, states, log } = this.needs;
    const lease = leaseOf(table);
    const [last] = await states.usesOf([lease]);
    if (last !== use) return;
    const [{ mended }] = (await states.read([lease])) as readonly [SharedState];
    // For a process that was paused for so long: it is not to take a table without rows for a whole one.
    const emptied: FollowerState = { standing: { reason: 'rebuilding', position: START }, mended };
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
    log.info('The table of an older version of a view is removed, since no process uses it any more.', { table });
  }

  private failed(error: unknown): void {
    if (!this.hasFailed) this.needs.log.error('The views of a service cannot be written and are tried again.', { service: this.service, error });
    this.hasFailed = true;
  }

  private moved(): void {
    for (const waiter of this.waiting) {
      if (!waiter.views.every(waiter.isOver)) continue;
      this.waiting.delete(waiter);
      waiter.resolve();
    }
  }

  private until(
    isOver: (view: ProjectedView) => boolean,
    { views = this.views, signal }: { readonly views?: readonly ProjectedView[]; readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    if (views.every(isOver)) return Promise.resolve();
    return new Promise((resolve) => {
      const waiter: Waiter = { views, isOver, resolve };
      this.waiting.add(waiter);
      signal?.addEventListener(
        'abort',
        () => {
          this.waiting.delete(waiter);
          resolve();
        },
        { once: true },
      );
      this.polling ??= this.poll().finally(() => (this.polling = null));
    });
  }

  /** While somebody waits: nobody tells this process how far others are. */
  private async poll(): Promise<void> {
    for (; this.waiting.size > 0; await pause(POLL, undefined, { ref: false })) {
      const wanted = new Set([...this.waiting].flatMap(({ views }) => views));
      const elsewhere = [...wanted].filter(({ isHeld }) => !isHeld);
      await Promise.all(elsewhere.map((view) => view.lookAtCheckpoint())).catch((error: unknown) => this.failed(error));
      this.moved();
    }
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
