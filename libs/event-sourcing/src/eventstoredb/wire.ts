import { randomUUID } from 'node:crypto';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import type { EventMeta, NewEvent, Position, RecordedEvent } from '../event-store.ts';
import { ulidOf, uuidOf } from '../uuid.ts';
import type { StreamNames } from './stream-names.ts';

export type ReadRequest = InstanceType<typeof streams.ReadReq>;
export type ReadResponse = InstanceType<typeof streams.ReadResp>;
export type BatchRequest = InstanceType<typeof streams.BatchAppendReq>;
export type BatchResponse = InstanceType<typeof streams.BatchAppendResp>;
type RecordedMessage = InstanceType<typeof streams.ReadResp.ReadEvent.RecordedEvent>;

/** What a server takes at once unless it is set up otherwise. */
const MAX_APPEND = 1024 * 1024;
/** Commit and prepare as numbers of this many digits sort as text, for ten petabytes. */
const POSITION_DIGITS = 16;
const JSON_TYPE = 'application/json';

/** An event's data as it lies in EventStoreDB; its metadata are ours as they are. */
type Stored = Pick<NewEvent, 'shape' | 'data' | 'subject' | 'public'>;

/** Where something lies in `$all`: commit and prepare. */
export interface LogPosition {
  readonly commit: string;
  readonly prepare: string;
}

/** An event of `$all`, whoever wrote it. */
export interface LogEvent {
  readonly at: LogPosition;
  readonly position: Position;
  /** Null where it is none of our log. */
  readonly record: RecordedEvent | null;
  readonly bytes: number;
}

/** @throws RangeError when the events are more than the server takes at once */
export function appendRequest(stream: string, expectedVersion: number, events: readonly NewEvent[]): BatchRequest {
  let bytes = 0;
  const messages = events.map(({ id, type, shape, data, subject, public: announced, meta }) => {
    const stored = Buffer.from(JSON.stringify({ shape, data, subject, public: announced } satisfies Stored));
    const metadata = Buffer.from(JSON.stringify(meta));
    // As the server counts.
    bytes += stored.length + metadata.length + 2 * type.length;
    const message = new streams.BatchAppendReq.ProposedMessage()
      .setId(new shared.UUID().setString(uuidOf(id)))
      .setData(stored)
      .setCustomMetadata(metadata);
    message.getMetadataMap().set('type', type).set('content-type', JSON_TYPE);
    return message;
  });
  if (bytes > MAX_APPEND) throw new RangeError(`An append to ${stream} has ${bytes} bytes, and EventStoreDB takes ${MAX_APPEND} at once.`);
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

/** The last events of `$all` before a position, the latest first. */
export function allBackwards(before: LogPosition | null, count: number): ReadRequest {
  const place = new streams.ReadReq.Options.AllOptions();
  if (before === null) place.setEnd(new shared.Empty());
  else place.setPosition(messageOf(before));
  return requestOf((options) => options.setAll(place).setReadDirection(streams.ReadReq.Options.ReadDirection.BACKWARDS).setCount(String(count)));
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
  const stream = names.own(textOf(message.getStreamIdentifier()!.getStreamName_asU8()));
  const at = { commit: message.getCommitPosition(), prepare: message.getPreparePosition() };
  const position = positionOf(at);
  const bytes = message.getData_asU8().length;
  return { at, position, bytes, record: stream === null ? null : recordOf(message, stream, position) };
}

/** The name of the error that an append was answered with. */
export function refusalOf(response: BatchResponse): string {
  return response.getError()?.getDetails()?.getTypeName().split('.').at(-1) ?? 'Unknown';
}

export function positionOf({ commit, prepare }: LogPosition): Position {
  if (commit.length > POSITION_DIGITS) throw new RangeError('EventStoreDB does not tell the positions of events: it is older than 22.10.');
  return `${commit.padStart(POSITION_DIGITS, '0')}-${prepare.padStart(POSITION_DIGITS, '0')}`;
}

function recordOf(message: RecordedMessage, stream: string, position: Position): RecordedEvent {
  const { shape, data, subject, public: announced } = JSON.parse(textOf(message.getData_asU8())) as Stored;
  return {
    id: ulidOf(message.getId()!.getString()),
    stream,
    version: Number(message.getStreamRevision()) + 1,
    position,
    type: message.getMetadataMap().get('type')!,
    shape,
    data,
    subject,
    public: announced,
    meta: JSON.parse(textOf(message.getCustomMetadata_asU8())) as EventMeta,
  };
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
