import { Injectable } from '@nestjs/common';
import { PUBLIC_EVENT_NAMES, type PublicEventName } from '#libs/contracts/src/events';
import { START, type Position } from '#libs/event-sourcing/src/log/event-store';
import type { Holder } from '#libs/event-sourcing/src/sealing/holders';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { NotificationsSettings } from '#libs/platform/src/config/settings';
import { LAST, ReadModels, type StoredRow, type Table, type Write } from '#libs/read-models/src/read-models';
import { CURSORS_KEPT, eventText, feedView, holdersIn, orderAtEndOf, orderOf, positionOf, strippedText, timeOf, type FeedRow } from '../views/feed.view.ts';

/** Rows that are looked through at once. */
const SLICE = 100;

/** Events of the past, for whoever sends them again. */
export interface FeedSlice {
  readonly events: readonly { readonly id: string; readonly text: string }[];
  readonly hasMore: boolean;
}

/** One of them. */
interface FeedText {
  readonly body: string;
  readonly holders: readonly Holder[];
}

/** The rows of the events feed: for its pages, for whoever sends events again, and as it forgets. */
@Injectable()
export class FeedReader {
  readonly rows: Table<FeedRow>;

  constructor(
    private readonly clock: Clock,
    private readonly settings: NotificationsSettings,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(feedView));
  }

  /** Rows are removed in rounds; what is older is not shown in between. */
  beginning(): number {
    return this.clock.now() - this.settings.EVENTS_RETENTION;
  }

  /** Events of these names from `since` on that were recorded by `until`, or those that follow an event. */
  async since(
    environment: string,
    { since, until, names, after, limit }: { since: number; until: number; names: readonly PublicEventName[]; after?: string; limit: number },
  ): Promise<FeedSlice> {
    const { rows, hasAfter } = await this.rows.page(environment, {
      where: { index: 'event', values: names },
      order: 'asc',
      limit,
      after,
      from: orderOf(Math.max(since, this.beginning())),
      to: orderAtEndOf(until),
    });
    return { events: rows.map(({ id, text }) => ({ id, text: eventText(text) })), hasMore: hasAfter };
  }

  /** The events of these ids as JSON, and whose the personal fields in them are; null for one that is not, or no longer, in the feed. */
  async texts(environment: string, ids: readonly string[]): Promise<readonly (FeedText | null)[]> {
    const rows = await this.rows.getMany(environment, ids);
    return rows.map((row) => (row === null || row.position === LAST ? null : { body: eventText(row.text), holders: holdersIn(row.text) }));
  }

  /** Whether everything up to a position of the log is here. */
  async hasReached(position: Position): Promise<boolean> {
    return (await this.rows.checkpoint()) >= position;
  }

  /**
   * Where the log stood so many milliseconds before it was at `position`, by the events of these environments alone; `position` itself where none of them has
   * an event up to there. Never where it stood before `notBefore` (milliseconds since the epoch).
   */
  async positionBefore(environments: readonly string[], position: Position, milliseconds: number, notBefore: number): Promise<Position> {
    const latest = await Promise.all(environments.map((environment) => this.latestUpTo(environment, position)));
    const times = latest.flatMap((row) => (row === null ? [] : [timeOf(row)]));
    if (times.length === 0) return position;
    const last = Math.max(...times);
    const to = orderAtEndOf(Math.min(last, Math.max(last - milliseconds, notBefore)));
    const before = await Promise.all(environments.map((environment) => this.rows.page(environment, { order: 'desc', limit: 1, to })));
    const found = before.flatMap(({ rows }) => rows.map(positionOf)).reduce((one, other) => (one > other ? one : other), START);
    // Several may be of one millisecond.
    return found < position ? found : position;
  }

  /** Retention in two steps: the event goes, and later its cursor. Answers how many rows it touched. */
  async sweep(environment: string, limit: number): Promise<number> {
    const beginning = this.beginning();
    const old = await this.rows.page(environment, { where: { index: 'event', values: PUBLIC_EVENT_NAMES }, order: 'asc', limit, to: orderOf(beginning) });
    // What retention has written, no projector writes over.
    await this.rows.write(old.rows.map((row): Write => ({ environment, id: row.id, position: LAST, revision: 0, text: strippedText(row.text) })));
    const forgotten = await this.rows.page(environment, { order: 'asc', limit, to: orderOf(beginning - CURSORS_KEPT) });
    await this.rows.purge(
      environment,
      forgotten.rows.map(({ id }) => id),
    );
    return old.rows.length + forgotten.rows.length;
  }

  private async latestUpTo(environment: string, position: Position): Promise<StoredRow | null> {
    for (let after: string | undefined; ;) {
      const { rows, hasAfter } = await this.rows.page(environment, { order: 'desc', limit: SLICE, after });
      const found = rows.find((row) => positionOf(row) <= position);
      if (found !== undefined) return found;
      if (!hasAfter) return null;
      after = rows.at(-1)!.id;
    }
  }
}
