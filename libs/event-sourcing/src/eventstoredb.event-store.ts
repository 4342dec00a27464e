import { setTimeout as pause } from 'node:timers/promises';
import {
  AccessDeniedError,
  type AllStreamResolvedEvent,
  type AllStreamSubscription,
  BACKWARDS,
  END,
  EventStoreDBClient,
  FORWARDS,
  jsonEvent,
  MaxAppendSizeExceededError,
  NO_STREAM,
  START as BEGINNING,
  StreamNotFoundError,
  WrongExpectedVersionError,
  type JSONEventType,
  type JSONRecordedEvent,
  type ReadStreamOptions,
} from '@eventstore/db-client';
import { within } from '#libs/platform/src/deadline';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import { StartRefused } from '#libs/platform/src/start-refused';
import { type Appended, EventStore, type EventMeta, type NewEvent, type Position, type RecordedEvent, START, WrongVersion } from './event-store.ts';
import { ulidOf, uuidOf } from './uuid.ts';

/** Whoever asks learns within this time that nobody answers. */
const ANSWER_MS = 4_500;
/** One attempt of an append; it is repeated unchanged as often as there is time. */
const ATTEMPT_MS = 2_000;
const RETRY_MS = 100;
/** How long the start waits: a cluster starts in any order. */
const PATIENCE_MS = 60_000;
/** A connection that carries nothing is asked for a sign of life after the first, and given up after the second. The driver recommends no less than the first. */
const KEEP_ALIVE_MS = 10_000;
const KEEP_ALIVE_TIMEOUT_MS = 3_000;
/** Events that a subscriber is handed at once. */
const BATCH = 500;
/** System events that are looked through at once for the last of our own. */
const LOOK_BACK = 64;
/** Commit and prepare as numbers of this many digits sort as text, for ten petabytes. */
const POSITION_DIGITS = 16;

/** An event as it lies in EventStoreDB. */
type Stored = Pick<NewEvent, 'shape' | 'data' | 'subject' | 'public'>;
type StoredType = JSONEventType<string, Stored, EventMeta>;

interface LogPosition {
  readonly commit: bigint;
  readonly prepare: bigint;
}

interface Options {
  /** A connection string. */
  readonly url: string;
  readonly log: Log;
  readonly patience?: number;
}

/** The log in EventStoreDB, which all processes of a cluster share. Streams whose names begin with `$` are its own; nobody sees them here. */
export class EventstoredbEventStore extends EventStore {
  /** Everything up to `scanned` is known: the last event of ours in it is at `head`. */
  private known: { readonly scanned: LogPosition | null; readonly head: Position } = { scanned: null, head: START };
  private readonly closing = new AbortController();

  private constructor(private readonly client: EventStoreDBClient) {
    super();
  }

  /** @throws StartRefused when the connection string is none, the credentials are wrong, or nobody answers there */
  static async connect({ url, log, patience = PATIENCE_MS }: Options): Promise<EventstoredbEventStore> {
    const store = new EventstoredbEventStore(clientOf(url));
    for (const deadline = Date.now() + patience; ; await pause(RETRY_MS * 10)) {
      try {
        await store.head();
        return store;
      } catch (error) {
        const isRefused = error instanceof DomainError && error.cause instanceof AccessDeniedError;
        if (!isRefused && Date.now() < deadline) {
          log.warn('EventStoreDB does not answer yet, and is asked again.', { error });
          continue;
        }
        await store.close();
        if (isRefused) throw new StartRefused('EventStoreDB refuses the name and password in EVENTSTORE_URL.');
        throw new StartRefused(`EventStoreDB has not answered for ${patience / 1_000} s at the hosts of EVENTSTORE_URL.`);
      }
    }
  }

  async close(): Promise<void> {
    this.closing.abort();
    await this.client.dispose().catch(() => {});
  }

  async read(stream: string, from = 1): Promise<readonly RecordedEvent[]> {
    return this.recorded(stream, { direction: FORWARDS, fromRevision: BigInt(from - 1) });
  }

  async last(stream: string): Promise<RecordedEvent | null> {
    const [last] = await this.recorded(stream, { direction: BACKWARDS, fromRevision: END, maxCount: 1 });
    return last ?? null;
  }

