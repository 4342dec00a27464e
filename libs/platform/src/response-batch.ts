/**
 * Answers that become ready in one turn of the event loop leave at its end, one right after the other. Each write wakes whoever reads at the other end: written one by
 * one, between the requests of a turn, they cost more than everything else on the way of a small request.
 */
export class ResponseBatch {
  private waiting: (() => void)[] = [];

  /** `send` is called at the end of the turn, and may not throw. */
  add(send: () => void): void {
    if (this.waiting.push(send) === 1) setImmediate(() => this.leave());
  }

  private leave(): void {
    const responses = this.waiting;
    this.waiting = [];
    for (const send of responses) send();
  }
}
