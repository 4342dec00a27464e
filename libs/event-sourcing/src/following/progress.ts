import type { Position } from '../log/event-store.ts';

/** Behind the head without moving for so long, a subscription is taken for dead: a connection can hang without breaking. */
const STUCK = 5_000;

/** How far one reading of the log has got, and whether it still gets on. */
export class Progress {
  /** Something is being handled. */
  isBusy = false;
  private movedAt = performance.now();

  constructor(public position: Position) {}

  /** A batch arrived: as long as it is being handled, nothing hangs. */
  begin(): void {
    this.isBusy = true;
  }

  reach(position: Position): void {
    this.position = position;
    this.isBusy = false;
    this.movedAt = performance.now();
  }

  /** Whether the reading is to begin anew: the log ends before it, or goes on without it. `head` was read just now. */
  isLost(head: Position): boolean {
    if (this.position >= head || this.isBusy) this.movedAt = performance.now();
    return this.position > head || performance.now() - this.movedAt > STUCK;
  }
}