  async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    if (events.length === 0 || stream.startsWith('$')) throw new RangeError(`An append needs events and a stream of ours, not '${stream}'.`);
    const proposed = events.map(proposedOf);
    const expectedRevision = expectedVersion === 0 ? NO_STREAM : BigInt(expectedVersion - 1);
    for (let attempt = 1, deadline = Date.now() + ANSWER_MS; ; attempt++) {
      try {
        // The driver knows no deadline here. Whether an attempt that is late was carried out shows when it is repeated.
        const appending = this.client.appendToStream(stream, proposed, { expectedRevision, requiresLeader: true });
        const { position } = await within(appending, Math.min(ATTEMPT_MS, deadline - Date.now()), lateAnswer);
        // What a repeat is told of the position of the first attempt is not to be relied on.
        if (attempt === 1 && position !== undefined) return { version: expectedVersion + events.length, position: textOf(position) };
        return await this.repeated(stream, expectedVersion, events);
      } catch (error) {
        if (error instanceof WrongExpectedVersionError) return this.repeated(stream, expectedVersion, events);
        if (error instanceof MaxAppendSizeExceededError)
          throw new RangeError(`An append to ${stream} is larger than EventStoreDB takes at once.`, { cause: error });
        if (error instanceof WrongVersion || error instanceof AccessDeniedError || Date.now() + RETRY_MS >= deadline) throw translated(error);
        await pause(RETRY_MS);
      }
    }
  }

  async head(): Promise<Position> {
    return this.asked(async () => {
      let newest: LogPosition | null = null;
      for (let from: LogPosition | typeof END = END, maxCount = 1; ; maxCount = LOOK_BACK) {
        const last: LogPosition | null = newest;
        let oldest: LogPosition | null = null;
        for (const { isOurs: isOur, position } of await this.backwards(from, maxCount)) {
          newest ??= position;
          oldest = position;
          // The log was put back to an earlier state: nothing is known of it any more.
          if (last === null && this.known.scanned !== null && newest.commit < this.known.scanned.commit) this.known = { scanned: null, head: START };
          if (this.known.scanned !== null && position.commit <= this.known.scanned.commit) return this.remember(newest, this.known.head);
          if (isOur) return this.remember(newest, textOf(position));
        }
        if (oldest === null) return this.remember(newest, START);
        from = oldest;
      }
    });
  }

  async *subscribe(after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
    const fromPosition = after === START ? BEGINNING : positionOf(after);
    const subscription = this.client.subscribeToAll({ fromPosition, requiresLeader: false });
    const events = new Arrivals(subscription, AbortSignal.any([signal, this.closing.signal]));
    try {
      for (let resolved = await events.next(); resolved !== null; resolved = await events.next()) {
        const ours = resolved.flatMap(({ event }) => (event !== undefined && isOurs(event) ? [recordOf(event as JSONRecordedEvent<StoredType>)] : []));
        if (ours.length > 0) yield ours;
      }
      if (!signal.aborted) throw unavailable('EventStoreDB has ended the subscription to the log.');
    } finally {
      events.end();
      await subscription.unsubscribe().catch(() => {});
    }
  }

  private async recorded(stream: string, options: ReadStreamOptions): Promise<readonly RecordedEvent[]> {
    return this.asked(async () => {
      const records: RecordedEvent[] = [];
      try {
        const read = this.client.readStream<StoredType>(stream, { ...options, requiresLeader: true, deadline: ANSWER_MS });
        // To its end: the driver does not take it well when a reader leaves.
        for await (const { event } of read) if (event !== undefined) records.push(recordOf(event));
      } catch (error) {
        if (!(error instanceof StreamNotFoundError)) throw error;
      }
      return records;
    });
  }

  private async backwards(fromPosition: LogPosition | typeof END, maxCount: number) {
    const options = { direction: BACKWARDS, fromPosition, maxCount, requiresLeader: true, deadline: ANSWER_MS } as const;
    const read: { readonly isOurs: boolean; readonly position: LogPosition }[] = [];
    for await (const { event } of this.client.readAll(options)) if (event !== undefined) read.push({ isOurs: isOurs(event), position: event.position! });
    return read;
  }

  /** Never goes back: an answer that comes late must not undo a later one. */
  private remember(newest: LogPosition | null, head: Position): Position {
    if (newest !== null && (this.known.scanned === null || newest.commit >= this.known.scanned.commit)) this.known = { scanned: newest, head };
    return head;
  }

  /** Events that stand where these would: ours, when an earlier attempt had put them there. @throws WrongVersion */
  private async repeated(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    const recorded = (await this.read(stream, expectedVersion + 1)).slice(0, events.length);
    if (recorded.length < events.length || recorded.some(({ id }, index) => id !== events[index]!.id)) throw new WrongVersion(stream, expectedVersion);
    const { version, position } = recorded.at(-1)!;
    return { version, position };
  }

  /** A read may be repeated as often as there is time: a leader that was elected a moment ago is found by asking again. */
  private async asked<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    for (const deadline = Date.now() + ANSWER_MS; ; await pause(RETRY_MS)) {
      try {
        return await within(read(), deadline - Date.now(), lateAnswer);
      } catch (error) {
        if (error instanceof AccessDeniedError || Date.now() + RETRY_MS >= deadline) throw translated(error);
      }
    }
  }
}

