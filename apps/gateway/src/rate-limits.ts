import { Injectable } from '@nestjs/common';
import type { OperationLimit, RegisteredOperation } from '#libs/contracts/src/operation';
import { Clock } from '#libs/platform/src/clock';
import { GatewaySettings } from '#libs/platform/src/config/settings';
import type { Caller } from './authentication.ts';
import { LimitReached, tooManyBytes } from './http-answer.ts';
import { RequestCounters } from '#libs/read-models/src/request-counters';

/** A limit, and with whom a caller shares it. */
interface SharedLimit {
  readonly limit: OperationLimit;
  readonly keyOf: (caller: Caller) => string;
}

@Injectable()
export class RateLimits {
  constructor(
    private readonly counters: RequestCounters,
    private readonly settings: GatewaySettings,
    private readonly clock: Clock,
  ) {}

  /** What counts a request of this operation, prepared once: it throws or rejects with `LimitReached`, and waits for nothing but low limits. */
  of(operation: RegisteredOperation): (caller: Caller) => void | Promise<void> {
    const limits = this.settings.RATE_LIMITS ? this.limitsOf(operation) : [];
    // One after the other: what one limit refuses is not counted against the next.
    const countFrom = (first: number, caller: Caller): void | Promise<void> => {
      for (let place = first; place < limits.length; place++) {
        const { limit, keyOf } = limits[place]!;
        const counted = this.count(keyOf(caller), limit);
        if (counted instanceof Promise) return counted.then(() => countFrom(place + 1, caller));
      }
    };
    return (caller) => countFrom(0, caller);
  }

  /**
   * Counts the bytes of a body. The one with which the limit is reached still goes through, so that no limit refuses a body for ever.
   * @throws DomainError `rate_limit_exceeded`
   */
  countBody(bytes: number, { countedAs }: Pick<Caller, 'countedAs'>): void {
    const { RATE_LIMITS, RATE_LIMIT_BODY_BYTES: limit } = this.settings;
    if (!RATE_LIMITS) return;
    const now = this.clock.now();
    const total = this.counters.add(`body ${countedAs}`, { start: now - (now % 1000), length: 1000, limit }, bytes);
    // Only limits far below the least that the setting allows are waited for.
    if (typeof total === 'number' && total - bytes >= limit) throw tooManyBytes();
  }

  private limitsOf({ name, kind, route, options }: RegisteredOperation): readonly SharedLimit[] {
    const { RATE_LIMIT_PER_SECOND, RATE_LIMIT_USER_MANAGEMENT_READS, RATE_LIMIT_USER_MANAGEMENT_WRITES } = this.settings;
    const limits: SharedLimit[] = [{ limit: { requests: RATE_LIMIT_PER_SECOND, perSeconds: 1 }, keyOf: ({ countedAs }) => countedAs }];
    if (route!.path.startsWith('/user_management/')) {
      const requests = kind === 'query' ? RATE_LIMIT_USER_MANAGEMENT_READS : RATE_LIMIT_USER_MANAGEMENT_WRITES;
      if (requests !== null) limits.push({ limit: { requests, perSeconds: 10 }, keyOf: ({ environment }) => `user_management ${kind} ${environment}` });
    }
    if (options.limit !== undefined) limits.push({ limit: options.limit, keyOf: ({ countedAs }) => `${name} ${countedAs}` });
    return limits;
  }

  /** Counts one request against a limit. @throws LimitReached */
  private count(key: string, { requests: limit, perSeconds }: OperationLimit): void | Promise<void> {
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
