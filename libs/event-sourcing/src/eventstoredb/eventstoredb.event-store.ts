import { setTimeout as pause } from 'node:timers/promises';
import { StreamDeletedError } from '@eventstore/db-client';
import { DomainError, isUnavailable, unavailable } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { LogIdentity } from '#libs/platform/src/storage/log-note';
import { causeAt } from '#libs/platform/src/unreachable';
import { appendBytes } from '../log/append-bytes.ts';
import {
  type Appended,
  AppendTooLarge,
  EventStore,
  type NewEvent,
  type Position,
  PositionOfAnotherLog,
  type RecordedEvent,
  START,
  WrongVersion,
} from '../log/event-store.ts';
import { Connection } from './connection.ts';
import { checkedUrl, endpointsOf } from './connection-string.ts';
import { DamagedStreams } from './damaged-streams.ts';
import { AppendRefused, failureOf, isPositionRefused, isRefused } from './failures.ts';
import { LogEnd } from './log-end.ts';
import { identityEvent, identityIn } from './log-identity.ts';
import { isOpenToAnybody } from './openness.ts';
import { LogSubscriptions } from './log-subscriptions.ts';
import type { LogSubscription } from './log-subscription.ts';
import { contentBackwards, contentForwards, type Reading, type StreamContent } from './stream-content.ts';
import { StreamNames } from './stream-names.ts';
import {
  allForwards,
  appendRequest,
  type BatchRequest,
  type BatchResponse,
  eventOf,
  type LogEvent,
  isPositionHere,
  positionOf,
  type ReadRequest,
  type ReadResponse,
  refusalOf,
  streamBackwards,
  streamForwards,
} from './wire.ts';
import { eventLogDamaged } from '../log/log-damage.ts';

/** Whoever asks learns within this time that nobody answers. */
const ANSWER_MS = 4_000;
const RETRY_MS = 100;
/** So long a page of `$all` may take: an election, and what others wrote in between. */
const SEARCH_MS = 120_000;
/** How long the start waits: a cluster starts in any order. */
const ENGINE_TIMEOUT_MS = 60_000;
const START_RETRY_MS = 1_000;
/** So many events of others in a row are remembered, for who follows the log from there again. */
const RUN = 1_000;
/** The same trouble is said this often. */
const SAID_MS = 60_000;

interface Options {
  /** A connection string. */
  readonly url: string;
  /** Whose streams are the log; the server may hold those of others. */
  readonly installation: string;
  readonly log: Log;
  /** Milliseconds that `connect` waits for an answer. */
  readonly timeoutMs?: number;
}

/** The log in EventStoreDB, which all processes of a cluster share. Nobody sees streams of the server, of other installations and of other products here. */
export class EventstoredbEventStore extends EventStore {
  /** What is wrong with single streams. */
  readonly damage: DamagedStreams;
  private readonly end: LogEnd;
  private readonly subscriptions: LogSubscriptions;

  /** Before that, whoever starts it says what is wrong. */
  private isConnected = false;
  /** When each trouble was said last. */
  private readonly said = new Map<string, number>();

  private constructor(
    private readonly connection: Connection,
    private readonly names: StreamNames,
    private readonly log: Log,
    private readonly timeoutMs: number,
  ) {
    super();
    const read = async (request: ReadRequest, count: number, milliseconds: number): Promise<readonly LogEvent[]> =>
      this.eventsOf(await connection.read(request, milliseconds, count));
    this.end = new LogEnd({
      read: async (request, count, milliseconds) => {
        const events = await read(request, count, milliseconds);
        // Followers begin behind it.
        for (const event of events) this.damage.receive(event);
        return events;
      },
      prefixes: [names.prefix, names.metadataPrefix],
    });
    this.damage = new DamagedStreams({
      names,
      log,
      read: (request) => this.answered(request),
      search: (request, count) => this.asked(Date.now() + SEARCH_MS, (milliseconds) => read(request, count, milliseconds)),
      metadata: (stream) => this.metadataOf(stream),
      append: (version, event) => this.note(version, event),
    });
    this.subscriptions = new LogSubscriptions({ open: (after) => this.opened(after), head: () => this.head(), forget: () => this.end.forget() });
  }

