import type { Clock } from '#libs/platform/src/clock';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import type { Part } from '#libs/platform/src/runtime/lifecycle';
import type { Readiness } from '#libs/platform/src/runtime/readiness';
import { setTimeout as pause } from 'node:timers/promises';
import type { ReadModels } from '#libs/read-models/src/read-models';
import { START, type EventStore, type NewEvent, type Position, type RecordedEvent } from './event-store.ts';
import { streamName } from './naming.ts';
import type { StoppedViews } from './stopped-views.ts';
import { Unfoldable, ViewFold } from './view-fold.ts';
import { tableOf, type View } from './view.ts';

/** A checkpoint that only passes over events of others is stored this often: losing one costs reading a little again. */
const IDLE_CHECKPOINT_EVERY = 200;
/** After an engine failed, before the log is followed again. */
const RETRY = 1_000;

export interface ProjectorNeeds {
  readonly events: EventStore;
  /** Unguarded: a view that stands still has to be read to go on. */
  readonly readModels: ReadModels;
  readonly stopped: StoppedViews;
  readonly readiness: Readiness;
  readonly metrics: ProjectorMetrics;
  readonly clock: Clock;
  readonly log: Log;
}

/** The numbers of all projectors of a process. */
export class ProjectorMetrics {
  private readonly projectors: Projector[] = [];

