import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { Expiries, type Expiry } from '#libs/platform/src/expiries';
import type { Position } from '../log/event-store.ts';
import type { Listener, LogReader } from './log-reader.ts';

/** Nobody tells this process how far another has come (milliseconds). */
const POLL = 10;

/** Something that somebody waits for, until it has seen the log up to a position. */
export interface Awaited {
  /** Also where nobody is to wait for it. */
  hasSeen(position: Position): boolean;
  /** Why it never will. */
  readonly refusal?: Error | null;
  /** It has not: it is not to wait for company. */
  hurry?(position: Position): void;
  /** Whether another process brings it along: then `look` finds out how far it is. */
  readonly isElsewhere: boolean;
  look?(): Promise<void>;
}

interface Waiter {
  readonly isOver: () => boolean;
  /** What has seen the position may be missing already. */
  readonly awaited: readonly Awaited[];
  /** Null: it waits for no position. */
  readonly position: Position | null;
  readonly since: number;
  readonly expiry: Expiry;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

interface Waiting {
  readonly awaited: readonly Awaited[];
  readonly position?: Position;
  /** Milliseconds since the epoch. */
  readonly deadline?: number;
}

/**
 * Where everything in this process waits that has to know the log up to a position. Waiters cost no timer each; what other processes bring along is read once for all of them;
 * and nobody waits for a position that the log does not have any more, since it was put back to an earlier state.
 */
export class PositionGate implements Listener {
  private readonly waiters = new Set<Waiter>();
  private readonly expiries = new Expiries();
  private isPolling = false;

  constructor(
    private readonly reader: LogReader,
    private readonly clock: Clock,
  ) {
    reader.watch(() => this.passed());
  }

  /**
   * Resolves once all of these have seen the log up to `position`; also where it ends before, since then that is a position of another log.
   * @throws DomainError `service_unavailable` past the deadline (milliseconds since the epoch); why one of them never will
   */
  reached(position: Position, deadline: number, awaited: readonly Awaited[]): Promise<void> {
    const late = awaited.filter((one) => !one.hasSeen(position));
    if (late.length === 0) return Promise.resolve();
    const refusal = refusalOf({ awaited: late, position });
    if (refusal !== null) return Promise.reject(refusal);
    for (const one of late) one.hurry?.(position);
    const isReached = (): boolean => {
      while (late.at(-1)?.hasSeen(position) === true) late.pop();
      return late.length === 0;
    };
    return this.until(isReached, { awaited: late, position, deadline });
  }

  /** As `reached`, for the end of the log as it stands after the call, which it answers: one reading of it serves all who ask meanwhile. */
  async headReached(deadline: number, awaited: readonly Awaited[]): Promise<Position> {
    const { end } = this.reader;
    if (awaited.length === 0) return end;
    const head = await this.reader.head(deadline - this.clock.now());
    // Put back to an earlier state, it is read anew in a moment; until then nobody here knows it.
    if (head < end) throw unavailable('The log is not the one that this process knows.');
    await this.reached(head, deadline, awaited);
    return head;
  }

  /** Resolves once that is so, which is looked at whenever something was read, handled or told. @throws DomainError as `reached` */
  until(isOver: () => boolean, { awaited, position, deadline = Infinity }: Waiting): Promise<void> {
    if (isOver()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const since = this.clock.now();
      const expiry = this.expiries.add(deadline - since, () => this.leave(waiter).reject(unavailable('This process has not read the log so far yet.')));
      const waiter: Waiter = { isOver, awaited, position: position ?? null, since, expiry, resolve, reject };
      if (this.waiters.size === 0) this.reader.listen(this);
      this.waiters.add(waiter);
      if (!this.isPolling && awaited.some(({ isElsewhere }) => isElsewhere)) void this.poll();
    });
  }

  /** Something may be over that somebody waits for, or never will be. */
  moved(): void {
    this.passed();
    for (const waiter of this.waiters) {
      const refusal = refusalOf(waiter);
      if (refusal !== null) this.leave(waiter).reject(refusal);
    }
  }

  /** Whenever anything was read or handled: one look for each who waits, at what was late last. */
  private passed(): void {
    for (const waiter of this.waiters) if (waiter.isOver()) this.leave(waiter).resolve();
  }

  headIs(head: Position, asked: number): void {
    // Who came in the same moment may wait for what was recorded after the question.
    for (const waiter of this.waiters) if (waiter.position !== null && waiter.position > head && waiter.since < asked) this.leave(waiter).resolve();
  }

  private leave(waiter: Waiter): Waiter {
    this.waiters.delete(waiter);
    this.expiries.remove(waiter.expiry);
    if (this.waiters.size === 0) this.reader.leave(this);
    return waiter;
  }

  /** While anybody waits for what others bring along. One that cannot be read is not there yet. */
  private async poll(): Promise<void> {
    this.isPolling = true;
    for (;;) {
      const elsewhere = new Set([...this.waiters].flatMap(({ awaited }) => awaited.filter(({ isElsewhere }) => isElsewhere)));
      if (elsewhere.size === 0) break;
      await Promise.allSettled([...elsewhere].map(async (one) => one.look?.()));
      this.moved();
      await pause(POLL, undefined, { ref: false });
    }
    this.isPolling = false;
  }
}

function refusalOf({ awaited, position }: Pick<Waiter, 'awaited' | 'position'>): Error | null {
  if (position === null) return null;
  return awaited.find((one) => one.refusal != null && !one.hasSeen(position))?.refusal ?? null;
}
