import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import {
  Metadata,
  status,
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServerDuplexStream,
  type ServerWritableStream,
} from '@grpc/grpc-js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import statuses from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import any from 'google-protobuf/google/protobuf/any_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import { START, WrongVersion, type Appended, type EventStore, type NewEvent, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { ulidOf, uuidOf } from '#libs/event-sourcing/src/eventstoredb/uuid';
import { newUlid } from '#libs/platform/src/ids';
import { LIVE_EVENTS, LiveEvents } from './live-events.ts';
import { REFUSALS, type CallRefusal, type Members } from './members.ts';
import { RecordPlaces } from './record-places.ts';
import { isDeletion, isShown, LAST_REVISION, METADATA_TYPE, metadataIn, metadataStream, type StreamMetadata, TOMBSTONE_TYPE } from './stream-metadata.ts';

type ReadRequest = InstanceType<typeof streams.ReadReq>;
type ReadResponse = InstanceType<typeof streams.ReadResp>;
type BatchRequest = InstanceType<typeof streams.BatchAppendReq>;
type BatchResponse = InstanceType<typeof streams.BatchAppendResp>;
type Proposed = ReturnType<BatchRequest['getProposedMessagesList']>[number];

/** What the real server takes by default. */
const MAX_APPEND = 1024 * 1024;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const { ReadDirection } = streams.ReadReq.Options;
/** Records that are looked through at once for those that a filter lets through. */
const SEARCHED = 1_000;
/** Positions of the log below are numbers of this many digits. */
const POSITION_DIGITS = 16;

/** What a client appended, as it is kept below: the bytes are its own business. */
interface Stored {
  readonly data: string;
  readonly metadata: string;
  readonly contentType: string;
  /** Where the two are not text. */
  readonly encoding?: 'base64';
  /** The server ended the stream with it. */
  readonly isTombstone?: true;
}

/** Whose ways it has, where they differ. */
export type ServerVersion = '22.10' | '24.10';

/** A subscription that is open. */
interface Subscription {
  /** It stays open, and nothing comes over it any more. */
  isHanging: boolean;
  /** As the real server before 24.10 ends it when 32 live events wait for the subscriber. */
  throwOut(): void;
}

/** The calls of EventStoreDB that the adapter makes, over a log of ours; every other is refused. */
export class Streams {
  readonly subscriptions = new Set<Subscription>();
  /** How many were. */
  thrownOut = 0;
  /** Whoever subscribes is thrown out as soon as it is live. */
  throwsOutEverybody = false;
  /** How the next appends are answered, one after the other. What times out is stored all the same. */
  readonly answers: ('Timeout' | 'AccessDenied')[] = [];
  /** What the next subscriptions are refused with, one after the other. */
  readonly refusals: CallRefusal[] = [];
  /** Nothing is said to who reads, unless it is a refusal. */
  isSilent = false;
  /** Where the records of `log` lie. */
  places = new RecordPlaces();
  /** Versions that are gone, by stream. */
  private readonly scavenged = new Map<string, Set<number>>();

  constructor(
    public log: EventStore,
    private readonly members: Members,
    private readonly version: ServerVersion = '24.10',
  ) {}

  readonly read: handleServerStreamingCall<ReadRequest, ReadResponse> = (call) => {
    const refusal = this.members.refusal(call.metadata, 'read');
    if (refusal !== null) return refuse(call, refusal);
    if (this.isSilent) return;
    void this.answerRead(call).catch((error: Error) =>
      refuse(call, error instanceof InsideRecord ? INSIDE_RECORD[this.version] : { code: status.INTERNAL, details: error.message, metadata: new Metadata() }),
    );
  };

  readonly batchAppend: handleBidiStreamingCall<BatchRequest, BatchResponse> = (call) => {
    const refusal = this.members.refusal(call.metadata, 'append');
    if (refusal !== null) return refuse(call, refusal);
    const unfinished = new Map<string, BatchRequest[]>();
    call.on('data', (request: BatchRequest) => {
      const id = request.getCorrelationId()!.getString();
      const parts = [...(unfinished.get(id) ?? []), request];
      if (!request.getIsFinal()) {
        unfinished.set(id, parts);
        return;
      }
      unfinished.delete(id);
      void this.answerAppend(call, id, parts);
    });
    call.on('end', () => call.end());
    call.on('error', () => {});
  };

  /** Hides what the stream has. What is appended later is shown. */
  readonly delete: handleUnaryCall<InstanceType<typeof streams.DeleteReq>, InstanceType<typeof streams.DeleteResp>> = (call, answer) => {
    const refusal = this.members.refusal(call.metadata, 'append');
    if (refusal !== null) return answer(refusal);
    const stream = nameOf(call.request.getOptions()!.getStreamIdentifier()!);
    void this.setMetadata(stream, `{"$tb":${LAST_REVISION}}`).then((position) => {
      const byte = this.byteOf(position);
      answer(null, new streams.DeleteResp().setPosition(new streams.DeleteResp.Position().setCommitPosition(byte).setPreparePosition(byte)));
    });
  };

  /** Ends the stream for good. */
  readonly tombstone: handleUnaryCall<InstanceType<typeof streams.TombstoneReq>, InstanceType<typeof streams.TombstoneResp>> = (call, answer) => {
    const refusal = this.members.refusal(call.metadata, 'append');
    if (refusal !== null) return answer(refusal);
    const stream = nameOf(call.request.getOptions()!.getStreamIdentifier()!);
    void this.appendAnywhere(stream, [storedEvent(newUlid(Date.now()), TOMBSTONE_TYPE, { data: '', metadata: '', contentType: '', isTombstone: true })]).then(
      ({ position }) => {
        const byte = this.byteOf(position);
        answer(null, new streams.TombstoneResp().setPosition(new streams.TombstoneResp.Position().setCommitPosition(byte).setPreparePosition(byte)));
      },
    );
  };

  /** As a scavenge does with what is hidden at the moment: it is gone, whatever the metadata say later. */
  async scavenge(stream: string): Promise<void> {
    const [records, metadata] = [await this.log.read(stream), await this.metadataOf(stream)];
    const gone = records.filter((record) => record.version < records.length && !isShown(record, metadata, records.length));
    this.scavenged.set(stream, new Set([...(this.scavenged.get(stream) ?? []), ...gone.map(({ version }) => version)]));
  }

  private async answerRead(call: ServerWritableStream<ReadRequest, ReadResponse>): Promise<void> {
    const options = call.request.getOptions()!;
    const stream = options.getStream();
    const name = stream === undefined ? '$all' : nameOf(stream.getStreamIdentifier()!);
    if (!(await this.members.allows(call.metadata, '$r', name, this.log))) return refuse(call, REFUSALS.denied);
    if (options.hasSubscription()) {
      if (stream !== undefined || options.hasFilter()) return refuse(call, notImplemented('subscriptions to anything but $all'));
      return this.follow(call, options);
    }
    if (stream !== undefined) return this.readStream(call, stream, options);
    await this.readAll(call, options);
    call.end();
  }

  private async readStream(call: ServerWritableStream<ReadRequest, ReadResponse>, stream: StreamOptions, options: ReadOptions): Promise<void> {
    const name = nameOf(stream.getStreamIdentifier()!);
    const limit = Number(options.getCount());
    const isBackwards = options.getReadDirection() === ReadDirection.BACKWARDS;
    const [last, metadata] = [await this.log.last(name), await this.metadataOf(name)];
    if (last !== null && isTombstone(last)) return refuse(call, streamDeleted(name));
    if (last === null || isDeletion(metadata)) {
      const identifier = stream.getStreamIdentifier();
      call.write(new streams.ReadResp().setStreamNotFound(new streams.ReadResp.StreamNotFound().setStreamIdentifier(identifier)));
      call.end();
      return;
    }
    const shown = (records: readonly RecordedEvent[]): readonly RecordedEvent[] =>
      records.filter((record) => isShown(record, metadata, last.version) && !this.isGone(record));
    const from = stream.hasStart() ? 1 : stream.hasEnd() ? last.version : Number(stream.getRevision()) + 1;
    if (isBackwards) {
      const records = limit === 1 && from >= last.version ? [last] : [...(await this.log.read(name))].filter(({ version }) => version <= from).reverse();
      for (const record of shown(records).slice(0, limit)) await write(call, this.eventOf(record));
    } else for (const record of shown(await this.log.read(name, from)).slice(0, limit)) await write(call, this.eventOf(record));
    call.end();
  }

  private async readAll(call: ServerWritableStream<ReadRequest, ReadResponse>, options: ReadOptions): Promise<void> {
    const limit = Number(options.getCount());
    const all = options.getAll()!;
    const head = Number(await this.log.head());
    const from = all.hasPosition() ? this.recordFrom(all.getPosition()!, head) : 0;
    const isForwards = options.getReadDirection() === ReadDirection.FORWARDS;
    const prefixes = options.getFilter()?.getStreamIdentifier()?.getPrefixList() ?? [''];
    // Backwards, from a position means before it.
    let next = isForwards ? Math.max(1, from) : all.hasEnd() ? head : Math.min(from - 1, head);
    for (let left = limit; left > 0 && next > 0 && next <= head && !call.cancelled;) {
      const count = Math.min(options.hasFilter() ? SEARCHED : left, SEARCHED, isForwards ? head - next + 1 : next);
      const records = await this.take(textOf(isForwards ? next - 1 : next - count), count);
      const found = records.filter((record) => prefixes.some((prefix) => record.stream.startsWith(prefix)) && !this.isGone(record));
      for (const record of (isForwards ? found : found.toReversed()).slice(0, left)) await write(call, this.eventOf(record));
      left -= found.length;
      next += isForwards ? count : -count;
    }
  }

  private async follow(call: ServerWritableStream<ReadRequest, ReadResponse>, options: ReadOptions): Promise<void> {
    const refused = this.refusals.shift();
    if (refused !== undefined) return refuse(call, refused);
    const all = options.getAll()!;
    const last = await this.log.head();
    const after = all.hasStart() ? START : all.hasEnd() ? last : textOf(this.recordFrom(all.getPosition()!, Number(last)));
    const ended = new AbortController();
    call.on('cancelled', () => ended.abort());
    call.on('close', () => ended.abort());
    call.on('error', () => ended.abort());
    call.write(new streams.ReadResp().setConfirmation(new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(randomUUID())));
    const throwOut = (): void => {
      this.thrownOut++;
      ended.abort();
      this.subscriptions.delete(subscription);
      refuse(call, REFUSALS.tooSlow);
    };
    const subscription: Subscription = { isHanging: false, throwOut };
    this.subscriptions.add(subscription);
    if (this.throwsOutEverybody) return throwOut();
    const live = new LiveEvents(call, throwOut);
    // Who is live gets what comes without its being read again; who is further behind is held up by its own connection.
    let isLive = after >= last;
    if (isLive && this.version === '24.10') await write(call, caughtUp());
    try {
      for await (const batch of this.log.subscribe(after, ended.signal))
        for (const record of batch) {
          if (subscription.isHanging || ended.signal.aborted || this.isGone(record)) continue;
          if (isLive && this.version === '22.10') {
            live.push(this.eventOf(record));
            continue;
          }
          await write(call, this.eventOf(record));
          const behind = Number(await this.log.head()) - Number(record.position);
          const isNear = behind <= (isLive ? LIVE_EVENTS : 0);
          if (isNear !== isLive && this.version === '24.10') await write(call, isNear ? caughtUp() : fellBehind());
          isLive = isNear;
        }
    } finally {
      this.subscriptions.delete(subscription);
    }
    if (!call.cancelled && call.writable) call.end();
  }

  private async take(after: string, count: number): Promise<readonly RecordedEvent[]> {
    const records: RecordedEvent[] = [];
    if (count === 0 || after >= (await this.log.head())) return records;
    const head = await this.log.head();
    const stop = new AbortController();
    for await (const batch of this.log.subscribe(after, stop.signal)) {
      records.push(...batch);
      if (records.length >= count || records.at(-1)!.position >= head) stop.abort();
    }
    return records.slice(0, count);
  }

  private async answerAppend(call: ServerDuplexStream<BatchRequest, BatchResponse>, id: string, parts: readonly BatchRequest[]): Promise<void> {
    const options = parts.find((part) => part.hasOptions())!.getOptions()!;
    const answer = new streams.BatchAppendResp().setCorrelationId(new shared.UUID().setString(id)).setStreamIdentifier(options.getStreamIdentifier());
    try {
      const stream = nameOf(options.getStreamIdentifier()!);
      const expected = options.hasNoStream() ? 0 : options.hasStreamPosition() ? Number(options.getStreamPosition()) + 1 : null;
      const refusal = options.hasStreamExists() ? badRequest('an append to whatever exists') : refusalOf(parts);
      const next = (await this.members.allows(call.metadata, '$w', stream, this.log)) ? this.answers.shift() : 'AccessDenied';
      if (refusal !== null) answer.setError(refusal);
      else if (next === 'AccessDenied') answer.setError(statusOf(status.PERMISSION_DENIED, next, new shared.AccessDenied()));
      else {
        const { version, position } = await this.appended(stream, expected, parts.flatMap((part) => part.getProposedMessagesList()).map(newEventOf));
        const byte = this.byteOf(position);
        const at = new shared.AllStreamPosition().setCommitPosition(byte).setPreparePosition(byte);
        answer.setSuccess(new streams.BatchAppendResp.Success().setCurrentRevision(String(version - 1)).setPosition(at));
        if (next === 'Timeout') answer.setError(statusOf(status.DEADLINE_EXCEEDED, next, new shared.Timeout()));
      }
    } catch (error) {
      if (error instanceof WrongVersion) answer.setError(await this.wrongVersion(error));
      else if (error instanceof Tombstoned)
        answer.setError(statusOf(status.FAILED_PRECONDITION, 'StreamDeleted', new shared.StreamDeleted().setStreamIdentifier(options.getStreamIdentifier())));
      else answer.setError(statusOf(status.INTERNAL, 'Unknown', new shared.Unknown()));
    }
    if (call.writable) call.write(answer);
  }

  /** `expected` null: wherever the stream is. To a stream that was deleted, and is said not to be there, it goes on where it ended. */
  private async appended(stream: string, expected: number | null, events: readonly NewEvent[]): Promise<Appended> {
    const last = await this.log.last(stream);
    if (last !== null && isTombstone(last)) throw new Tombstoned();
    const isDeleted = last !== null && isDeletion(await this.metadataOf(stream));
    const appended = await (expected === null
      ? this.appendAnywhere(stream, events)
      : this.log.append(stream, isDeleted && expected === 0 ? last.version : expected, events));
    if (isDeleted) await this.setMetadata(stream, JSON.stringify({ $tb: appended.version - events.length }));
    return appended;
  }

  private async appendAnywhere(stream: string, events: readonly NewEvent[]): Promise<Appended> {
    for (;;)
      try {
        return await this.log.append(stream, (await this.log.last(stream))?.version ?? 0, events);
      } catch (error) {
        if (!(error instanceof WrongVersion)) throw error;
      }
  }

  private async setMetadata(stream: string, metadata: string): Promise<string> {
    return (await this.appendAnywhere(metadataStream(stream), [eventOfOurs(METADATA_TYPE, metadata)])).position;
  }

  private async metadataOf(stream: string): Promise<StreamMetadata> {
    const last = await this.log.last(metadataStream(stream));
    return last === null ? {} : metadataIn((last.data as Stored).data);
  }

  private isGone({ stream, version }: RecordedEvent): boolean {
    return this.scavenged.get(stream)?.has(version) ?? false;
  }

  /** The record that begins there. Beyond the end of the log anything may. @throws InsideRecord */
  private recordFrom(position: PositionMessage, head: number): number {
    const byte = Number(position.getCommitPosition());
    const number = this.places.recordAt(byte);
    if (number <= head && this.places.beginOf(number) !== byte) throw new InsideRecord();
    return number;
  }

  /** Where a record of the log below lies here. */
  private byteOf(position: string): string {
    return String(this.places.beginOf(Number(position)));
  }

  private eventOf({ id, stream, version, position, type, data, meta }: RecordedEvent): ReadResponse {
    const stored = data as Stored;
    const at = this.byteOf(position);
    const event = new streams.ReadResp.ReadEvent.RecordedEvent()
      .setId(new shared.UUID().setString(uuidOf(id)))
      .setStreamIdentifier(new shared.StreamIdentifier().setStreamName(Buffer.from(stream)))
      .setStreamRevision(stored.isTombstone ? LAST_REVISION : String(version - 1))
      .setCommitPosition(at)
      .setPreparePosition(at)
      .setData(Buffer.from(stored.data, stored.encoding))
      .setCustomMetadata(Buffer.from(stored.metadata, stored.encoding));
    const properties = event.getMetadataMap();
    properties.set('type', type);
    properties.set('content-type', stored.contentType);
    // In ticks of 100 ns.
    properties.set('created', String(BigInt(meta.at) * 10_000n));
    return new streams.ReadResp().setEvent(new streams.ReadResp.ReadEvent().setEvent(event).setCommitPosition(at));
  }

  private async wrongVersion({ stream, expected }: WrongVersion) {
    const last = await this.log.last(stream);
    const details = new shared.WrongExpectedVersion();
    if (last === null) details.setCurrentNoStream(new empty.Empty());
    else details.setCurrentStreamRevision(String(last.version - 1));
    if (expected === 0) details.setExpectedNoStream(new empty.Empty());
    else details.setExpectedStreamPosition(String(expected - 1));
    return statusOf(status.FAILED_PRECONDITION, 'WrongExpectedVersion', details);
  }
}

type ReadOptions = NonNullable<ReturnType<ReadRequest['getOptions']>>;
type PositionMessage = NonNullable<ReturnType<NonNullable<ReturnType<ReadOptions['getAll']>>['getPosition']>>;
type StreamOptions = NonNullable<ReturnType<ReadOptions['getStream']>>;

/** Nothing is appended to the stream any more. */
class Tombstoned extends Error {}

/** A position that belongs to another log, whose records lie elsewhere. */
class InsideRecord extends Error {}

const INSIDE_RECORD: Readonly<Record<ServerVersion, CallRefusal>> = { '22.10': REFUSALS.handlerThrew, '24.10': REFUSALS.noSuchPosition };

function refuse(call: ServerWritableStream<ReadRequest, ReadResponse> | ServerDuplexStream<BatchRequest, BatchResponse>, refusal: CallRefusal): void {
  call.emit('error', Object.assign(new Error(refusal.details), refusal));
}

function streamDeleted(stream: string): CallRefusal {
  const metadata = new Metadata();
  metadata.set('exception', 'stream-deleted');
  metadata.set('stream-name', stream);
  return { code: status.FAILED_PRECONDITION, details: `Event stream '${stream}' is deleted.`, metadata };
}

function notImplemented(what: string): CallRefusal {
  return { code: status.UNIMPLEMENTED, details: `This server does not do ${what}.`, metadata: new Metadata() };
}

/** Word of 24.10 to subscribers. */
function fellBehind(): ReadResponse {
  return new streams.ReadResp().setFellBehind(new streams.ReadResp.FellBehind());
}

function caughtUp(): ReadResponse {
  return new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp());
}