/** What a subscription has brought, as it is asked for: nothing is read ahead but what the driver has received already. */
class Arrivals {
  private failure: unknown = null;
  private isOver = false;
  private wake: () => void = () => {};
  private readonly arrived = (): void => this.wake();

  constructor(
    private readonly subscription: AllStreamSubscription,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener('abort', this.arrived);
    subscription.on('readable', this.arrived);
    subscription.on('error', (error: unknown) => {
      this.failure = error;
      this.arrived();
    });
    for (const event of ['end', 'close'])
      subscription.on(event, () => {
        this.isOver = true;
        this.arrived();
      });
  }

  /** Null at the end. @throws DomainError when the connection is lost */
  async next(): Promise<readonly AllStreamResolvedEvent[] | null> {
    for (;;) {
      if (this.signal.aborted) return null;
      const events: AllStreamResolvedEvent[] = [];
      while (events.length < BATCH) {
        const event = this.subscription.read() as AllStreamResolvedEvent | null;
        if (event === null) break;
        events.push(event);
      }
      if (events.length > 0) return events;
      if (this.failure !== null) throw translated(this.failure);
      if (this.isOver) return null;
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  end(): void {
    this.signal.removeEventListener('abort', this.arrived);
  }
}

/** @throws StartRefused without the text, which carries a password */
function clientOf(url: string): EventStoreDBClient {
  try {
    const settings = new URLSearchParams(url.split('?')[1] ?? '');
    const given = new Set([...settings.keys()].map((name) => name.toLowerCase()));
    const added = Object.entries({ keepAliveInterval: KEEP_ALIVE_MS, keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS }).filter(
      ([name]) => !given.has(name.toLowerCase()),
    );
    const separator = url.includes('?') ? '&' : '?';
    return EventStoreDBClient.connectionString(`${url}${separator}${added.map(([name, value]) => `${name}=${value}`).join('&')}`);
  } catch {
    throw new StartRefused('EVENTSTORE_URL is no connection string of EventStoreDB.');
  }
}

function isOurs({ streamId }: { readonly streamId: string }): boolean {
  return !streamId.startsWith('$');
}

function proposedOf({ id, type, shape, data, subject, public: announced, meta }: NewEvent) {
  return jsonEvent<StoredType>({ id: uuidOf(id), type, data: { shape, data, subject, public: announced }, metadata: meta });
}

function recordOf({ id, streamId, revision, position, type, data, metadata }: JSONRecordedEvent<StoredType>): RecordedEvent {
  const { shape, data: fact, subject, public: announced } = data;
  return {
    id: ulidOf(id),
    stream: streamId,
    version: Number(revision) + 1,
    position: textOf(position!),
    type,
    shape,
    data: fact,
    subject,
    public: announced,
    meta: metadata as unknown as EventMeta,
  };
}

function textOf({ commit, prepare }: LogPosition): Position {
  return `${String(commit).padStart(POSITION_DIGITS, '0')}-${String(prepare).padStart(POSITION_DIGITS, '0')}`;
}

function positionOf(text: Position): LogPosition {
  const [commit, prepare] = text.split('-');
  return { commit: BigInt(commit!), prepare: BigInt(prepare!) };
}

function lateAnswer(): Error {
  return unavailable('EventStoreDB did not answer in time.');
}

/** The driver's errors name hosts, and causes of many kinds that mean the same to a caller: nobody can tell now, ask again. */
function translated(error: unknown): Error {
  if (error instanceof DomainError || error instanceof WrongVersion || error instanceof RangeError) return error;
  return Object.assign(unavailable('EventStoreDB cannot be reached.'), { cause: error });
}
