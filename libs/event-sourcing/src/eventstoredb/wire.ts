import { randomUUID } from 'node:crypto';
import { isObject } from '../deciding/changes.decider.ts';
import { VERSION_DIGITS } from '../log/append-bytes.ts';
import { AppendTooLarge, MAX_APPEND_BYTES, type EventMeta, type NewEvent, type Position, type RecordedEvent, START } from '../log/event-store.ts';
import { contentText, LazyRecord, readStored, storedText, UnreadableRecord } from '../log/lazy-record.ts';
import { type Damage, type DamageCause, eventLogDamaged } from '../log/log-damage.ts';
import { shared, streams } from './driver.ts';
import type { StreamNames } from './stream-names.ts';
import { ulidOf, uuidOf } from './uuid.ts';

export type ReadRequest = InstanceType<typeof streams.ReadReq>;
export type ReadResponse = InstanceType<typeof streams.ReadResp>;
export type BatchRequest = InstanceType<typeof streams.BatchAppendReq>;
export type BatchResponse = InstanceType<typeof streams.BatchAppendResp>;
type RecordedMessage = InstanceType<typeof streams.ReadResp.ReadEvent.RecordedEvent>;

/** Commit and prepare as numbers of this many digits sort as text, for ten petabytes. */
const POSITION_DIGITS = 16;
const POSITION = new RegExp(`^\\d{${POSITION_DIGITS}}-\\d{${POSITION_DIGITS}}$`);
const JSON_TYPE = 'application/json';

/** Events of others that the server goes through at a time where it is asked for ours. */
const SEARCHED_AT_ONCE = 4_096;
const METADATA_TYPE = '$metadata';
const TOMBSTONE_TYPE = '$streamDeleted';
/** The server counts time in steps of 100 ns. */
const TICKS_PER_MS = 10_000;

/** What an event's data in EventStoreDB hold beside the content; its metadata are ours as they are. The version is that of the decision: in a stream that was cut, the server's may be another. */
interface Stored extends Pick<NewEvent, 'shape' | 'public' | 'sealed'> {
  /** Not there where an earlier release wrote it. */
  readonly version?: number;
}

/** Where something lies in `$all`: commit and prepare. */
export interface LogPosition {
  readonly commit: string;
  readonly prepare: string;
}

/** An event of `$all`, whoever wrote it. */
export interface LogEvent {
  readonly at: LogPosition;
  readonly position: Position;
  readonly bytes: number;
  /** The stream of the log in which it lies; null where it lies elsewhere. */
  readonly stream: string | null;
  /** The stream of the log of which it is metadata; null where it is none. */
  readonly describes: string | null;
  /** Counts from 1 in its stream, whoever wrote what lies there. */
  readonly version: number;
  /** Milliseconds since the epoch, by the server's clock. */
  readonly createdAt: number;
  /** Null where it is none of our log, or does not fit there. */
  readonly record: RecordedEvent | null;
  /** What it does to a stream of the log, if anything. */
  readonly damage: Damage | null;
  /** What it says of the damage of others, where it lies in the stream for that: type and data. */
  readonly note: { readonly type: string; readonly data: unknown } | null;
}

/** @throws AppendTooLarge */
export function appendRequest(stream: string, expectedVersion: number, events: readonly NewEvent[]): BatchRequest {
  let bytes = 0;
  const messages = events.map(({ id, type, shape, data, subject, public: announced, sealed, meta }, index) => {
    const version = expectedVersion + 1 + index;
    const stored = Buffer.from(
      storedText({ shape, version, public: announced, sealed } satisfies Stored, { data: contentText(data), subject: contentText(subject) }),
    );
    const metadata = Buffer.from(JSON.stringify(meta));
    // As `appendBytes`, of what is at hand.
    bytes += stored.length + VERSION_DIGITS - String(version).length + metadata.length + 2 * type.length;
    const message = new streams.BatchAppendReq.ProposedMessage()
      .setId(new shared.UUID().setString(uuidOf(id)))
      .setData(stored)
      .setCustomMetadata(metadata);
    message.getMetadataMap().set('type', type).set('content-type', JSON_TYPE);
    return message;
  });
  if (bytes > MAX_APPEND_BYTES) throw new AppendTooLarge(stream, bytes);
  const options = new streams.BatchAppendReq.Options().setStreamIdentifier(identifierOf(stream));
  // Without a deadline the server's own limit holds: one of ours would be told as a time of day, and clocks differ.
  if (expectedVersion === 0) options.setNoStream(new shared.Empty());
  else options.setStreamPosition(String(expectedVersion - 1));
  return new streams.BatchAppendReq()
    .setCorrelationId(new shared.UUID().setString(randomUUID()))
    .setOptions(options)
    .setProposedMessagesList(messages)
    .setIsFinal(true);
}

