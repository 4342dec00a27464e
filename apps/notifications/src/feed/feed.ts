import { Injectable } from '@nestjs/common';
import { PUBLIC_EVENT_NAMES, type PublicEventName } from '#libs/contracts/src/events';
import type { Event } from '#libs/contracts/src/feed/event';
import { ListEvents } from '#libs/contracts/src/feed/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type FeedPage } from '#libs/contracts/src/operation';
import { listText } from '#libs/contracts/src/serialiser';
import { AwaitedViews } from '#libs/event-sourcing/src/views/awaited-views';
import { START, type Position } from '#libs/event-sourcing/src/log/event-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { NotificationsSettings } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import { ReadModels, UnknownCursor, type PageRequest, type RowPage, type StoredRow, type Table, type Write } from '#libs/read-models/src/read-models';
import { eventText, feedView, orderAtEndOf, orderOf, organizationEvent, positionOf, strippedText, timeOf, type FeedRow } from './feed.view.ts';

const DAY = 24 * 60 * 60 * 1000;
const LONGEST_RANGE = 30 * DAY;
/** Rows that are looked through at once. */
const SLICE = 100;
/** How long an id stays a valid cursor after its event has left the feed. */
const CURSORS_KEPT = 30 * DAY;
/** Later than every position of the log: what retention has written, no projector writes over. */
const END_OF_LOG = '~';

/** Events of the past, for whoever sends them again. */
export interface FeedSlice {
  readonly events: readonly { readonly id: string; readonly text: string }[];
  readonly hasMore: boolean;
}

/** The events feed, as it is read and as it forgets. */
@Injectable()
export class Feed {
  private readonly rows: Table<FeedRow>;

  constructor(
    private readonly clock: Clock,
    private readonly settings: NotificationsSettings,
    private readonly views: AwaitedViews,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(feedView));
  }

  @Handles(ListEvents)
  async list(query: ListEvents): Promise<Serialised<FeedPage<Event>>> {
    const { after, before, limit, order = 'asc' } = query;
    if (after !== undefined && before !== undefined) throw refused('invalid_cursor', 'before', 'Give `after` or `before`, not both.');
    // `normal` reads downwards, and calls what follows `before`, since it is older.
    const mirrored = order === 'normal';
    const cursors = mirrored ? { after: before, before: after } : { after, before };
    const rows = await this.page(query, { ...this.bounds(query), ...cursors, where: filterOf(query), order: mirrored ? 'desc' : order, limit });
    return new Serialised(
      listText(
        rows.map(({ text }) => eventText(text)),
        undefined,
        rows.at(-1)?.id ?? null,
      ),
    );
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

  /** The events of these ids as JSON; null for one that is not, or no longer, in the feed. */
  async texts(environment: string, ids: readonly string[]): Promise<readonly (string | null)[]> {
    const rows = await this.rows.getMany(environment, ids);
    return rows.map((row) => (row === null || row.position === END_OF_LOG ? null : eventText(row.text)));
  }

  /** Whether everything up to a position of the log is here. */
  async hasReached(position: Position): Promise<boolean> {
    return (await this.rows.checkpoint()) >= position;
  }

  /**
   * Where the log stood so many milliseconds before it was at `position`, by the events of these environments alone; `position` itself where none of them has
   * an event up to there.
   */
  async positionBefore(environments: readonly string[], position: Position, milliseconds: number): Promise<Position> {
    const latest = await Promise.all(environments.map((environment) => this.latestUpTo(environment, position)));
    const times = latest.flatMap((row) => (row === null ? [] : [timeOf(row)]));
    if (times.length === 0) return position;
    const to = orderAtEndOf(Math.max(...times) - milliseconds);
    const before = await Promise.all(environments.map((environment) => this.rows.page(environment, { order: 'desc', limit: 1, to })));
    return before.reduce((last, { rows }) => rows.reduce((one, row) => (one > positionOf(row) ? one : positionOf(row)), last), START);
  }

  /** Retention in two steps: the event goes, and later its cursor. Answers how many rows it touched. */
  async sweep(environment: string, limit: number): Promise<number> {
    const beginning = this.beginning();
    const old = await this.rows.page(environment, { where: { index: 'event', values: PUBLIC_EVENT_NAMES }, order: 'asc', limit, to: orderOf(beginning) });
    await this.rows.write(old.rows.map((row): Write => ({ environment, id: row.id, position: END_OF_LOG, revision: 0, text: strippedText(row.text) })));
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

  /** Rows are removed in rounds; what is older is not shown in between. */
  private beginning(): number {
    return this.clock.now() - this.settings.EVENTS_RETENTION;
  }

  /** A range stays a bound beside a cursor, since clients that page by themselves send both from the second page on. */
  private bounds({ range_start, range_end }: ListEvents): Pick<PageRequest, 'from' | 'to'> {
    const start = range_start === undefined ? null : Date.parse(range_start);
    const end = range_end === undefined ? null : Date.parse(range_end);
    if (start !== null && end !== null && end < start) throw refused('out_of_range', 'range_end', 'range_end must not lie before range_start.');
    if (start !== null && end !== null && end - start > LONGEST_RANGE) throw new DomainError('invalid', 'bad_request', 'A range has at most 30 days.');
    return { from: orderOf(Math.max(start ?? 0, this.beginning())), ...(end !== null && { to: orderAtEndOf(Math.max(end, 0)) }) };
  }

  /** As the log stood when it was asked for, or a second later: whoever wrote before finds it here. Who reads on from an event, and has more to read than a page, waits for nobody. */
  private async page(query: ListEvents, request: PageRequest): Promise<RowPage['rows']> {
    if (query.after !== undefined && request.order === 'asc') {
      const rows = await this.look(query, request);
      if (rows?.length === request.limit) return rows;
    }
    await this.views.upToDate(this.rows.definition.name);
    const rows = await this.look(query, request);
    if (rows !== null) return rows;
    const field = query.after === undefined ? 'before' : 'after';
    throw refused('invalid_cursor', field, `'${query[field]}' is not an event of this feed.`);
  }

  /** Null: there is no such cursor, or not yet. */
  private async look({ context }: ListEvents, request: PageRequest): Promise<RowPage['rows'] | null> {
    try {
      return (await this.rows.page(context.environment, request)).rows;
    } catch (error) {
      if (error instanceof UnknownCursor) return null;
      throw error;
    }
  }
}

function filterOf({ events, organization_id }: ListEvents): PageRequest['where'] {
  if (organization_id === undefined) return events === undefined ? undefined : { index: 'event', values: events };
  if (events === undefined) return { index: 'organization', values: [organization_id] };
  return { index: 'organization_event', values: events.map((event) => organizationEvent(organization_id, event)) };
}

function refused(code: string, field: string, message: string): DomainError {
  return new DomainError('invalid', 'invalid_request_parameters', message, { errors: [{ code, field, message }] });
}
