import { setTimeout as pause } from 'node:timers/promises';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { LogIdentity } from '#libs/platform/src/storage/log-note';
import { causeAt } from '#libs/platform/src/unreachable';
import { type Appended, EventStore, type NewEvent, type Position, type RecordedEvent, START, WrongVersion } from './event-store.ts';
import { Connection } from './eventstoredb/connection.ts';
import { checkedUrl, endpointsOf } from './eventstoredb/connection-string.ts';
import { AppendRefused, failureOf } from './eventstoredb/failures.ts';
import { identityEvent, identityIn } from './eventstoredb/log-identity.ts';
import { LogSubscribers } from './eventstoredb/log-subscribers.ts';
import type { LogSubscription } from './eventstoredb/log-subscription.ts';
import { StreamNames } from './eventstoredb/stream-names.ts';
import {
  allBackwards,
  allFollowing,
  appendRequest,
  type BatchResponse,
  eventOf,
  type LogEvent,
  positionOf,
  type ReadRequest,
  type ReadResponse,
  refusalOf,
  streamBackwards,
  streamForwards,
} from './eventstoredb/wire.ts';

/** Whoever asks learns within this time that nobody answers. */
const ANSWER_MS = 4_000;
const RETRY_MS = 100;
/** How long the start waits: a cluster starts in any order. */
const PATIENCE_MS = 60_000;
const START_RETRY_MS = 1_000;
/** System events that are looked through at once for the last of our own. */
const LOOK_BACK = 64;
/** The same trouble is said this often. */
const SAID_MS = 60_000;

interface Options {
  /** A connection string. */
  readonly url: string;
  /** Whose streams are the log; the server may hold those of others. */
  readonly installation: string;
  readonly log: Log;
  /** Milliseconds that `connect` waits for an answer. */
  readonly patience?: number;
}

/** The log in EventStoreDB, which all processes of a cluster share. Nobody sees streams of the server, of other installations and of other products here. */
export class EventstoredbEventStore extends EventStore {
  /** Everything up to `scanned` is known: the last event of ours in it is at `head`. */
  private known: { readonly scanned: Position; readonly head: Position } = { scanned: START, head: START };

  private readonly subscribers: LogSubscribers;

  /** Before that, whoever starts it says what is wrong. */
  private isConnected = false;
  /** When each trouble was said last. */
  private readonly said = new Map<string, number>();

  private constructor(
    private readonly connection: Connection,
    private readonly names: StreamNames,
    private readonly log: Log,
    private readonly patience: number,
  ) {
    super();
    const open = (after: Position): LogSubscription => connection.follow(allFollowing(after === START ? null : after), names);
    this.subscribers = new LogSubscribers({ open, head: () => this.head() });
  }

  /** @throws StartRefused when the connection string is none, the credentials are wrong, or nobody answers there */
  static async connect({ url, installation, log, patience = PATIENCE_MS }: Options): Promise<EventstoredbEventStore> {
    const endpoints = endpointsOf(checkedUrl(url));
    const store = new EventstoredbEventStore(new Connection(url), new StreamNames(installation), log, patience);
    const deadline = Date.now() + patience;
    for (let attempt = 1; ; attempt++) {
      try {
        await store.head();
        store.isConnected = true;
        return store;
      } catch (error) {
        const failure = failureOf(error instanceof DomainError ? error.cause : error);
        if (failure === 'passing' && attempt === 1) log.warn(`EventStoreDB does not answer yet${await causeAt(endpoints)}.`, { error });
        if (failure === 'passing' && Date.now() < deadline) {
          await pause(START_RETRY_MS);
          continue;
        }
        await store.close();
        if (failure === 'ours') throw error;
        if (failure === 'refused') throw new StartRefused('EventStoreDB refuses the name and password in EVENTSTORE_URL, or does not let them read $all.');
        if (failure === 'unreadable') throw new StartRefused('EventStoreDB, at the hosts of EVENTSTORE_URL, ends with an event that is none of ours.');
        throw new StartRefused(`EventStoreDB has not answered for ${patience / 1_000} s at the hosts of EVENTSTORE_URL${await causeAt(endpoints)}.`);
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
    const deadline = Date.now() + this.patience;
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
    this.connection.close();
  }

  async read(stream: string, from = 1): Promise<readonly RecordedEvent[]> {
    return recordsOf(await this.answered(streamForwards(this.names.stored(stream), from)));
  }

  async readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
    // There is nothing before the first version, and no revision to ask for.
    if (from !== undefined && from < 1) return [];
    return recordsOf(await this.answered(streamBackwards(this.names.stored(stream), count, from)));
  }

  async last(stream: string): Promise<RecordedEvent | null> {
    return (await this.readBackwards(stream, 1))[0] ?? null;
  }

  async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    if (events.length === 0) throw new RangeError(`An append to ${stream} needs events.`);
    const stored = this.names.stored(stream);
    const deadline = Date.now() + ANSWER_MS;
    let isRepeat = false;
    const response = await this.asked(deadline, async (milliseconds) => {
      // A repeat is a request of its own with the same event ids: its answer cannot be taken for the answer to the first.
      const request = appendRequest(stored, expectedVersion, events);
      const wasRepeat = isRepeat;
      isRepeat = true;
      const answer = await this.connection.append(request, milliseconds);
      if (refusalOf(answer) === 'AccessDenied') throw new AppendRefused(`EventStoreDB does not let the user append to ${stream}.`);
      if (answer.hasError() && !isFinal(answer)) throw new Error(`EventStoreDB has not appended: ${answer.getError()!.getMessage()}`);
      return { answer, wasRepeat };
    });
    const position = response.answer.getSuccess()?.getPosition();
    // What a repeat is told of the position of the first attempt is not relied on.
    if (position !== undefined && !response.wasRepeat) {
      const at = { commit: position.getCommitPosition(), prepare: position.getPreparePosition() };
      return { version: expectedVersion + events.length, position: positionOf(at) };
    }
    if (response.answer.hasError() && refusalOf(response.answer) !== 'WrongExpectedVersion')
      throw new RangeError(`EventStoreDB does not take the append to ${stream}: ${refusalOf(response.answer)}.`);
    return this.repeated(stream, expectedVersion, { events, deadline });
  }

