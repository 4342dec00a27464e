import { Injectable } from '@nestjs/common';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import { ShortLived } from '#libs/read-models/src/short-lived';

const COLLECTION = 'personal_limits';
/** Whoever has spent a day's number is told so, since nothing else helps. */
const DAY = 24 * 60 * 60;

/** So many in a window of fixed length. */
export interface PersonalLimit {
  readonly most: number;
  readonly perSeconds: number;
}

/** Limits that protect people, whoever asks in their name and through whichever gateway: they are always on. The store knows nobody's address by them. */
@Injectable()
export class PersonalLimits {
  constructor(
    private readonly store: ShortLived,
    private readonly naming: Naming,
    private readonly clock: Clock,
  ) {}

  /**
   * Counts what is done to `whom`. @throws DomainError `rate_limit_exceeded`, or `daily_quota_exceeded` where the window is a day
   */
  async count(environment: string, what: string, whom: string, { most, perSeconds }: PersonalLimit): Promise<void> {
    const now = this.clock.now();
    const length = perSeconds * 1_000;
    const end = now - (now % length) + length;
    const key = `${environment} ${this.naming.keyOf(what, whom)} ${perSeconds} ${end}`;
    if ((await this.store.add(COLLECTION, key, 1, end)) <= most) return;
    const retryAfter = Math.ceil((end - now) / 1_000);
    throw perSeconds >= DAY
      ? new DomainError('limited', 'daily_quota_exceeded', 'As many as may be in a day were asked for.', { retryAfter })
      : new DomainError('limited', 'rate_limit_exceeded', 'Too many requests for this person.', { retryAfter });
  }
}
