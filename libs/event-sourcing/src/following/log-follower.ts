import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '#libs/platform/src/clock';
import { within } from '#libs/platform/src/deadline';
import { NeedsLaterRelease, unavailable } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import { type EventStore, type Position, PositionOfAnotherLog, type RecordedEvent } from '../log/event-store.ts';

/** How often the head is asked for. */
const HEARTBEAT = 1_000;
const HEAD_LIMIT = 5_000;
/** Behind the head without moving for so long, a subscription is taken for dead: a connection can hang without breaking. */
const STUCK = 5_000;
const FIRST_RETRY = 100;
/** What happened while the log was away has to be heard within a second of its return. */
const LAST_RETRY = 500;

export interface LogFollowerNeeds {
  readonly events: EventStore;
  readonly clock: Clock;
  readonly log: Log;
}

/** What one process keeps in memory of the log. */
export interface Followed {
  /** Names it in log lines. */
  readonly name: string;
  /** Prepares what is kept, and says up to where it knows the log. `isAgain`: the log is another one than before, restored to an earlier state. */
  begin(isAgain: boolean): Promise<Position>;
  handle(batch: readonly RecordedEvent[]): void | Promise<void>;
  /** Somebody waits for each event. */
  readonly pace?: 'prompt';
}

/**
 * Follows the log for as long as the process runs. A lost connection is taken up again where it broke off, one that hangs is made anew, and where the log
 * ends before what was seen of it, everything begins again.
 */
export class LogFollower {
  private readonly stopping = new AbortController();
  private subscription = new AbortController();
  private following: Promise<void> = Promise.resolve();
  private beating: NodeJS.Timeout | undefined;
  /** Null: nothing is known yet, or nothing any more. */
  private position: Position | null = null;
  private heard = 0;
  private isAsking = false;
  private isAway = false;
  private behind: { readonly position: Position; readonly since: number } | null = null;
  /** It came to what only a later release can read: whoever needs to know that is refused, for as long as the process runs. */
  private left: NeedsLaterRelease | null = null;
  private readonly waiting = new Set<() => void>();

  constructor(
    private readonly followed: Followed,
    private readonly needs: LogFollowerNeeds,
  ) {}

  /** Resolves when the log is followed for the first time, which may take as long as its engine is away; or when it was stopped. */
  async start(): Promise<void> {
    const begun = new Promise<void>((resolve) => {
      this.following = this.follow(resolve).finally(resolve);
    });
    this.beating = setInterval(() => void this.listen(), HEARTBEAT);
    this.beating.unref();
    await begun;
  }

  async stop(): Promise<void> {
    clearInterval(this.beating);
    this.stopping.abort();
    this.moved();
    await this.following;
  }

  /** When everything in the log was known here for certain, in milliseconds since the epoch; 0: never yet. */
  get heardAt(): number {
    return this.heard;
  }

  /**
   * Resolves once everything up to `position` was handled; also where the log ends before it, since then it is the position of another log.
   * @throws DomainError `service_unavailable` past the deadline (milliseconds since the epoch); NeedsLaterRelease
   */
  async reached(position: Position, deadline: number): Promise<void> {
    while (this.position === null || this.position < position) {
      if (this.left !== null) throw this.left;
      const left = deadline - this.needs.clock.now();
      if (left <= 0 || this.stopping.signal.aborted) throw unavailable('This process has not read the log so far yet.');
      await this.movedWithin(Math.min(left, HEARTBEAT));
      if (this.position !== null && this.position < position && (await this.endsBefore(position, deadline))) return;
    }
  }

  private async follow(onBegun: () => void): Promise<void> {
    const { signal } = this.stopping;
    const { events, log } = this.needs;
    const { name } = this.followed;
    let isAgain = false;
    for (let wait = FIRST_RETRY; !signal.aborted; wait = Math.min(wait * 2, LAST_RETRY)) {
      try {
        if (this.position === null) {
          const asked = this.needs.clock.now();
          const head = await this.head();
          this.position = await this.followed.begin(isAgain);
          isAgain = true;
          if (this.position >= head) this.hearAll(asked);
        }
        onBegun();
        this.subscription = new AbortController();
        const { signal: ended } = this.subscription;
        for await (const batch of events.subscribe(this.position, AbortSignal.any([signal, ended]), this.followed.pace)) {
          wait = FIRST_RETRY;
          await this.followed.handle(batch);
          if (ended.aborted) break;
          this.position = batch.at(-1)?.position ?? this.position;
          this.moved();
        }
      } catch (error) {
        if (error instanceof NeedsLaterRelease) return this.leave(error);
        if (error instanceof PositionOfAnotherLog) this.restart();
        else if (!this.isAway) log.warn('The log cannot be followed at the moment; it is taken up again where it broke off.', { name, error });
        this.isAway = true;
      }
      await pause(wait, undefined, { signal }).catch(() => {});
    }
  }

  /** A quiet log is no silence: who has read up to its head has heard everything. */
  private async listen(): Promise<void> {
    if (this.isAsking || this.position === null) return;
    this.isAsking = true;
    const { clock, log } = this.needs;
    const asked = clock.now();
    const before = this.position;
    try {
      const head = await this.head();
      if (before > head) this.restart();
      else if (this.position >= head) this.hearAll(asked);
      else this.renewWhereStuck();
    } catch (error) {
      if (!this.isAway) log.warn('The head of the log cannot be read.', { name: this.followed.name, error });
      this.isAway = true;
    } finally {
      this.isAsking = false;
    }
  }

  private hearAll(asked: number): void {
    if (this.isAway) this.needs.log.info('The log is followed again.', { name: this.followed.name });
    this.isAway = false;
    this.behind = null;
    this.heard = Math.max(this.heard, asked);
  }

  private renewWhereStuck(): void {
    const now = performance.now();
    const position = this.position!;
    if (this.behind?.position !== position) this.behind = { position, since: now };
    if (now - this.behind.since < STUCK) return;
    this.needs.log.warn('A subscription to the log stands still and is made anew.', { name: this.followed.name, position });
    this.behind = null;
    this.subscription.abort();
  }

  private leave(reason: NeedsLaterRelease): void {
    this.left = reason;
    this.needs.log.warn('What this process keeps in memory needs an event that only a later release can read; what depends on it is refused here.', {
      name: this.followed.name,
      error: reason.message,
    });
    this.moved();
  }

  private restart(): void {
    this.needs.log.error('The log does not have the position that was seen last: it was restored to an earlier state, and is read anew.', {
      name: this.followed.name,
    });
    this.position = null;
    this.heard = 0;
    this.subscription.abort();
  }

  private async endsBefore(position: Position, deadline: number): Promise<boolean> {
    try {
      return position > (await this.head(deadline - this.needs.clock.now()));
    } catch {
      return false;
    }
  }

  private head(patience = HEAD_LIMIT): Promise<Position> {
    return within(this.needs.events.head(), Math.min(patience, HEAD_LIMIT), () => unavailable('The log does not say where it ends.'));
  }

  private moved(): void {
    for (const wake of this.waiting) wake();
  }

  private movedWithin(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, milliseconds);
      this.waiting.add(wake);
    });
  }
}