  /** @throws StartRefused when the connection string is none, the credentials are wrong, or nobody answers there */
  static async connect({ url, installation, log, timeoutMs = ENGINE_TIMEOUT_MS }: Options): Promise<EventstoredbEventStore> {
    const endpoints = endpointsOf(checkedUrl(url));
    const store = new EventstoredbEventStore(new Connection(url), new StreamNames(installation), log, timeoutMs);
    const deadline = Date.now() + timeoutMs;
    for (let attempt = 1; ; attempt++) {
      try {
        // What was skipped is known before it is met again.
        await store.damage.refresh();
        await store.headWithin(deadline - Date.now());
        store.isConnected = true;
        if (await isOpenToAnybody(url, store.names.stored('rights')))
          log.warn('EventStoreDB lets whoever comes without a password append to the log: set its access lists as docs/operations.md says.');
        return store;
      } catch (error) {
        const failure = failureOf(error instanceof DomainError ? error.cause : error);
        if (failure === 'passing' && attempt === 1) log.warn(`EventStoreDB does not answer yet${await causeAt(endpoints)}.`, { error });
        if (failure === 'passing' && Date.now() < deadline) {
          await pause(START_RETRY_MS);
          continue;
        }
        await store.close();
        if (failure === 'ours' || failure === 'deleted') throw error;
        if (failure === 'refused') throw new StartRefused('EventStoreDB refuses the name and password in EVENTSTORE_URL, or does not let them read $all.');
        throw new StartRefused(`EventStoreDB has not answered for ${timeoutMs / 1_000} s at the hosts of EVENTSTORE_URL${await causeAt(endpoints)}.`);
      }
    }
  }

  /**
   * Which log it is. The first process that asks, and may append, says so for ever in a stream beside it; others wait for that.
   * @throws StartRefused when nobody has said it in time, or it cannot be read
   */
  async identity(): Promise<LogIdentity> {
    const { installation, identity: stream } = this.names;
    const event = identityEvent();
    const deadline = Date.now() + this.timeoutMs;
    for (let isTold = false; ; isTold = true) {
      const read = this.askedAtStart(deadline, (milliseconds) => this.connection.read(streamForwards(stream, 1, 1), milliseconds));
      const id = identityIn(stream, await read.catch((error: unknown) => refusedToRead(stream, error)));
      if (id !== null) return { installation, id };
      if (Date.now() > deadline)
        throw new StartRefused(
          `EventStoreDB holds no log of the installation ${installation} yet, and does not let the user in EVENTSTORE_URL begin one: start a service first, whose user may append.`,
        );
      if (await this.mayBegin(stream, event, deadline)) continue;
      if (!isTold) this.log.info('The log has not been begun yet, and this process may not: it waits for one that may.', { installation });
      await pause(START_RETRY_MS);
    }
  }

  async close(): Promise<void> {
    this.damage.close();
    this.connection.close();
  }

  async read(stream: string, from = 1): Promise<readonly RecordedEvent[]> {
    const events = await this.eventsIn(stream, streamForwards(this.names.stored(stream), from), { isAll: from === 1 });
    return this.whole(contentForwards(events, this.readingOf(stream, from)), stream);
  }