  constructor(metrics: Metrics) {
    metrics.gauge({
      name: 'projector_lag_seconds',
      help: 'Age of the oldest event that the views of a service have not seen; 0 when they have seen all.',
      labels: ['service'],
      collect: async (gauge) => {
        for (const projector of this.projectors) gauge.set({ service: projector.service }, await projector.lag());
      },
    });
    metrics.gauge({
      name: 'view_stopped',
      help: '1 while a view stands still before an event that it cannot fold.',
      labels: ['view'],
      collect: (gauge) => {
        for (const projector of this.projectors) for (const { view, isStopped } of projector.status()) gauge.set({ view }, isStopped ? 1 : 0);
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
}

/** One view on its way along the log. */
interface Follower {
  readonly fold: ViewFold<unknown>;
  readonly table: string;
  position: Position;
  storedAt: number;
  stoppedAt: Unfoldable | null;
}

/** Keeps the views of one service filled: follows the log, resumes from the stored checkpoints, and stands before an event rather than skip it. */
export class Projector implements Part {
  readonly stage = 'views';
  readonly name: string;
  private followers: Follower[] = [];
  private stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();
  /** Up to here every view that is not stopped has seen the log. */
  private position: Position = START;
  /** When the last event that was folded was recorded. */
  private lastAt = 0;
  private readonly waiting = new Set<{ readonly position: Position; readonly resolve: () => void }>();

  constructor(
    readonly service: string,
    private readonly views: readonly View<never>[],
    private readonly needs: ProjectorNeeds,
  ) {
    this.name = `projector ${service}`;
    needs.metrics.add(this);
  }

  /** Resolves when the views have caught up with the log as it was at the call. */
  async start(): Promise<void> {
    const { events, readModels } = this.needs;
    this.followers = await Promise.all(this.views.map((view) => this.follower(view as unknown as View<unknown>)));
    const head = await events.head();
    this.follow();
    await this.caughtUpWith(head);
    for (const { table, stoppedAt } of this.followers) if (stoppedAt === null) this.needs.stopped.resume(table);
    for (const view of this.views) await readModels.dropOthers(`${view.name}-v`, [tableOf(view).name]);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** Resolves once every view that is not stopped has seen the log up to `position`. */
  caughtUpWith(position: Position): Promise<void> {
    if (position <= this.position) return Promise.resolve();
    return new Promise((resolve) => this.waiting.add({ position, resolve }));
  }

  status(): readonly ViewStatus[] {
    return this.followers.map(({ fold, table, position, stoppedAt }) => ({
      view: fold.view.name,
      table,
      position: stoppedAt?.event.position ?? position,
      isStopped: stoppedAt !== null,
    }));
  }

  /** In seconds. */
  async lag(): Promise<number> {
    const { events, clock } = this.needs;
    return this.lastAt === 0 || this.position >= (await events.head()) ? 0 : Math.max(0, clock.now() - this.lastAt) / 1_000;
  }

  /**
   * Leaves out the event before which a view stands still, for ever and in every rebuild, and goes on. The decision and its reason are recorded in the log.
   * @throws Error when the view does not stand before that position
   */
  async skip(viewName: string, position: Position, reason: string, record: (type: string) => NewEvent): Promise<void> {
    const follower = this.followers.find(({ fold }) => fold.view.name === viewName);
    if (follower?.stoppedAt?.event.position !== position) throw new Error(`${viewName} does not stand still before position ${position}.`);
    const stream = skipStream(viewName);
    const past = await this.needs.events.read(stream);
    await this.needs.events.append(stream, past.length, [{ ...record('view.event_skipped'), data: { view: viewName, position, reason } }]);
    await this.restart();
  }

  /** Forgets all rows and fills the views anew from the whole log; queries that need them are refused meanwhile. */
  async refill(): Promise<void> {
    await this.stop();
    for (const view of this.views) this.needs.stopped.stop(tableOf(view).name);
    for (const view of this.views) await this.needs.readModels.table(tableOf(view)).clear();
    this.position = START;
    this.stopping = new AbortController();
    await this.start();
  }

  private async restart(): Promise<void> {
    await this.stop();
    this.stopping = new AbortController();
    this.position = START;
    await this.start();
  }

  private async follower(view: View<unknown>): Promise<Follower> {
    const table = this.needs.readModels.table(tableOf(view));
    const { name } = table.definition;
    return {
      fold: new ViewFold(view, table, await skippedOf(this.needs.events, view.name)),
      table: name,
      position: await table.checkpoint(),
      storedAt: 0,
      stoppedAt: null,
    };
  }

  private follow(): void {
    const { signal } = this.stopping;
    const { log } = this.needs;
    this.running = (async () => {
      while (!signal.aborted) {
        try {
          await this.followUntil(signal);
        } catch (error) {
          // Rows and checkpoints are stored together, so what was not stored comes again.
          log.error('The views of a service cannot be written and are tried again.', { service: this.service, error });
          await pause(RETRY, undefined, { signal }).catch(() => {});
          for (const follower of this.followers) follower.position = await follower.fold.table.checkpoint().catch(() => START);
        }
      }
    })();
  }

  private async followUntil(signal: AbortSignal): Promise<void> {
    const { events } = this.needs;
    const first = this.followers.filter(({ stoppedAt }) => stoppedAt === null).map(({ position }) => position);
    const from = first.length === 0 ? await events.head() : first.reduce((low, position) => (position < low ? position : low));
    this.reached(from, 0);
    const head = await events.head();
    const fraction = portion(from, head);
    for await (const batch of events.subscribe(from, signal)) {
      await Promise.all(this.followers.map((follower) => this.advance(follower, batch)));
      const last = batch.at(-1);
      if (last !== undefined) {
        this.reached(last.position, last.meta.at);
        if (last.position < head) this.showFilling(fraction(last.position));
        else this.showFilling(1);
      }
    }
  }

  private async advance(follower: Follower, batch: readonly RecordedEvent[]): Promise<void> {
    if (follower.stoppedAt !== null) return;
    const { fold } = follower;
    const last = batch.at(-1);
    if (last === undefined || last.position <= follower.position) return;
    // Views of one service may have stopped at different places.
    const news = batch[0]!.position > follower.position ? batch : batch.filter(({ position }) => position > follower.position);
    const now = this.needs.clock.now();
    const concerned = news.some((event) => fold.concerns(event));
    try {
      if (concerned) await fold.apply(news);
      else if (now - follower.storedAt >= IDLE_CHECKPOINT_EVERY) await fold.table.write([], last.position);
      else return;
      follower.storedAt = now;
    } catch (error) {
      if (!(error instanceof Unfoldable)) throw error;
      follower.stoppedAt = error;
      this.needs.stopped.stop(follower.table);
      const { view, event } = error;
      this.needs.log.error('A view stands still before an event that it cannot fold; queries that need it answer 503.', {
        view,
        type: event.type,
        position: event.position,
        error,
      });
    } finally {
      follower.position = last.position;
    }
  }

  private reached(position: Position, at: number): void {
    if (position > this.position) this.position = position;
    if (at > 0) this.lastAt = at;
    for (const waiter of this.waiting) {
      if (waiter.position > this.position) continue;
      this.waiting.delete(waiter);
      waiter.resolve();
    }
  }

  private showFilling(done: number): void {
    for (const { fold, stoppedAt } of this.followers) if (stoppedAt === null) this.needs.readiness.viewFilled(fold.view.name, done);
  }
}

/** The positions that an operator decided to leave out of a view. */
export async function skippedOf(events: EventStore, view: string): Promise<ReadonlySet<Position>> {
  const skips = await events.read(skipStream(view));
  return new Set(skips.map(({ data }) => (data as { readonly position: Position }).position));
}

/** Where these decisions are recorded. */
function skipStream(view: string): string {
  return streamName('view', 'system', view);
}

/** How much of the way to `head` lies behind a position, by how positions sort: exact enough to be shown. */
function portion(from: Position, head: Position): (position: Position) => number {
  const number = (position: Position): number => Number.parseFloat(position.replaceAll(/\D/g, '').slice(0, 16)) || 0;
  const start = number(from);
  const way = number(head) - start;
  return (position) => (way <= 0 ? 1 : Math.min(0.999, Math.max(0, (number(position) - start) / way)));
}
