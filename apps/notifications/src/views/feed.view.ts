import { PUBLIC_EVENT_NAMES, type PublicEventName } from '#libs/contracts/src/events';
import { personalIn, publicEventsOf, publicEventText } from '#libs/event-sourcing/src/following/public-events';
import type { Position, RecordedEvent, SealedPart } from '#libs/event-sourcing/src/log/event-store';
import type { Holder } from '#libs/event-sourcing/src/sealing/holders';
import type { View } from '#libs/event-sourcing/src/views/view';
import type { Index, StoredRow, Table } from '#libs/read-models/src/read-models';

/** An entry of the feed. Once retention took its event, it is there for its cursor alone. */
export interface FeedRow {
  readonly order: string;
  readonly organization: string | null;
  /** Whose the personal fields of the event are, as paths in it. Absent: it has none. */
  readonly personal?: readonly SealedPart[];
  readonly event: { readonly event: PublicEventName } | null;
}

/** An entry as it comes from the log: with its event as the text that everyone is sent. */
interface NewFeedRow extends FeedRow {
  readonly text: string;
}

const indexes: readonly Index<FeedRow>[] = [
  { name: 'event', keys: ({ event }) => (event === null ? [] : [event.event]) },
  { name: 'organization', keys: ({ organization }) => (organization === null ? [] : [organization]) },
  {
    name: 'organization_event',
    keys: ({ organization, event }) => (organization === null || event === null ? [] : [organizationEvent(organization, event.event)]),
  },
];

export function organizationEvent(organization: string, event: string): string {
  return `${organization} ${event}`;
}

/** Beyond the retention of its event, whatever that is. */
export const CURSORS_KEPT = 30 * 86_400_000;

const TIME_DIGITS = 9;
/** A record announces fewer events than its command has ids. */
const ORDINAL_DIGITS = 4;

/**
 * How a time compares with the order of the feed. An entry's order begins with the latest `created_at` up to it, so it follows the log and can be bounded by time as well: an event that
 * was recorded late counts with those beside it. Hence ranges that follow each other hold every event once, and no query has to search for their ends.
 */
export function orderOf(time: number): string {
  return time.toString(36).padStart(TIME_DIGITS, '0');
}

/** The latest `created_at` up to an entry, in milliseconds since the epoch. */
export function timeOf({ text }: Pick<StoredRow, 'text'>): number {
  return parseInt(orderIn(text).slice(0, TIME_DIGITS), 36);
}

/** Where an entry was recorded. What retention has taken says it, too. */
export function positionOf({ text }: Pick<StoredRow, 'text'>): Position {
  return orderIn(text).split('.')[1]!;
}

function orderIn(text: string): string {
  return (JSON.parse(text) as FeedRow).order;
}

/** The order of everything up to the end of a millisecond. */
export function orderAtEndOf(time: number): string {
  return `${orderOf(time)}~`;
}

/** The events feed: what the log announces, in its order. */
export const feedView: View<FeedRow> = {
  name: 'feed',
  version: 2,
  handles: PUBLIC_EVENT_NAMES,
  showsAnnounced: true,
  awaited: false,
  indexes,
  sortKey: ({ order }) => order,
  personal: {
    holders: ({ personal = [] }) => personal.map(({ of }) => of),
    columns: ({ personal = [] }, holder) => personal.flatMap(({ of, fields }) => (of === holder ? fields.flatMap(placesOf) : [])),
  },
  idsOf: (event) => publicEventsOf(event).map(({ id }) => id),
  evolve: (_row, event, id) => entryOf(event, id, event.meta.at),
  evolveBatch: async (table, events, remembered) => {
    const latest = remembered as Map<string, number>;
    await addLatestTimes(table, events, latest);
    return (_row, event, id) => {
      const { environment, at } = event.meta;
      const time = Math.max(at, latest.get(environment) ?? 0);
      latest.set(environment, time);
      return entryOf(event, id, time);
    };
  },
  serialise: (row) => rowText(row, 'text' in row ? (row as NewFeedRow).text : publicEventText(row.event)),
  retention: { shortened: strippedText, mayBeGone: (text, now) => timeOf({ text }) < now - CURSORS_KEPT },
};

/** What changed stands beside the resource, and in it where its class says so. */
function placesOf(path: string): readonly string[] {
  return path.startsWith('context.') ? [`event.${path}`, `event.data.${path.slice('context.'.length)}`] : [`event.${path}`];
}

function entryOf(record: RecordedEvent, id: string, time: number): NewFeedRow {
  const events = publicEventsOf(record);
  const ordinal = events.findIndex((event) => event.id === id);
  const { name, organization, text } = events[ordinal]!;
  const personal = personalIn(record);
  return {
    order: `${orderOf(time)}.${record.position}.${String(ordinal).padStart(ORDINAL_DIGITS, '0')}`,
    organization,
    ...(personal.length > 0 && { personal }),
    event: { event: name },
    text,
  };
}

const BEFORE_EVENT = ',"event":';

function rowText({ order, organization, personal }: Omit<FeedRow, 'event'>, event: string): string {
  return `{"order":"${order}","organization":${JSON.stringify(organization)}${personal ? `,"personal":${JSON.stringify(personal)}` : ''}${BEFORE_EVENT}${event}}`;
}

/** The event in a row's text, as it is sent. */
export function eventText(row: string): string {
  return row.slice(row.indexOf(BEFORE_EVENT) + BEFORE_EVENT.length, -1);
}

/** Whose the personal fields of its event are. */
export function holdersIn(row: string): readonly Holder[] {
  const { personal = [] } = JSON.parse(`${row.slice(0, row.indexOf(BEFORE_EVENT))}}`) as Pick<FeedRow, 'personal'>;
  return personal.map(({ of }) => of);
}

/** A row's text without its event. */
export function strippedText(row: string): string {
  return rowText({ order: orderIn(row), organization: null }, 'null');
}

/** Of the environments that are not known yet. */
async function addLatestTimes(table: Table<FeedRow>, events: readonly RecordedEvent[], latest: Map<string, number>): Promise<void> {
  const unknown = new Set(events.map(({ meta }) => meta.environment).filter((environment) => !latest.has(environment)));
  const add = async (environment: string): Promise<void> => {
    const { rows } = await table.page(environment, { order: 'desc', limit: 1 });
    latest.set(environment, rows[0] === undefined ? 0 : timeOf(rows[0]));
  };
  await Promise.all([...unknown].map(add));
}
