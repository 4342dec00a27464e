import { PUBLIC_EVENT_NAMES, type PublicEventName } from '../events.ts';
import { Integer, ListOf, OneOf, Optional, Ref, Text } from '../fields.ts';
import { feedOf, Operation, Query, type FeedPage } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { Event } from './event.ts';

@Operation({
  get: '/events',
  owner: 'notifications',
  summary: 'Read the events feed',
  description:
    'Events in the order in which they were recorded, for 90 days. Keep `list_metadata.after` and ask again with it: nothing is skipped, however late it was recorded. `asc` is the default here, but the clients for .NET, Ruby and PHP send `desc` unless they are told. On an empty page it is null: keep the one you have. A cursor stays valid for 30 days after its event has left the feed.',
  answers: feedOf(Event),
  refuses: ['bad_request'],
})
export class ListEvents extends Query<FeedPage<Event>> {
  @Optional()
  @ListOf({ oneOf: PUBLIC_EVENT_NAMES }, { doc: 'Only events of these names.', maxItems: PUBLIC_EVENT_NAMES.length, example: ['organization.created'] })
  events?: readonly PublicEventName[];
  @Optional() @Ref(() => Organization, { doc: 'Only events that belong to this organization.' }) organization_id?: string;
  @Optional()
  @Text({
    doc: 'Begin with the first event of this time, or with `after` where that is later; a day alone is its first instant in UTC.',
    format: 'date-or-time',
    example: '2026-01-15T12:00:00.000Z',
  })
  range_start?: string;
  @Optional()
  @Text({ doc: 'End with the last event of this time, at most 30 days after `range_start`.', format: 'date-or-time', example: '2026-01-16T12:00:00.000Z' })
  range_end?: string;
  @Optional() @Integer({ doc: 'How many events a page has.', minimum: 1, maximum: 100, default: 10 }) limit!: number;
  @Optional() @OneOf(['asc', 'desc', 'normal'], { doc: 'In the order of recording; `normal` is descending with mirrored cursors.' }) order?:
    'asc' | 'desc' | 'normal';
  @Optional() @Text({ doc: 'The events that follow this one in the requested order.', max: 128 }) after?: string;
  @Optional() @Text({ doc: 'The events that precede this one in the requested order.', max: 128 }) before?: string;
}