/** Resolves when the client has room for more, or is gone. */
async function write(call: ServerWritableStream<ReadRequest, ReadResponse>, response: ReadResponse): Promise<void> {
  if (call.cancelled || call.write(response)) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      for (const event of ['drain', 'close', 'cancelled']) call.off(event, done);
      resolve();
    };
    for (const event of ['drain', 'close', 'cancelled']) call.on(event, done);
  });
}

function newEventOf(message: Proposed): NewEvent {
  const properties = message.getMetadataMap();
  const parts = [message.getData_asU8(), message.getCustomMetadata_asU8()].map((bytes) => Buffer.from(bytes));
  const encoding = parts.every((part) => isUtf8(part)) ? undefined : 'base64';
  const [data, metadata] = parts.map((part) => part.toString(encoding));
  const stored: Stored = { data: data!, metadata: metadata!, contentType: properties.get('content-type')!, ...(encoding !== undefined && { encoding }) };
  return storedEvent(ulidOf(message.getId()!.getString()), properties.get('type')!, stored);
}

function isTombstone({ data }: RecordedEvent): boolean {
  return (data as Stored).isTombstone === true;
}

/** What the server itself writes. */
function eventOfOurs(type: string, data: string): NewEvent {
  return storedEvent(newUlid(Date.now()), type, { data, metadata: '', contentType: 'application/json' });
}

