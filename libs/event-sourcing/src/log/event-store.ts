import { DomainError } from '#libs/platform/src/domain-error';
import type { Origin } from '#libs/platform/src/request-context';

/** Opaque text that sorts across all streams of one log; hand it back to resume, never take it apart. */
export type Position = string;

/** Sorts before every position. */
export const START: Position = '';

/** Whether a text can be a position at all, of whichever log. */
export function isPosition(text: unknown): text is Position {
  return typeof text === 'string' && /^(?:\d+(?:-\d+)?)?$/.test(text);
}

/** A public event that a record announces: its id is given at append, so that feed, Kafka, webhooks and a rebuild agree. */
export interface PublicEventReference {
  readonly id: string;
  readonly name: string;
}

export interface EventMeta {
  readonly environment: string;
  readonly organization?: string;
  readonly actor: { readonly id: string; readonly source: string; readonly name: string | null };
  readonly requestId: string;
  readonly commandId: string;
  readonly causationId?: string;
  readonly traceparent?: string;
  /** Of a fact of administration, from where it came; of a record, sealed: see `origins.ts`. */
  readonly origin?: Origin | string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** What of an event is personal to whom: it lies under the key of that holder, and reads as null once that is destroyed. */
export interface SealedPart {
  /** The holder: `user.<id>`, `invitation.<id>`, `organization.<id>.<yyyy-mm>`. */
  readonly of: string;
  /** Paths such as `data.email`; `*` stands for every item of a list. A whole object may be one sealed text. */
  readonly fields: readonly string[];
}

/** An event to record. */
export interface NewEvent {
  /** A bare ULID; the same id at the same expected version again is a repeat, not a conflict. */
  readonly id: string;
  /** The public event name where one exists, dotted past tense otherwise. */
  readonly type: string;
  /** Counts from 1 per type and picks the upcast. */
  readonly shape: number;
  readonly data: unknown;
  /** The public resource as of the event (under 64 KB), or null. */
  readonly subject: unknown;
  readonly public: readonly PublicEventReference[];
  /** What is to be sealed; of a record, what is. Absent: nothing, and in records of earlier releases what these sealed. */
  readonly sealed?: readonly SealedPart[] | undefined;
  readonly meta: EventMeta;
}

/** An event as recorded. Treat as frozen: readers share it. */
export interface RecordedEvent extends NewEvent {
  readonly stream: string;
  /** Counts from 1 in its stream. */
  readonly version: number;
  readonly position: Position;
}

export interface Appended {
  /** The version of the last event appended. */
  readonly version: number;
  readonly position: Position;
}

/** What `append` is given. */
export interface Append {
  readonly stream: string;
  readonly expectedVersion: number;
  readonly events: readonly NewEvent[];
}

/** Another append reached the stream first: load again and decide again. */
export class WrongVersion extends Error {
  constructor(
    readonly stream: string,
    readonly expected: number,
  ) {
    super(`${stream} is not at version ${expected}.`);
  }
}

/** The log does not have this position: it was restored to an earlier state and went on from there, or it is another log than the position was read in. */
export class PositionOfAnotherLog extends DomainError {
  constructor(
    readonly position: Position,
    cause?: unknown,
  ) {
    super('unavailable', 'service_unavailable', `The log does not have the position ${position}: it was restored to an earlier state, or is another one.`, {
      retryAfter: 30,
    });
    this.cause = cause;
  }
}

/** What an append may come to, whatever keeps the log: EventStoreDB takes no more at once, as it counts (`appendBytes`). */
export const MAX_APPEND_BYTES = 1024 * 1024;

/** An append is more than the log takes at once: it has to be split, or asked for in smaller pieces. Nothing was recorded. */
export class AppendTooLarge extends RangeError {
  constructor(
    readonly stream: string,
    readonly bytes: number,
  ) {
    super(`An append to ${stream} has ${bytes} bytes, and the log takes ${MAX_APPEND_BYTES} at once.`);
  }
}

/** Whether somebody looks into a record, by what is known without its content. */
export type LooksInto = (record: RecordedEvent) => boolean;

/** The log: the one source of truth. One contract suite, `event-store.contract.ts`, holds every adapter to this. */
export abstract class EventStore {
  /**
   * Events of one stream from version `from` (default 1) on, in order; empty for a stream that never was. Read from the leader.
   * May see an append that is not on disk yet: whatever is decided on it is appended, and hence durable, after it.
   */
  abstract read(stream: string, from?: number): Promise<readonly RecordedEvent[]>;

  /** Up to `count` events of one stream, the newest first, from its end or from a version that it has downwards; what `read` would see. */
  abstract readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]>;

  /** The last event of a stream, or null; what `read` would see, without the events before it. */
  abstract last(stream: string): Promise<RecordedEvent | null>;

  /**
   * Appends at `expectedVersion` (0 = the stream does not exist). Durable before it resolves. One of two racing appends wins.
   * Appending the same event ids at the same expected version again answers as the first time.
   * @throws WrongVersion when the stream is elsewhere; AppendTooLarge
   */
  abstract append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended>;

  /** Whether `appendTogether` is there for whoever would else append one after the other: only where one process writes everything. */
  get appendsTogether(): boolean {
    return false;
  }

  /** As `append`, to several streams: all of it in this order, or nothing. @throws as `append` */
  appendTogether(_appends: readonly Append[]): Promise<readonly Appended[]> {
    throw new Error('This log takes appends one by one.');
  }

  /** The position of the last event on disk, as it stands after the call; START for an empty log. */
  abstract head(): Promise<Position>;

  /** The id of the record at a position; null where the log has none there, or does not show it. */
  idAt(_position: Position): Promise<string | null> {
    return Promise.resolve(null);
  }

  /** As `head`, where the log knows it without asking anybody; null elsewhere. */
  get headAtHand(): Position | null {
    return null;
  }

  /**
   * All events after `after`, history and then live, in order, in batches, until `signal` aborts (which ends the iteration without an error).
   * Sees only what is on disk. Never overlaps batches: the next is read when the consumer asks for it. One that begins beyond the end of the log waits. History is read in
   * small pieces, between which other work of the process gets its turn. What `looksInto` says no to may come unopened: whoever looks into it all the same meets an error.
   * @throws PositionOfAnotherLog where the log can tell that it never had `after`
   */
  abstract subscribe(after: Position, signal: AbortSignal, looksInto?: LooksInto): AsyncIterable<readonly RecordedEvent[]>;
}
