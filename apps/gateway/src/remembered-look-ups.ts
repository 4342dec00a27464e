import type { LogFollowing, MemoryFollower } from '#libs/event-sourcing/src/following/memory-follower';
import type { Position } from '#libs/event-sourcing/src/log/event-store';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import type { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';

const MAX_KEYS = 10_000;
/** Whoever asks is not known to be of an environment before the answer. */
const ANY = '';
/** What was just made must be found soon, wherever it was looked for too early. */
const UNKNOWN_FOR = 5_000;
/** A bound on what a missed event could do. */
const KNOWN_FOR = 60_000;

/** What was found, and until when at most that is true (milliseconds since the epoch). */
export interface Found<Value> {
  readonly value: Value;
  readonly until?: number;
}

interface Options<Value> {
  /** Names it in log lines. */
  readonly name: string;
  /** The events by which anything that was found may change. */
  readonly types: readonly string[];
  /** @throws DomainError of the kinds not-found and unauthenticated where there is nothing */
  readonly lookUp: (key: string, requestId: string) => Promise<Found<Value>>;
}

/** Answers of another service by key, remembered until the log tells of any change to them: what there is, and for a moment what there is not. */
export class RememberedLookUps<Value> {
  private readonly found = new BoundedMap<{ readonly value: Value; readonly until: number }>(MAX_KEYS);
  private readonly unknown = new BoundedMap<{ readonly refusal: DomainError; readonly until: number }>(MAX_KEYS);
  private readonly lookups = new Map<string, Promise<Value>>();
  private readonly follower: MemoryFollower;
  private forgottenAt = 0;

  constructor(
    private readonly following: LogFollowing,
    private readonly clock: Clock,
    private readonly options: Options<Value>,
  ) {
    const { name, types } = options;
    this.follower = following.remember({ name, types, isByEnvelope: true, begin: () => this.begin(), handle: () => this.forget() });
  }

  start(): Promise<void> {
    return this.follower.start();
  }

  stop(): Promise<void> {
    return this.follower.stop();
  }

  /** When every change was known for certain, in milliseconds since the epoch. */
  get heardAt(): number {
    return this.follower.heardAt;
  }

  /** What is remembered under the key; undefined where it has to be looked up. @throws DomainError where it was looked up a moment ago and there was nothing */
  remembered(key: string): Value | undefined {
    const known = this.known(key);
    if (known !== undefined) return known;
    const unknown = this.unknown.get(ANY, key);
    if (unknown !== undefined && unknown.until > this.clock.now()) throw unknown.refusal;
    return undefined;
  }

  /** As `remembered`, for whoever has more to do where there is nothing. */
  known(key: string): Value | undefined {
    const known = this.found.get(ANY, key);
    return known !== undefined && known.until > this.clock.now() ? known.value : undefined;
  }

  /** One look-up serves all who ask meanwhile. */
  lookUp(key: string, requestId: string): Promise<Value> {
    let lookup = this.lookups.get(key);
    if (lookup === undefined) {
      const started = this.ask(key, requestId).finally(() => {
        if (this.lookups.get(key) === started) this.lookups.delete(key);
      });
      this.lookups.set(key, started);
      lookup = started;
    }
    return lookup;
  }

  private async ask(key: string, requestId: string): Promise<Value> {
    const began = this.clock.now();
    try {
      const { value, until = Infinity } = await this.options.lookUp(key, requestId);
      if (began > this.forgottenAt) this.found.set(ANY, key, { value, until: Math.min(until, began + KNOWN_FOR) });
      return value;
    } catch (error) {
      const isNone = error instanceof DomainError && (error.kind === 'not-found' || error.kind === 'unauthenticated');
      if (isNone && began > this.forgottenAt) this.unknown.set(ANY, key, { refusal: error, until: began + UNKNOWN_FOR });
      throw error;
    }
  }

  /** Nothing is remembered from before: it was looked up in a log that this process did not follow. */
  private async begin(): Promise<Position> {
    const head = await this.following.reader.head();
    this.forget();
    return head;
  }

  /** What is being looked up meanwhile is not remembered either: it may have been read before the event. */
  private forget(): void {
    this.found.clear();
    this.unknown.clear();
    this.lookups.clear();
    this.forgottenAt = this.clock.now();
  }
}