function storedEvent(id: string, type: string, data: Stored): NewEvent {
  const meta = { environment: '', actor: { id: '', source: 'system' as const, name: null }, requestId: '', commandId: '', at: Date.now() };
  return { id, type, shape: 1, data, subject: null, public: [], meta };
}

/** What the real server would not take either. */
function refusalOf(parts: readonly BatchRequest[]) {
  const messages = parts.flatMap((part) => part.getProposedMessagesList());
  if (messages.some((message) => !UUID.test(message.getId()?.getString() ?? ''))) return badRequest('an event whose id is no UUID');
  const size = messages.reduce((bytes, message) => bytes + sizeOf(message), 0);
  if (size <= MAX_APPEND) return null;
  return statusOf(status.INVALID_ARGUMENT, 'MaximumAppendSizeExceeded', new shared.MaximumAppendSizeExceeded().setMaxappendsize(MAX_APPEND));
}

/** As the real server counts: two bytes for each character of the type. */
function sizeOf(message: Proposed): number {
  return message.getData_asU8().length + message.getCustomMetadata_asU8().length + 2 * (message.getMetadataMap().get('type') ?? '').length;
}

function badRequest(what: string) {
  return statusOf(status.INVALID_ARGUMENT, 'BadRequest', new shared.BadRequest().setMessage(`This server does not take ${what}.`));
}

/** An error of a batch append travels in the answer, with its details packed. */
function statusOf(code: number, name: string, details: { serializeBinary(): Uint8Array }) {
  const packed = new any.Any();
  packed.pack(details.serializeBinary(), `event_store.client.${name}`);
  return new statuses.Status().setCode(code).setMessage(name).setDetails(packed);
}

function nameOf(identifier: InstanceType<typeof shared.StreamIdentifier>): string {
  return Buffer.from(identifier.getStreamName_asU8()).toString();
}

function textOf(position: number): string {
  return position <= 0 ? START : String(position).padStart(POSITION_DIGITS, '0');
}