  async head(): Promise<Position> {
    return this.asked(Date.now() + ANSWER_MS, async (milliseconds) => {
      let newest: Position | null = null;
      let before: LogEvent['at'] | null = null;
      for (let count = 1; ; count = LOOK_BACK) {
        const events = this.eventsOf(await this.connection.read(allBackwards(before, count), milliseconds));
        for (const { position, record } of events) {
          // A log that was put back to an earlier state: nothing is known of it any more.
          if (newest === null && position < this.known.scanned) this.known = { scanned: START, head: START };
          newest ??= position;
          if (position <= this.known.scanned) return this.remember(newest, this.known.head);
          if (record !== null) return this.remember(newest, position);
        }
        if (events.length < count) return this.remember(newest ?? START, START);
        before = events.at(-1)!.at;
      }
    });
  }

  async *subscribe(after: Position, signal: AbortSignal, pace?: 'prompt'): AsyncIterable<readonly RecordedEvent[]> {
    try {
      yield* this.subscribers.follow(after, { signal, pace });
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

  /** Never goes back: an answer that comes late must not undo a later one. */
  private remember(scanned: Position, head: Position): Position {
    if (scanned >= this.known.scanned) this.known = { scanned, head };
    return head;
  }

  /** Events that stand where these would: ours, when an earlier attempt had put them there. @throws WrongVersion */
  private async repeated(
    stream: string,
    expectedVersion: number,
    { events, deadline }: { readonly events: readonly NewEvent[]; readonly deadline: number },
  ): Promise<Appended> {
    const recorded = recordsOf(await this.answered(streamForwards(this.names.stored(stream), expectedVersion + 1, events.length), deadline));
    if (recorded.length < events.length || recorded.some(({ id }, index) => id !== events[index]!.id)) throw new WrongVersion(stream, expectedVersion);
    const { version, position } = recorded.at(-1)!;
    return { version, position };
  }

  private async answered(request: ReadRequest, deadline = Date.now() + ANSWER_MS): Promise<readonly LogEvent[]> {
    return this.asked(deadline, async (milliseconds) => this.eventsOf(await this.connection.read(request, milliseconds)));
  }

  /** Asks as often as there is time: a leader that was elected, or a server that was started, a moment ago is found by asking again. */
  private async asked<Answer>(deadline: number, ask: (milliseconds: number) => Promise<Answer>): Promise<Answer> {
    for (;;) {
      try {
        return await ask(deadline - Date.now());
      } catch (error) {
        const isOver = Date.now() + RETRY_MS >= deadline;
        if (isOver || failureOf(error) !== 'passing') throw this.translated(error);
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
        return error;
      case 'refused':
        this.tell(
          'EventStoreDB does not let the user in EVENTSTORE_URL do what was asked of it. What a user has to be allowed stands in docs/operations.md.',
          error,
        );
        return withCause(unavailable('The event store refuses this server.'), error);
      case 'unreadable':
        this.tell('EventStoreDB holds an event in a stream of ours that is none of ours.', error);
        return withCause(unavailable('The log holds what this server cannot read.'), error);
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

function isRefused(error: unknown): boolean {
  return error instanceof DomainError && failureOf(error.cause) === 'refused';
}

function recordsOf(events: readonly LogEvent[]): readonly RecordedEvent[] {
  return events.flatMap(({ record }) => record ?? []);
}

function withCause(error: DomainError, cause: unknown): DomainError {
  return Object.assign(error, { cause });
}
