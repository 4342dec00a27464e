import type { Mode } from '#libs/platform/src/config/setting';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Pauses before the second to the sixth attempt. Production: three days in all; development: what a person watches. */
export const RETRY_PAUSES: Readonly<Record<Mode, readonly number[]>> = {
  production: [MINUTE, 10 * MINUTE, 2 * HOUR, 12 * HOUR, 60 * HOUR],
  development: [5 * SECOND, 30 * SECOND, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE],
};
const JITTER = 0.2;

/** When an event is tried again. */
export class RetrySchedule {
  constructor(
    private readonly pauses: readonly number[],
    private readonly random: () => number = Math.random,
  ) {}

  /**
   * Milliseconds until the attempt after `attempts` failed ones; null when it was the last. `retryAfter` (milliseconds) is the receiver's wish: it is
   * followed where it is longer, up to the pause that would come next.
   */
  pauseAfter(attempts: number, retryAfter: number | null): number | null {
    const pause = this.pauses[attempts - 1];
    if (pause === undefined) return null;
    const jittered = Math.round(pause * (1 - JITTER + 2 * JITTER * this.random()));
    const longest = this.pauses[attempts] ?? pause;
    return Math.max(jittered, Math.min(retryAfter ?? 0, longest));
  }
}
