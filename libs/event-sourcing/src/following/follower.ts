import type { LogPlace } from '#libs/read-models/src/read-models';
import type { Position, RecordedEvent } from '../log/event-store.ts';
import { Cursor } from './cursor.ts';
import type { LogReader } from './log-reader.ts';
import type { Awaited } from './position-gate.ts';

/** What follows the log. */
export interface Followed {
  /** Of the events that it handles; null: all. What else is recorded costs it nothing. */
  readonly types: readonly string[] | null;
  /** Which of these it handles, by what is known without their content; absent: all. */
  readonly isFor?: ((event: RecordedEvent) => boolean) | undefined;
  /** Somebody waits for each event. */
  readonly pace?: 'prompt' | undefined;
  /** It looks into none of them: nobody's keys are asked for on its account. */
  readonly isByEnvelope?: boolean | undefined;
  /** Handles the next of them, in order: nothing else that is for it lies before `upTo`. What it throws on is not behind it. */
  handle(events: readonly RecordedEvent[], upTo: LogPlace, signal: AbortSignal): void | Promise<void>;
}

/**
 * Brings one thing along the log: a view, a forwarder, what a process keeps in memory. Where it begins, what it stores of where it has come, and whether a lease lets it, is
 * the business of whoever has it.
 */
export class Follower implements Awaited {
  readonly isElsewhere = false;
  private readonly types: ReadonlySet<string> | null;
  private cursor: Cursor | null = null;
  /** On what it was handed last. */
  private hasFailed = false;

  constructor(
    private readonly followed: Followed,
    private readonly reader: LogReader,
  ) {
    this.types = followed.types === null ? null : new Set(followed.types);
  }

  /** Everything up to here was handled; null: it has not begun, or was told to forget where it was. */
  get position(): Position | null {
    return this.cursor?.position ?? null;
  }

  /** As `position`, with the record there. */
  get place(): LogPlace | null {
    return this.cursor?.place ?? null;
  }

  hasSeen(position: Position): boolean {
    return this.cursor !== null && this.cursor.position >= position;
  }

  hurry(position: Position): void {
    this.cursor?.hurry(position);
  }

  /** It has a place in what is read of the log. */
  get goesAlong(): boolean {
    return this.cursor?.hasPlace === true;
  }

  /** As of a cursor. */
  behindSince(head: Position): number | null {
    return this.cursor?.behindSince(head) ?? null;
  }

  /** From there it is to go on. Several that are given a place together go along together until they meet the others. */
  begin(from: Position): Cursor {
    return (this.cursor = new Cursor(this.types, from, { ...this.followed, isAfresh: this.hasFailed }));
  }

  forget(): void {
    this.cursor = null;
  }

  /**
   * Follows the log from where it began until the signal aborts, or, between two batches, `over` does. `isSeated`: it was given a place already.
   * @throws what it broke off on: what `handle` throws, what has ended the reading, `PositionOfAnotherLog` and `LogPutBack` where the log does not have its position
   */
  async follow(signal: AbortSignal, { isSeated = false, over }: { readonly isSeated?: boolean; readonly over?: AbortSignal } = {}): Promise<void> {
    const { cursor, followed, reader } = this;
    if (cursor === null) throw new Error('What follows the log has to begin somewhere.');
    const ending = over === undefined ? signal : AbortSignal.any([signal, over]);
    const wake = (): void => cursor.wake();
    ending.addEventListener('abort', wake);
    try {
      for (let hasPlace = isSeated; !ending.aborted; hasPlace = false) {
        if (!hasPlace) await reader.seat([cursor], ending);
        for (let taken = await cursor.take(ending); taken !== null; taken = await cursor.take(ending)) {
          this.hasFailed = true;
          await followed.handle(taken.records, taken.upTo, signal);
          this.hasFailed = false;
          // What was cut short is not behind it.
          if (signal.aborted) return;
          cursor.done(taken.upTo);
        }
      }
    } finally {
      ending.removeEventListener('abort', wake);
      cursor.end();
    }
  }
}
