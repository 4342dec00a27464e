import type { ServerWritableStream } from '@grpc/grpc-js';

/** Events that wait for a live subscriber, at most, as in the real server. */
export const LIVE_EVENTS = 32;

/** What comes for a subscriber that is live: it is not read from the log again, so too much of it ends the subscription. */
export class LiveEvents<Request, Response> {
  private readonly waiting: Response[] = [];
  private isFull = false;

  constructor(
    private readonly call: ServerWritableStream<Request, Response>,
    private readonly onTooSlow: () => void,
  ) {
    call.on('drain', () => {
      this.isFull = false;
      this.send();
    });
  }

  push(response: Response): void {
    this.waiting.push(response);
    this.send();
    if (this.waiting.length > LIVE_EVENTS) this.onTooSlow();
  }

  private send(): void {
    while (this.waiting.length > 0 && !this.isFull && !this.call.cancelled) this.isFull = !this.call.write(this.waiting.shift()!);
  }
}