/** Events of one stream from a version on. */
export function streamForwards(stream: string, from: number, count = Number.MAX_SAFE_INTEGER): ReadRequest {
  const place = new streams.ReadReq.Options.StreamOptions().setStreamIdentifier(identifierOf(stream)).setRevision(String(from - 1));
  return requestOf((options) => options.setStream(place).setCount(String(count)));
}

/** Events of one stream from a version downwards, or from its end. */
export function streamBackwards(stream: string, count: number, from?: number): ReadRequest {
  const place = new streams.ReadReq.Options.StreamOptions().setStreamIdentifier(identifierOf(stream));
  if (from === undefined) place.setEnd(new shared.Empty());
  else place.setRevision(String(from - 1));
  return requestOf((options) => options.setStream(place).setReadDirection(streams.ReadReq.Options.ReadDirection.BACKWARDS).setCount(String(count)));
}

/** The last events of `$all` before a position, the latest first; with prefixes those of the streams that are named so. */
export function allBackwards(before: LogPosition | null, count: number, ...prefixes: readonly string[]): ReadRequest {
  const place = new streams.ReadReq.Options.AllOptions();
  if (before === null) place.setEnd(new shared.Empty());
  else place.setPosition(messageOf(before));
  return requestOf((options) => {
    options.setAll(place).setReadDirection(streams.ReadReq.Options.ReadDirection.BACKWARDS).setCount(String(count));
    if (prefixes.length > 0) options.setFilter(filterOf(prefixes));
  });
}

/** The events of `$all` from a position on, or from its beginning, of the streams that are named so. */
export function allForwards(from: Position, count: number, ...prefixes: readonly string[]): ReadRequest {
  const place = new streams.ReadReq.Options.AllOptions();
  if (from === START) place.setStart(new shared.Empty());
  else place.setPosition(messageOf(logPositionOf(from)));
  return requestOf((options) => options.setAll(place).setCount(String(count)).setFilter(filterOf(prefixes)));
}

/** `$all` after a position, or from its beginning, and then what comes. */
export function allFollowing(after: Position | null): ReadRequest {
  const place = new streams.ReadReq.Options.AllOptions();
  if (after === null) place.setStart(new shared.Empty());
  else place.setPosition(messageOf(logPositionOf(after)));
  return requestOf((options) => options.setAll(place).setSubscription(new streams.ReadReq.Options.SubscriptionOptions()));
}

/** Null for a response that is no event: a confirmation, or word that the stream never was. */
export function eventOf(response: ReadResponse, names: StreamNames): LogEvent | null {
  const message = response.getEvent()?.getEvent();
  if (message === undefined) return null;
  const name = textOf(message.getStreamIdentifier()!.getStreamName_asU8());
  const at = { commit: message.getCommitPosition(), prepare: message.getPreparePosition() };
  const place: Place = { stream: names.own(name), position: positionOf(at), version: Number(message.getStreamRevision()) + 1 };
  const event = {
    ...place,
    at,
    bytes: message.getData_asU8().length,
    createdAt: place.stream === null ? 0 : Math.floor(Number(message.getMetadataMap().get('created') ?? 0) / TICKS_PER_MS),
  };
  const note = name === names.damage ? noteOf(message) : null;
  const describes = names.described(name);
  if (describes !== null)
    return { ...event, describes, record: null, damage: hidesEvents(message) ? damageOf({ ...place, stream: describes }, 'truncated') : null, note };
  return { ...event, describes, ...(place.stream === null ? NONE_OF_OURS : contentOf(message, place as Place<string>)), note };
}

/** The name of the error that an append was answered with. */
export function refusalOf(response: BatchResponse): string {
  return response.getError()?.getDetails()?.getTypeName().split('.').at(-1) ?? 'Unknown';
}

export function positionOf({ commit, prepare }: LogPosition): Position {
  if (commit.length > POSITION_DIGITS) throw new RangeError('EventStoreDB does not tell the positions of events: it is older than 22.10.');
  return `${commit.padStart(POSITION_DIGITS, '0')}-${prepare.padStart(POSITION_DIGITS, '0')}`;
}

/** Whether it was made by the function above. */
export function isPositionHere(position: Position): boolean {
  return POSITION.test(position);
}

/** Where an event lies. */
interface Place<Stream = string | null> {
  readonly stream: Stream;
  readonly position: Position;
  readonly version: number;
}

