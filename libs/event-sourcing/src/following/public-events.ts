import { EventContext } from '#libs/contracts/src/feed/event';
import { eventDataOf, isPublicEventName, type PublicEventName } from '#libs/contracts/src/events';
import { serialiserOf, type Serialiser } from '#libs/contracts/src/serialiser';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import type { RecordedEvent, SealedPart } from '../log/event-store.ts';
import type { Path } from '../sealing/sealed-paths.ts';

/** An event as feed, Kafka and webhooks show it. */
export interface PublicEvent {
  readonly id: string;
  readonly name: PublicEventName;
  /** The organization that it belongs to, or null. */
  readonly organization: string | null;
  /** ISO 8601. */
  readonly createdAt: string;
  /** The whole event as JSON, through the allow-list of its contract class. */
  readonly text: string;
}

const contextText: Serialiser<EventContext> = serialiserOf(EventContext);

const SUBJECT = 'subject.';
/** Stands beside the resource. */
const PREVIOUS = 'previous_attributes';

const known = new WeakMap<RecordedEvent, readonly PublicEvent[]>();
const none: readonly PublicEvent[] = [];

/**
 * What a record announces. Written once per record, however many subscribers ask who go along together.
 * @throws NeedsLaterRelease where only a later release can tell of it: whoever passed over that would have nobody told, ever
 */
export function publicEventsOf(record: RecordedEvent): readonly PublicEvent[] {
  if (record.public.length === 0) return none;
  let events = known.get(record);
  if (events === undefined) {
    const { shape, position } = record;
    const later = record.public.find(({ name }) => !isTold(name));
    if (later !== undefined) throw new NeedsLaterRelease({ type: later.name, shape, position }, 0);
    events = record.public.map(({ id, name }) => publicEvent(record, id, name as PublicEventName));
    known.set(record, events);
  }
  return events;
}

/** What a record announces is written again for whoever asks from now on. */
export function letGoOfPublicEvents(record: RecordedEvent): void {
  known.delete(record);
}

/** Whether a record announces anything that only a later release can tell of. */
export function announcesLater({ public: announced }: RecordedEvent): boolean {
  return announced.some(({ name }) => !isTold(name));
}

/** Whether this release tells of events of this name: some are known before anything fires them. */
function isTold(name: string): boolean {
  return isPublicEventName(name) && eventDataOf(name) !== null;
}

/** An event as JSON, once parts of it were forgotten: it leaves as its contract class has it, as every other does. */
export function publicEventText(event: unknown): string {
  const { event: name, data } = event as { readonly event: PublicEventName; readonly data: unknown };
  return JSON.stringify({ ...(event as object), data: JSON.parse(dataText(name, data)) as unknown });
}

/** Whose the personal fields of what a record announces are, as paths in the public event. */
export function personalIn({ sealed = [] }: RecordedEvent): readonly SealedPart[] {
  return sealed.flatMap(({ of, fields }) => {
    const announced = fields.filter((path) => path.startsWith(SUBJECT)).map((path) => placeOf(path.slice(SUBJECT.length)));
    return announced.length === 0 ? [] : [{ of, fields: announced }];
  });
}

/** What the payload has under this path. */
function placeOf(path: Path): Path {
  return path === PREVIOUS || path.startsWith(`${PREVIOUS}.`) ? `context.${path}` : `data.${path}`;
}

function publicEvent({ subject, meta }: RecordedEvent, id: string, name: PublicEventName): PublicEvent {
  const createdAt = new Date(meta.at).toISOString();
  // What changed stands beside the resource too, where the resource as the event shows it says so.
  const { previous_attributes } = (subject ?? {}) as Pick<EventContext, 'previous_attributes'>;
  const context = contextText({ actor: meta.actor as EventContext['actor'], previous_attributes });
  // The envelope around a `data` that is JSON already: `Event`, in the order of its fields.
  const text = `{"object":"event","id":"${id}","event":"${name}","data":${dataText(name, subject)},"created_at":"${createdAt}","context":${context}}`;
  return { id, name, organization: meta.organization ?? null, createdAt, text };
}

function dataText(name: PublicEventName, subject: unknown): string {
  const type = eventDataOf(name);
  if (type === null) throw new Error(`${name} is announced, but has no contract class.`);
  return serialiserOf(type)(subject);
}
