import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { environmentVariables } from '#libs/platform/src/config/environment';

/** Between two processes of an app lie leases, restarts that take seconds, and a machine that runs all of it. */
const TIMES_LONGER = environmentVariables()['SUITE'] === undefined ? 1 : 4;

/** Resolves once it is so. @throws Error when it never was within that time */
export async function until(isSo: () => boolean | Promise<boolean>, milliseconds = 20_000): Promise<void> {
  for (const deadline = Date.now() + TIMES_LONGER * milliseconds; !(await isSo()); await pause(10))
    if (Date.now() > deadline) throw new Error(`It never was so: ${isSo.toString()}`);
}

/** Asserts again and again, and answers what the assertions do once they hold. @throws what they threw last */
export async function eventually<Answer>(asserted: () => Promise<Answer>, milliseconds = 10_000): Promise<Answer> {
  for (const deadline = Date.now() + TIMES_LONGER * milliseconds; ; await pause(20)) {
    try {
      return await asserted();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

/** How long something may take here and now that takes at most so long where nothing else runs: longer by as many as wait for each processor. */
export function mayTake(milliseconds: number): number {
  return milliseconds * Math.max(1, loadavg()[0]! / availableParallelism());
}
