import { Fenced } from '#libs/read-models/src/read-models';
import { Progress } from '../following/progress.ts';
import { type EventStore, type Position, PositionOfAnotherLog, type RecordedEvent } from '../log/event-store.ts';
import type { ProjectedView } from './projected-view.ts';

interface Needs {
  readonly events: EventStore;
  readonly onMoved: () => void;
  /** Another brings the view along since. */
  readonly onFenced: (view: ProjectedView) => void;
  readonly onFailure: (error: unknown) => void;
}

/** One reading of the log for several views, from the place of the one that is furthest behind. */
export class LogReading {
  /** When the last event was recorded. */
  lastAt = 0;
  hasEnded = false;
  private readonly openings: ReadonlyMap<ProjectedView, number>;
  private readonly ending = new AbortController();
  private readonly running: Promise<void>;
  private readonly progress: Progress;

  constructor(
    views: readonly ProjectedView[],
    private readonly needs: Needs,
  ) {
    this.openings = new Map(views.map((view) => [view, view.openings]));
    this.progress = new Progress(views.map(({ position }) => position).reduce((low, position) => (position < low ? position : low)));
    this.running = this.read();
  }

  /** Up to here all its views have seen the log. */
  get position(): Position {
    return this.progress.position;
  }

  /** Those that it still brings along. */
  get views(): readonly ProjectedView[] {
    return [...this.openings].filter(([view, opening]) => view.isFollowing && view.openings === opening).map(([view]) => view);
  }

  get isAtLiveEnd(): boolean {
    return this.views.every(({ position, opened }) => position >= opened.end);
  }

  /** Whether it is to be given up. */
  isLost(head: Position): boolean {
    return this.progress.isLost(head);
  }

  /** What is being folded is finished first. */
  async end(): Promise<void> {
    this.ending.abort();
    await this.running;
  }

  private async read(): Promise<void> {
    const { signal } = this.ending;
    try {
      for await (const batch of this.needs.events.subscribe(this.position, signal)) {
        if (signal.aborted) break;
        this.progress.begin();
        await this.fold(batch);
        this.progress.reach(batch.at(-1)?.position ?? this.position);
        this.lastAt = batch.at(-1)?.meta.at ?? this.lastAt;
        this.needs.onMoved();
        if (this.views.length === 0) break;
      }
    } catch (error) {
      // Whoever is further learns by its own position.
      if (error instanceof PositionOfAnotherLog) for (const view of this.views) view.standOutside(this.position);
      else this.needs.onFailure(error);
    } finally {
      this.hasEnded = true;
    }
  }

  /** A view that was fenced, or stands still, keeps no other from going on. */
  private async fold(batch: readonly RecordedEvent[]): Promise<void> {
    const views = [...this.openings];
    const results = await Promise.allSettled(views.map(([view, opening]) => view.advance(batch, opening)));
    for (const [index, result] of results.entries()) {
      if (result.status === 'fulfilled') continue;
      if (!(result.reason instanceof Fenced)) throw result.reason;
      this.needs.onFenced(views[index]![0]);
    }
  }
}
