import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '#libs/platform/src/clock';
import { NeedsLaterRelease, unavailable } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import { type EventStore, type Position, PositionOfAnotherLog, type RecordedEvent } from '../log/event-store.ts';
import { Follower } from './follower.ts';
import { type Listener, LogReader } from './log-reader.ts';
import { type Awaited, PositionGate } from './position-gate.ts';
import { LogPutBack } from './reading.ts';

const FIRST_RETRY = 100;
/** What happened while the log was away has to be heard within a second of its return (milliseconds). */
const LAST_RETRY = 500;
/** For tens of thousands of questions a second. */
const REACHED = Promise.resolve();

/** What one process keeps in memory of the log. */
export interface Remembered {
  /** Names it in log lines. */
  readonly name: string;
  /** Of the events that it handles; null: all. */
  readonly types: readonly string[] | null;
  /** Which of these it handles, by what is known without their content; absent: all. */
  readonly isFor?: (event: RecordedEvent) => boolean;
  /** Somebody waits for each event. */
  readonly pace?: 'prompt';
  /** It looks into none of them: nobody's keys are asked for on its account. */
  readonly isByEnvelope?: true;
  /** Prepares what is kept, and says up to where it knows the log. `isAgain`: the log is another one than before, put back to an earlier state. */
  begin(isAgain: boolean): Promise<Position>;
  handle(events: readonly RecordedEvent[], upTo: Position): void | Promise<void>;
  /** It came to what only a later release can read, and learns nothing more. */
  left?(reason: NeedsLaterRelease): void;
}

/** How a process follows the log: it reads it once for all who do. */
export class LogFollowing {
  readonly reader: LogReader;
  readonly gate: PositionGate;

  constructor(
    events: EventStore,
    readonly clock: Clock,
    readonly log: Log,
  ) {
    this.reader = new LogReader(events, clock);
    this.gate = new PositionGate(this.reader, clock);
  }

  /** To be started and stopped by whoever has it. */
  remember(remembered: Remembered): MemoryFollower {
    return new MemoryFollower(remembered, this);
  }
}

/**
 * Keeps something in memory of the log for as long as the process runs. A lost connection is taken up again where it broke off, and where the log does not have what was seen
 * of it, everything begins again.
 */
export class MemoryFollower implements Listener, Awaited {
  readonly isElsewhere = false;
  private readonly stopping = new AbortController();
  private readonly follower: Follower;
  private running: Promise<void> = Promise.resolve();
  /** Where it goes on; null: nothing is known yet, or nothing any more. */
  private from: Position | null = null;
  private hasBegun = false;
  private heard = 0;
  private isAway = false;
  /** It came to what only a later release can read: whoever needs to know that is refused, for as long as the process runs. */
  private left: NeedsLaterRelease | null = null;

  constructor(
    private readonly remembered: Remembered,
    private readonly following: LogFollowing,
  ) {
    const { types, pace, isByEnvelope } = remembered;
    const isFor = remembered.isFor?.bind(remembered);
    this.follower = new Follower({ types, pace, isByEnvelope, isFor, handle: (events, { position }) => remembered.handle(events, position) }, following.reader);
  }

  /** Resolves when the log is followed for the first time, which may take as long as its engine is away; or when it was stopped. */
  async start(): Promise<void> {
    this.following.reader.listen(this);
    await new Promise<void>((resolve) => {
      this.running = this.run(resolve).finally(resolve);
    });
  }

  async stop(): Promise<void> {
    this.following.reader.leave(this);
    this.stopping.abort();
    this.following.gate.moved();
    await this.running;
  }

  /** When everything in the log was known here for certain, in milliseconds since the epoch; 0: never yet. */
  get heardAt(): number {
    return this.heard;
  }

