import { Injectable } from '@nestjs/common';
import type { Event } from '#libs/contracts/src/feed/event';
import { ListEvents } from '#libs/contracts/src/feed/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type FeedPage } from '#libs/contracts/src/operation';
import { listText } from '#libs/contracts/src/serialiser';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { DomainError, invalidField } from '#libs/platform/src/domain-error';
import { UnknownCursor, type PageRequest, type RowPage } from '#libs/read-models/src/read-models';
import { FeedReader } from '../readers/feed-reader.ts';
import { eventText, orderAtEndOf, orderOf, organizationEvent } from '../views/feed.view.ts';

const LONGEST_RANGE = 30 * 24 * 60 * 60 * 1000;
/** The events feed, as callers read it. */
@Injectable()
export class Feed {
  constructor(
    private readonly reader: FeedReader,
    private readonly views: ReadYourWrites,
  ) {}

  @Handles(ListEvents)
  async list(query: ListEvents): Promise<Serialised<FeedPage<Event>>> {
    const { after, before, limit, order = 'asc' } = query;
    if (after !== undefined && before !== undefined) throw invalidField('invalid_cursor', 'before', 'Give `after` or `before`, not both.');
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

  /** A range stays a bound beside a cursor, since clients that page by themselves send both from the second page on. */
  private bounds({ range_start, range_end }: ListEvents): Pick<PageRequest, 'from' | 'to'> {
    const start = range_start === undefined ? null : Date.parse(range_start);
    const end = range_end === undefined ? null : Date.parse(range_end);
    if (start !== null && end !== null && end < start) throw invalidField('out_of_range', 'range_end', 'range_end must not lie before range_start.');
    if (start !== null && end !== null && end - start > LONGEST_RANGE) throw new DomainError('invalid', 'bad_request', 'A range has at most 30 days.');
    return { from: orderOf(Math.max(start ?? 0, this.reader.beginning())), ...(end !== null && { to: orderAtEndOf(Math.max(end, 0)) }) };
  }

  /** As the log stood when it was asked for, or a second later: whoever wrote before finds it here. Who reads on from an event, and has more to read than a page, waits for nobody. */
  private async page(query: ListEvents, request: PageRequest): Promise<RowPage['rows']> {
    if (query.after !== undefined && request.order === 'asc') {
      const rows = await this.look(query, request);
      if (rows?.length === request.limit) return rows;
    }
    await this.views.waitBrieflyForHead(this.reader.rows.definition.name);
    const rows = await this.look(query, request);
    if (rows !== null) return rows;
    const field = query.after === undefined ? 'before' : 'after';
    throw invalidField('invalid_cursor', field, `'${query[field]}' is not an event of this feed.`);
  }

  /** Null: there is no such cursor, or not yet. */
  private async look({ context }: ListEvents, request: PageRequest): Promise<RowPage['rows'] | null> {
    try {
      return (await this.reader.rows.page(context.environment, request)).rows;
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
