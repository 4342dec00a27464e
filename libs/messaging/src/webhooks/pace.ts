import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

const WINDOW = 100;
/** Above this share of its time the event loop has no time left. */
const BUSY = 0.9;
/** How long we stand back to see whether others keep the process busy. */
const LOOK = 10;
const LONGEST_PAUSE = 250;

/** Keeps deliveries from taking more than their share of a process that has its hands full with requests. */
export class Pace {
  private measured = performance.eventLoopUtilization();
  private measuredAt = performance.now();
  private busy = false;

  /** Whether it is this process, rather than any receiver, that makes things slow. */
  get isBusy(): boolean {
    const now = performance.now();
    if (now - this.measuredAt >= WINDOW) {
      this.busy = utilizationSince(this.measured) > BUSY;
      this.measured = performance.eventLoopUtilization();
      this.measuredAt = now;
    }
    return this.busy;
  }

  /** After `elapsed` milliseconds of work: rests for as long again where the process is busy without us. */
  async giveWay(elapsed: number): Promise<void> {
    const before = performance.eventLoopUtilization();
    await pause(LOOK);
    if (utilizationSince(before) > BUSY) await pause(Math.min(elapsed, LONGEST_PAUSE));
  }
}

function utilizationSince(before: ReturnType<typeof performance.eventLoopUtilization>): number {
  return performance.eventLoopUtilization(performance.eventLoopUtilization(), before).utilization;
}