  async readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
    // There is nothing before the first version, and no revision to ask for.
    if (from !== undefined && from < 1) return [];
    const events = await this.eventsIn(stream, streamBackwards(this.names.stored(stream), count, from), { isAll: true });
    return this.whole(contentBackwards(events, count, this.readingOf(stream, from ?? null)), stream);
  }

  async last(stream: string): Promise<RecordedEvent | null> {
    return (await this.readBackwards(stream, 1))[0] ?? null;
  }

  async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    if (events.length === 0) throw new RangeError(`An append to ${stream} needs events.`);
    const stored = this.names.stored(stream);
    await this.damage.require(stream);
    const deadline = Date.now() + ANSWER_MS;
    let attempts = 0;
    const answer = await this.answeredAppend(stream, deadline, () => {
      attempts += 1;
      return appendRequest(stored, expectedVersion, events);
    });
    const success = answer.getSuccess();
    const version = expectedVersion + events.length;
    const at = success?.getPosition();
    // What a repeat is told of the first attempt is not relied on.
    if (at !== undefined && attempts === 1) {
      const position = positionOf({ commit: at.getCommitPosition(), prepare: at.getPreparePosition() });
      const revision = Number(success!.getCurrentRevision());
      if (revision + 1 !== version) throw this.misplaced(stream, { revision, position, count: events.length });
      return { version, position };
    }
    // A server may be set up to take less than ours do.
    if (refusalOf(answer) === 'MaximumAppendSizeExceeded') throw new AppendTooLarge(stream, appendBytes(events));
    if (refusalOf(answer) === 'StreamDeleted') this.damage.refuse(stream, [{ stream, revision: null, position: null, cause: 'deleted' }]);
    if (answer.hasError() && refusalOf(answer) !== 'WrongExpectedVersion')
      throw new RangeError(`EventStoreDB does not take the append to ${stream}: ${refusalOf(answer)}.`);
    return this.repeated(stream, expectedVersion, { events, deadline });
  }

  async head(): Promise<Position> {
    return this.headWithin(ANSWER_MS);
  }

  /** What follows the log from a position that the server refuses learns of it by that. */
  override async idAt(position: Position): Promise<string | null> {
    if (!isPositionHere(position)) return null;
    const request = allForwards(position, 1, this.names.prefix);
    const responses = await this.asked(Date.now() + ANSWER_MS, (milliseconds) =>
      this.connection.read(request, milliseconds, 1).catch((error: unknown) => {
        if (isPositionRefused(error) === 'no') throw error;
        return [];
      }),
    );
    const [event] = this.eventsOf(responses);
    return event?.position === position ? (event.record?.id ?? null) : null;
  }

  async *subscribe(after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
    if (after !== START && !isPositionHere(after)) throw new PositionOfAnotherLog(after);
    try {
      yield* this.subscriptions.follow(after, signal);
    } catch (error) {
      if (!signal.aborted) throw this.translated(error);
    }
  }

  /** False where the user may not append. Whoever was faster is found at the next look. */
  private async mayBegin(stream: string, event: NewEvent, deadline: number): Promise<boolean> {
    try {
      const answer = await this.askedAtStart(deadline, (milliseconds) => this.connection.append(appendRequest(stream, 0, [event]), milliseconds));
      return refusalOf(answer) !== 'AccessDenied';
    } catch (error) {
      if (isRefused(error)) return false;
      throw error;
    }
  }

  /** A start has more time than a request, and learns soon of an answer that does not come. */
  private askedAtStart<Answer>(deadline: number, ask: (milliseconds: number) => Promise<Answer>): Promise<Answer> {
    return this.asked(Math.max(deadline, Date.now() + ANSWER_MS), (milliseconds) => ask(Math.min(milliseconds, ANSWER_MS)));
  }

  /** Asks for the end for as long as any call takes, and waits `timeoutMs` while what others have written is looked through. */
  private headWithin(timeoutMs: number): Promise<Position> {
    const limit = Date.now() + timeoutMs;
    return this.asked(Date.now() + ANSWER_MS, (milliseconds) => this.end.head(milliseconds, limit - Date.now()));
  }

  private opened(after: Position): LogSubscription {
    const from = this.end.startAfter(after);
    let last: Position | null = null;
    let passed = 0;
    return this.connection.follow(from, (response) => {
      const event = eventOf(response, this.names);
      if (event === null) return null;
      const { position, bytes } = event;
      const record = this.damage.receive(event);
      if (record !== null) last = position;
      passed = record === null ? passed + 1 : 0;
      if (passed % RUN === 0 && passed > 0) this.end.pass(last ?? after, position);
      this.end.carry(from, position, last);
      return { position, record, bytes };
    });
  }

  private readingOf(stream: string, from: number | null): Reading {
    return { stream, from, isSkipped: (version) => this.damage.isSkipped(stream, version) };
  }

  /** @throws DomainError `event_log_damaged` where something is missing in between, or none of ours */
  private whole({ records, damages }: StreamContent, stream: string): readonly RecordedEvent[] {
    this.damage.refuse(stream, damages);
    return records;
  }

  /** The events that a stream has there. `isAll`: it has others only where it shows some. @throws DomainError `event_log_damaged` where it hides them */
  private async eventsIn(
    stream: string,
    request: ReadRequest,
    { isAll, deadline = Date.now() + ANSWER_MS }: { readonly isAll: boolean; readonly deadline?: number },
  ): Promise<readonly LogEvent[]> {
    await this.damage.require(stream);
    try {
      const responses = await this.asked(deadline, (milliseconds) => this.connection.read(request, milliseconds));
      const events = this.eventsOf(responses);
      if (events.length === 0 && (isAll || responses.some((response) => response.hasStreamNotFound()))) await this.damage.requireEmpty(stream);
      return events;
    } catch (error) {
      if (!(error instanceof StreamDeletedError)) throw error;
      this.damage.refuse(stream, [{ stream, revision: null, position: null, cause: 'deleted' }]);
      throw error;
    }
  }

  /** The last metadata of a stream; null where the user may not read them, which is nothing to complain about: the log tells of them too. */
  private metadataOf(stream: string): Promise<readonly LogEvent[] | null> {
    return this.asked(Date.now() + ANSWER_MS, async (milliseconds) => {
      try {
        return this.eventsOf(await this.connection.read(streamBackwards(this.names.metadata(stream), 1), milliseconds));
      } catch (error) {
        if (failureOf(error) !== 'refused') throw error;
        return null;
      }
    });
  }

  /** What was appended stands elsewhere than where it was decided for: the stream was cut before. Nobody takes it for something that happened. */
  private misplaced(
    stream: string,
    { revision, position, count }: { readonly revision: number; readonly position: Position; readonly count: number },
  ): DomainError {
    for (let each = revision - count + 1; each <= revision; each++)
      this.damage.report({ stream, revision: each, position: each === revision ? position : null, cause: 'misplaced' });
    return eventLogDamaged(stream, true);
  }

  /** To the stream for damage. @throws WrongVersion */
  private async note(expectedVersion: number, event: NewEvent): Promise<void> {
    const { damage: stream } = this.names;
    const answer = await this.answeredAppend(stream, Date.now() + ANSWER_MS, () => appendRequest(stream, expectedVersion, [event]));
    if (refusalOf(answer) === 'WrongExpectedVersion') throw new WrongVersion(stream, expectedVersion);
    if (answer.hasError()) throw new RangeError(`EventStoreDB does not take the append to ${stream}: ${refusalOf(answer)}.`);
  }

  /** What an append is answered in the end. A repeat is a request of its own with the same event ids: its answer cannot be taken for the answer to the first. */
  private answeredAppend(stream: string, deadline: number, requested: () => BatchRequest): Promise<BatchResponse> {
    return this.asked(deadline, async (milliseconds) => {
      const answer = await this.connection.append(requested(), milliseconds);
      if (refusalOf(answer) === 'AccessDenied') throw new AppendRefused(`EventStoreDB does not let the user append to ${stream}.`);
      if (answer.hasError() && !isFinal(answer)) throw new Error(`EventStoreDB has not appended: ${answer.getError()!.getMessage()}`);
      return answer;
    });
  }

  /** Events that stand where these would: ours, when an earlier attempt had put them there. @throws WrongVersion */
  private async repeated(
    stream: string,
    expectedVersion: number,
    { events, deadline }: { readonly events: readonly NewEvent[]; readonly deadline: number },
  ): Promise<Appended> {
    const from = expectedVersion + 1;
    // Something stands where they would: where it does not show, it is hidden.
    const found = await this.eventsIn(stream, streamForwards(this.names.stored(stream), from, events.length), { isAll: true, deadline });
    const recorded = this.whole(contentForwards(found, this.readingOf(stream, from)), stream);
    if (recorded.length < events.length || recorded.some(({ id }, index) => id !== events[index]!.id)) throw new WrongVersion(stream, expectedVersion);
    const { version, position } = recorded.at(-1)!;
    return { version, position };
  }

  private async answered(request: ReadRequest): Promise<readonly LogEvent[]> {
    return this.asked(Date.now() + ANSWER_MS, async (milliseconds) => this.eventsOf(await this.connection.read(request, milliseconds)));
  }

  /** Asks as often as there is time: a leader that was elected, or a server that was started, a moment ago is found by asking again. */
  private async asked<Answer>(deadline: number, ask: (milliseconds: number) => Promise<Answer>): Promise<Answer> {
    let cause: unknown;
    for (;;) {
      try {
        return await ask(deadline - Date.now());
      } catch (error) {
        // That the last try had no time left says nothing; what the server said before it does.
        cause = isUnavailable(error) && cause !== undefined ? cause : error;
        const isOver = Date.now() + RETRY_MS >= deadline;
        if (isOver || failureOf(error) !== 'passing') throw this.translated(cause);
        await pause(RETRY_MS);
      }
    }
  }

  private eventsOf(responses: readonly ReadResponse[]): readonly LogEvent[] {
    return responses.flatMap((response) => eventOf(response, this.names) ?? []);
  }

  /** What it means to a caller, who learns nothing of hosts and users; the log does. */
  private translated(error: unknown): unknown {
    if (error instanceof DomainError || error instanceof WrongVersion) return error;
    switch (failureOf(error)) {
      case 'ours':
      case 'deleted':
        return error;
      case 'refused':
        this.tell(
          'EventStoreDB does not let the user in EVENTSTORE_URL do what was asked of it. What a user has to be allowed stands in docs/operations.md.',
          error,
        );
        return withCause(unavailable('The event store refuses this server.'), error);
      case 'passing':
        this.tell('EventStoreDB does not do what it is asked.', error, 'warn');
        return withCause(unavailable('EventStoreDB cannot be reached.'), error);
    }
  }

  private tell(sentence: string, error: unknown, level: 'error' | 'warn' = 'error'): void {
    const now = performance.now();
    if (!this.isConnected || now - (this.said.get(sentence) ?? -Infinity) < SAID_MS) return;
    this.said.set(sentence, now);
    this.log[level](sentence, { error });
  }
}

/** Refusals that a repeat would meet again. Everything else is a matter of time. */
function isFinal(response: BatchResponse): boolean {
  return ['WrongExpectedVersion', 'MaximumAppendSizeExceeded', 'BadRequest', 'StreamDeleted'].includes(refusalOf(response));
}

/** @throws StartRefused where that is why; the error otherwise */
function refusedToRead(stream: string, error: unknown): never {
  if (!isRefused(error)) throw error;
  throw new StartRefused(`EventStoreDB does not let the user in EVENTSTORE_URL read ${stream}. What a user has to be allowed stands in docs/operations.md.`);
}

function withCause(error: DomainError, cause: unknown): DomainError {
  return Object.assign(error, { cause });
}
