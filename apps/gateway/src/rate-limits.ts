import { Injectable } from '@nestjs/common';
import type { OperationLimit } from '#libs/contracts/src/operation';
import { Clock } from '#libs/platform/src/clock';
import { LimitReached } from './outcome.ts';
import { RequestCounters } from './request-counters.ts';

@Injectable()
export class RateLimits {
  constructor(
    private readonly counters: RequestCounters,
    private readonly clock: Clock,
  ) {}

  /** Counts one request against a limit. @throws LimitReached */
  count(key: string, { requests: limit, perSeconds }: OperationLimit): void | Promise<void> {
    const now = this.clock.now();
    const length = perSeconds * 1000;
    const start = now - (now % length);
    const judge = (total: number): void => {
      if (total > limit) throw new LimitReached(limit, Math.max(1, Math.ceil((start + length - now) / 1000)));
    };
    const total = this.counters.add(key, { start, length, limit });
    return typeof total === 'number' ? judge(total) : total.then(judge);
  }
}
