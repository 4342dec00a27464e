import { Injectable } from '@nestjs/common';
import type { OperationLimit } from '#libs/contracts/src/operation';
import { Clock } from '#libs/platform/src/clock';
import { LimitReached } from './outcome.ts';

/** Counts requests in windows of fixed length. In this process, or shared by the replicas of a cluster: then it answers with a promise. */
export abstract class RequestCounters {
  /** Adds one to the counter of `key` in the window that began at `windowStart`; answers the total. */
  abstract add(key: string, windowStart: number, windowLength: number): number | Promise<number>;
}

/** Counts in memory: right for one process, and a share of the limit per replica would do for several. */
export class LocalRequestCounters extends RequestCounters {
  private readonly windows = new Map<number, { start: number; readonly counts: Map<string, number> }>();

  add(key: string, windowStart: number, windowLength: number): number {
    let window = this.windows.get(windowLength);
    if (window === undefined || window.start !== windowStart) {
      window = { start: windowStart, counts: new Map() };
      this.windows.set(windowLength, window);
    }
    const total = (window.counts.get(key) ?? 0) + 1;
    window.counts.set(key, total);
    return total;
  }
}

@Injectable()
export class RateLimits {
  constructor(
    private readonly counters: RequestCounters,
    private readonly clock: Clock,
  ) {}

  /** Counts one request against a limit. @throws LimitReached */
  count(key: string, limit: OperationLimit): void | Promise<void> {
    const now = this.clock.now();
    const length = limit.perSeconds * 1000;
    const start = now - (now % length);
    const judge = (total: number): void => {
      if (total > limit.requests) throw new LimitReached(limit.requests, Math.max(1, Math.ceil((start + length - now) / 1000)));
    };
    const total = this.counters.add(key, start, length);
    return typeof total === 'number' ? judge(total) : total.then(judge);
  }
}
