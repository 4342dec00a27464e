import { SharedReading } from '#libs/event-sourcing/src/following/shared-reading';
import type { EventStore, Position } from '#libs/event-sourcing/src/log/event-store';
import type { Clock } from '#libs/platform/src/clock';
import { DomainError, isUnavailable, unavailable } from '#libs/platform/src/domain-error';

/** How long the log may take to say where it ends. */
const HEAD_LIMIT = 3_000;
/** How exactly deadlines are kept: a timer for each of thirty thousand questions a second would cost more than the answers. */
const LOOK_EVERY = 50;

interface Waiter {
  readonly position: Position;
  readonly deadline: number;
  readonly resolve: () => void;
  readonly reject: (error: DomainError) => void;
}

/** Up to where this process knows the log, and who waits until it knows more. */
export class Horizon {
  /** Everything up to here is known; null: nothing is, or nothing any more. */
  private known: Position | null = null;
  private readonly heads = new SharedReading(() => this.read());
  /** Gives the head up that is being read, past this time. */
  private abandon: { readonly at: number; readonly reject: (error: Error) => void } | null = null;
  private waiters: Waiter[] = [];
  private readonly looking: NodeJS.Timeout;

  constructor(
    private readonly events: EventStore,
    private readonly clock: Clock,
  ) {
    this.looking = setInterval(() => this.look(), LOOK_EVERY).unref();
  }

  get position(): Position | null {
    return this.known;
  }

  /**
   * Resolves once everything is known that was recorded before the call.
   * @throws DomainError `service_unavailable` past the deadline, or where the log cannot be asked
   */
  async current(deadline: number): Promise<void> {
    await this.reached(await this.head(), deadline);
  }

  /** @throws DomainError `service_unavailable` past the deadline (milliseconds since the epoch) */
  reached(position: Position, deadline: number): Promise<void> {
    if (this.known !== null && this.known >= position) return Promise.resolve();
    return new Promise((resolve, reject) => this.waiters.push({ position, deadline, resolve, reject }));
  }

  /**
   * The end of the log as it stands after the call.
   * @throws DomainError `service_unavailable`
   */
  head(): Promise<Position> {
    return this.heads.next();
  }

  moveTo(position: Position): void {
    this.known = position;
    if (this.waiters.length === 0) return;
    const waiters = this.waiters;
    this.waiters = [];
    for (const waiter of waiters) {
      if (waiter.position <= position) waiter.resolve();
      else this.waiters.push(waiter);
    }
  }

  /** Nothing is known any more: who waits goes on waiting. */
  lose(): void {
    this.known = null;
  }

  /** Nobody moves it any more. */
  close(): void {
    clearInterval(this.looking);
    for (const { reject } of this.waiters.splice(0)) reject(behind());
  }

  private read(): Promise<Position> {
    const { known } = this;
    return new Promise<Position>((resolve, reject) => {
      this.abandon = { at: performance.now() + HEAD_LIMIT, reject };
      this.events.head().then(
        (head) => {
          // A log that ends before what is known of it was restored to an earlier state: it will be read anew.
          if (known !== null && head < known) reject(unavailable('The log is not the one that this process knows.'));
          else resolve(head);
        },
        (error: unknown) => reject(away(error)),
      );
    });
  }

  private look(): void {
    // Where the head came in time, nothing is given up.
    if (this.abandon !== null && performance.now() > this.abandon.at) this.abandon.reject(away(null));
    if (this.waiters.length === 0) return;
    const now = this.clock.now();
    for (const { deadline, reject } of this.waiters) if (deadline <= now) reject(behind());
    this.waiters = this.waiters.filter(({ deadline }) => deadline > now);
  }
}

function away(cause: unknown): Error {
  return cause instanceof DomainError && isUnavailable(cause) ? cause : Object.assign(unavailable('The log does not say where it ends.'), { cause });
}

function behind(): DomainError {
  return unavailable('This process does not know the end of the log yet.');
}
