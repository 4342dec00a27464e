import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long anything may hold up everything else. */
const SLICE_MS = 5;
/** Long work that gives way to other work every few milliseconds. */
export class TimeSlicer {
  private end = performance.now() + SLICE_MS;

  /** Null where the work may go on at once. Looking at the clock costs as much as many a step. */
  step(): Promise<void> | null {
    return performance.now() > this.end ? this.next() : null;
  }

  /** Two turns: what arrives in the first one is answered at its end, where this would otherwise stand before it in the line. */
  private async next(): Promise<void> {
    await nextTurn();
    await nextTurn();
    this.end = performance.now() + SLICE_MS;
  }
}