const NONE_OF_OURS = { record: null, damage: null } as const;

/** The record in a stream of ours, or what is wrong there. Nothing is taken for ours that has not the metadata of our records. */
function contentOf(message: RecordedMessage, place: Place<string>): Pick<LogEvent, 'record' | 'damage'> {
  const type = message.getMetadataMap().get('type') ?? '';
  // The version of a tombstone is the largest number that the server has.
  if (type === TOMBSTONE_TYPE && !Number.isSafeInteger(place.version)) return { record: null, damage: damageOf(place, 'deleted') };
  const meta = parsed(message.getCustomMetadata_asU8());
  if (!isMeta(meta) || type === '' || type.startsWith('$')) return { record: null, damage: damageOf(place, 'foreign') };
  const stored = storedIn(message.getData_asU8());
  const event = { ...place, id: ulidOf(message.getId()!.getString()), type, meta };
  if (stored === null) {
    const record = new UnreadableRecord({ ...event, shape: 0, public: [] }, eventLogDamaged(place.stream));
    return { record, damage: damageOf(place, 'unreadable') };
  }
  const { shape, version = place.version, public: announced, sealed } = stored.envelope;
  if (version !== place.version) return { record: null, damage: damageOf(place, 'misplaced') };
  return { record: new LazyRecord({ ...event, shape, public: announced, sealed }, stored.content), damage: null };
}

/** Null for what no release of ours has stored. */
function storedIn(bytes: Uint8Array): { readonly envelope: Stored; readonly content: ConstructorParameters<typeof LazyRecord>[1] } | null {
  try {
    const { envelope, content } = readStored(textOf(bytes));
    return isStored(envelope) ? { envelope, content } : null;
  } catch {
    return null;
  }
}

function damageOf({ stream, position, version }: Place<string>, cause: DamageCause): Damage {
  return { stream, revision: cause === 'truncated' || cause === 'deleted' ? null : version - 1, position, cause };
}

/** Whether metadata make the server leave out events of their stream, now or one day. It takes what it cannot read for nothing. */
function hidesEvents(message: RecordedMessage): boolean {
  const metadata = parsed(message.getData_asU8());
  if (message.getMetadataMap().get('type') !== METADATA_TYPE || !isObject(metadata)) return false;
  const { $tb: before, $maxCount: count, $maxAge: age } = metadata;
  return (typeof before === 'number' && before > 0) || count != null || age != null;
}

function noteOf(message: RecordedMessage): LogEvent['note'] {
  const stored = parsed(message.getData_asU8());
  return isStored(stored) ? { type: message.getMetadataMap().get('type') ?? '', data: stored.data } : null;
}

function isMeta(value: unknown): value is EventMeta {
  if (!isObject(value)) return false;
  const { environment, commandId, at, actor } = value;
  return typeof environment === 'string' && typeof commandId === 'string' && typeof at === 'number' && isObject(actor);
}

function isStored(value: unknown): value is Stored & { readonly data: unknown } {
  return isObject(value) && Number.isInteger(value['shape']) && Array.isArray(value['public']);
}

/** Undefined for what is no JSON. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(textOf(bytes));
  } catch {
    return undefined;
  }
}

function filterOf(prefixes: readonly string[]): InstanceType<typeof streams.ReadReq.Options.FilterOptions> {
  const names = new streams.ReadReq.Options.FilterOptions.Expression().setPrefixList([...prefixes]);
  return new streams.ReadReq.Options.FilterOptions().setStreamIdentifier(names).setMax(SEARCHED_AT_ONCE).setCheckpointintervalmultiplier(1);
}

function requestOf(place: (options: InstanceType<typeof streams.ReadReq.Options>) => unknown): ReadRequest {
  const options = new streams.ReadReq.Options()
    .setUuidOption(new streams.ReadReq.Options.UUIDOption().setString(new shared.Empty()))
    .setNoFilter(new shared.Empty());
  place(options);
  return new streams.ReadReq().setOptions(options);
}

function identifierOf(stream: string): InstanceType<typeof shared.StreamIdentifier> {
  return new shared.StreamIdentifier().setStreamName(Buffer.from(stream));
}

function logPositionOf(position: Position): LogPosition {
  const [commit, prepare] = position.split('-').map((digits) => digits.replace(/^0+(?=\d)/, ''));
  return { commit: commit!, prepare: prepare! };
}

function messageOf({ commit, prepare }: LogPosition): InstanceType<typeof streams.ReadReq.Options.Position> {
  return new streams.ReadReq.Options.Position().setCommitPosition(commit).setPreparePosition(prepare);
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
