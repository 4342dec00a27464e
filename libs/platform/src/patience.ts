import { setTimeout as pause } from 'node:timers/promises';
import { isUnavailable } from './domain-error.ts';
import type { Log } from './log.ts';
import { StartRefused } from './start-refused.ts';

/** How long a start waits for an answer: a cluster starts in any order, and all of it at once. */
const PATIENCE_MS = 60_000;
/** Before the second try; then twice as long each time, up to the longest. Half of it is by chance: whoever starts together would ask together again. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4_000;

interface Patience {
  readonly log: Log;
  /** What is waited for: begins a sentence. */
  readonly what: string;
  /** Milliseconds. */
  readonly patience?: number;
}

/**
 * What an engine answers in the end, for a start: one that is busy for a moment, as when many begin at once, is no reason to end. What is asked has to bear being asked again.
 * @throws StartRefused where it is unavailable for all that time, and at once whatever else it throws
 */
export async function patiently<Answer>(ask: () => Promise<Answer>, { log, what, patience = PATIENCE_MS }: Patience): Promise<Answer> {
  const deadline = performance.now() + patience;
  for (let most = FIRST_PAUSE_MS; ; most = Math.min(2 * most, LONGEST_PAUSE_MS)) {
    try {
      return await ask();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      if (performance.now() > deadline) throw Object.assign(new StartRefused(`${what} cannot be asked for, since ${patience / 1_000} s.`), { cause: error });
      log.warn(`${what} cannot be asked for yet, and is asked for again.`, { error });
    }
    await pause((most * (1 + Math.random())) / 2);
  }
}
