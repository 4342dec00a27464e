/** The longest that a timer of Node holds. */
const LONGEST = 2 ** 31 - 1;

/** What is given up when its time is over. */
export interface Expiry {
  /** By `performance.now`; may be Infinity. */
  readonly at: number;
  readonly expire: () => void;
}

/**
 * What is given up when its time is over, and mostly is done long before. One timer serves all of it: one for each of thirty thousand questions a second would cost more than
 * some of their answers.
 */
export class Expiries {
  private readonly waiting = new Set<Expiry>();
  private timer: { readonly at: number; readonly timeout: NodeJS.Timeout } | null = null;

  /** `expire` is called after so many milliseconds, unless the expiry was removed before. It may not throw. */
  add(milliseconds: number, expire: () => void): Expiry {
    const expiry: Expiry = { at: performance.now() + milliseconds, expire };
    this.waiting.add(expiry);
    this.wakeAt(expiry.at);
    return expiry;
  }

  /** The timer stays: it is for whoever comes next as well. */
  remove(expiry: Expiry): void {
    this.waiting.delete(expiry);
  }

  private wakeAt(at: number): void {
    if (this.timer !== null && this.timer.at <= at) return;
    if (this.timer !== null) clearTimeout(this.timer.timeout);
    const milliseconds = Math.min(Math.max(1, Math.ceil(at - performance.now())), LONGEST);
    // What is waited for keeps the process running; the wait itself does not.
    this.timer = { at, timeout: setTimeout(() => this.wake(), milliseconds).unref() };
  }

  private wake(): void {
    this.timer = null;
    const now = performance.now();
    let next = Infinity;
    for (const expiry of this.waiting) {
      if (expiry.at > now) next = Math.min(next, expiry.at);
      else {
        this.waiting.delete(expiry);
        expiry.expire();
      }
    }
    if (next < Infinity) this.wakeAt(next);
  }
}
