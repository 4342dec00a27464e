import { TimeoutError } from '@eventstore/db-client';
import { setTimeout as pause } from 'node:timers/promises';
import { PositionOfAnotherLog, START, type Position, type RecordedEvent } from '../log/event-store.ts';
import { isPositionRefused } from './failures.ts';
import type { Arrived, LogSubscription } from './log-subscription.ts';

/** When nothing has come for this long, it is asked whether anybody is there, and whether there was anything to come. */
const IDLE_MS = 4_000;
/** A subscription that was thrown out so often, and brought nothing each time, has failed. */
const FRUITLESS = 3;
/** Before it is asked again whether the log has a position. */
const DOUBT_MS = 500;

interface Needs {
  /** A subscription to what comes after a position. */
  readonly open: (after: Position) => LogSubscription;
  readonly head: () => Promise<Position>;
  /** A subscription began further on than it was asked to, past what others wrote, and the log does not have that position. */
  readonly forget: () => void;
}

/** Subscriptions to `$all`, each from its own position. Who in a process follows the log shares one through its reader. */
export class LogSubscriptions {
  constructor(private readonly needs: Needs) {}

  /** @throws PositionOfAnotherLog; what has ended the subscription otherwise */
  async *follow(after: Position, signal: AbortSignal): AsyncGenerator<readonly RecordedEvent[]> {
    // A subscription fails at once where a server has just come back; what is asked for is asked for again until there is a connection.
    if ((await unlessAborted(this.needs.head(), signal)) === null) return;
    for await (const arrived of this.received(after, signal)) if (arrived.length > 0) yield arrived.map(({ record }) => record);
  }

  /**
   * What comes after a position, or nothing when nothing came for a while. Servers before 24.10 throw out a live subscriber that falls 32 events behind: nothing
   * is lost by that, and who follows learns nothing of it.
   * @throws PositionOfAnotherLog; what has ended a subscription otherwise
   */
  private async *received(after: Position, signal: AbortSignal): AsyncGenerator<readonly Arrived[]> {
    let at = after;
    for (let fruitless = 0; !signal.aborted;) {
      const subscription = this.needs.open(at);
      try {
        yield* this.receivedOver(subscription, at, signal);
      } catch (error) {
        const reached = subscription.position ?? at;
        fruitless = reached > at ? 0 : fruitless + 1;
        if (subscription.began > at && isPositionRefused(error) !== 'no') {
          this.needs.forget();
          throw new Error('The log does not have the position up to which it was looked through.', { cause: error });
        }
        if (fruitless > 0 && at > START && (await this.isForeign(at, error, fruitless, signal))) throw new PositionOfAnotherLog(at, error);
        if (!(error instanceof TimeoutError || isPositionRefused(error) === 'maybe') || fruitless === FRUITLESS) throw error;
        at = reached;
      } finally {
        subscription.close();
      }
    }
  }

  /** Whether the log does not have a position: where that was only maybe said, it was said each time, while the log answers everything else. */
  private async isForeign(at: Position, error: unknown, times: number, signal: AbortSignal): Promise<boolean> {
    const refused = isPositionRefused(error);
    if (refused !== 'maybe') return refused === 'yes';
    await pause(DOUBT_MS, undefined, { signal }).catch(() => {});
    return at <= (await this.needs.head()) && times === FRUITLESS;
  }

  /** Until the signal aborts. @throws Error when it hangs: the log goes on without it */
  private async *receivedOver(subscription: LogSubscription, after: Position, signal: AbortSignal): AsyncGenerator<readonly Arrived[]> {
    let stood: Position | null = null;
    let expected = START;
    while (!signal.aborted) {
      const arrived = await subscription.next(IDLE_MS, signal);
      if (arrived.length === 0 && !signal.aborted) {
        const at = subscription.position ?? after;
        if (at === stood && at < expected) throw new Error('A subscription to the log hangs.');
        stood = at;
        this.needs.head().then(
          (head) => (expected = head),
          (error: Error) => subscription.fail(error),
        );
      }
      yield arrived;
    }
  }
}

/** What `work` answers; null once the signal has aborted. */
function unlessAborted<Answer>(work: Promise<Answer>, signal: AbortSignal): Promise<Answer | null> {
  return new Promise((resolve, reject) => {
    const stop = (): void => resolve(null);
    signal.addEventListener('abort', stop, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
