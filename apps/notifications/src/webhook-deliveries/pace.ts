import { performance, type EventLoopUtilization } from 'node:perf_hooks';

const WINDOW = 100;
/** Above this share of its time the event loop has no time left. */
const BUSY = 0.9;

/** Tells whether this process has its hands full: then it is no receiver's fault that deliveries take long. */
export class Pace {
  private measured: EventLoopUtilization = performance.eventLoopUtilization();
  private measuredAt = performance.now();
  private busy = false;

  get isBusy(): boolean {
    const now = performance.now();
    if (now - this.measuredAt >= WINDOW) {
      const current = performance.eventLoopUtilization();
      this.busy = performance.eventLoopUtilization(current, this.measured).utilization > BUSY;
      this.measured = current;
      this.measuredAt = now;
    }
    return this.busy;
  }
}
