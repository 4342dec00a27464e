import { setTimeout as pause } from 'node:timers/promises';
import { type Position, START } from '../log/event-store.ts';

/** Nobody tells this process how far another has come (milliseconds). */
const POLL = 10;

interface Waiter {
  readonly position: Position;
  readonly leave: () => void;
}

/** How far a table is that other processes bring along: read again and again while anybody waits for it, and once for all of them. */
export class StoredPosition {
  private readonly waiting = new Set<Waiter>();
  private isReading = false;

  constructor(private readonly read: () => Promise<Position>) {}

  /** Resolves once it is at `position`, or the signal has aborted. */
  async reached(position: Position, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const leave = (): void => {
        signal.removeEventListener('abort', leave);
        this.waiting.delete(waiter);
        resolve();
      };
      const waiter = { position, leave };
      signal.addEventListener('abort', leave);
      this.waiting.add(waiter);
      if (!this.isReading) void this.keepReading();
    });
  }

  private async keepReading(): Promise<void> {
    this.isReading = true;
    for (; this.waiting.size > 0; await pause(POLL)) {
      const stored = await this.read().catch(() => START);
      for (const { position, leave } of this.waiting) if (position <= stored) leave();
    }
    this.isReading = false;
  }
}