  /**
   * Resolves once everything up to `position` was handled; also where the log ends before it, since then it is the position of another log.
   * @throws DomainError `service_unavailable` past the deadline (milliseconds since the epoch); NeedsLaterRelease
   */
  reached(position: Position, deadline: number): Promise<void> {
    return this.following.gate.reached(position, deadline, [this]);
  }

  /**
   * As `reached`, for the end of the log as it stands after the call.
   * @throws DomainError as `reached`, and where the log was put back meanwhile, or while nobody here read it: nobody waits for that position any more, and what is in
   * memory is of another log
   */
  headReached(deadline: number): Promise<void> {
    return this.isAtHead ? REACHED : this.headAwaited(deadline);
  }

  /** Nobody has to be asked, and nothing to be waited for. */
  private get isAtHead(): boolean {
    const { headAtHand, end } = this.following.reader;
    return headAtHand !== null && headAtHand === this.follower.position && headAtHand >= end;
  }

  private async headAwaited(deadline: number): Promise<void> {
    const { position } = this.follower;
    const head = await this.following.gate.headReached(deadline, [this]);
    if (!this.hasSeen(head) || (position !== null && head < position)) throw unavailable('The log is not the one that this process knows.');
  }

  /** Whoever waits for what is stopped would wait for its deadline. */
  get refusal(): Error | null {
    return this.left ?? (this.stopping.signal.aborted ? unavailable('This process is ending.') : null);
  }

  hasSeen(position: Position): boolean {
    return this.follower.hasSeen(position);
  }

  hurry(position: Position): void {
    this.follower.hurry(position);
  }

  headIs(head: Position, asked: number): void {
    if (this.follower.hasSeen(head)) this.hearAll(asked);
  }

  headIsUnknown(error: unknown): void {
    this.tell('The end of the log cannot be read.', error);
  }

  private async run(onBegun: () => void): Promise<void> {
    const { signal } = this.stopping;
    for (let wait = FIRST_RETRY; !signal.aborted; wait = Math.min(wait * 2, LAST_RETRY)) {
      try {
        await this.begin();
        onBegun();
        const before = this.follower.position;
        await this.follower.follow(signal).finally(() => {
          this.from = this.follower.position;
          if (this.from !== before) wait = FIRST_RETRY;
        });
      } catch (error) {
        if (error instanceof NeedsLaterRelease) return this.leave(error);
        if (error instanceof PositionOfAnotherLog || error instanceof LogPutBack) this.forget();
        else this.tell('The log cannot be followed at the moment; it is taken up again where it broke off.', error);
        this.isAway = true;
      }
      await pause(wait, undefined, { signal }).catch(() => {});
    }
  }

  private async begin(): Promise<void> {
    const { reader, clock } = this.following;
    if (this.from === null) {
      const asked = clock.now();
      const head = await reader.head();
      this.from = await this.remembered.begin(this.hasBegun);
      this.hasBegun = true;
      if (this.from >= head) this.hearAll(asked);
    }
    this.follower.begin(this.from);
  }

  /** A quiet log is no silence: who has read up to its end has heard everything. */
  private hearAll(asked: number): void {
    if (this.isAway) this.following.log.info('The log is followed again.', { name: this.remembered.name });
    this.isAway = false;
    this.heard = Math.max(this.heard, asked);
  }

  private leave(reason: NeedsLaterRelease): void {
    this.left = reason;
    this.following.log.warn('What this process keeps in memory needs an event that only a later release can read; what depends on it is refused here.', {
      name: this.remembered.name,
      error: reason,
    });
    this.following.gate.moved();
    this.remembered.left?.(reason);
  }

  private forget(): void {
    this.following.log.error('The log does not have the position that was seen last: it was restored to an earlier state, and is read anew.', {
      name: this.remembered.name,
    });
    this.follower.forget();
    this.from = null;
    this.heard = 0;
  }

  private tell(sentence: string, error: unknown): void {
    if (!this.isAway) this.following.log.warn(sentence, { name: this.remembered.name, error });
    this.isAway = true;
  }
}
