import type { Clock } from '#libs/platform/src/clock';
import type { FoundKey, KeyPurpose } from './key-store.ts';

/** About 5 MB. */
const CAPACITY = 10_000;
/** How long a process goes on with a key that another has destroyed. */
export const TRUSTED_FOR = 60_000;

/** Without the key, which is in memory no longer than it is known. */
interface Arrival {
  readonly purpose: KeyPurpose;
  readonly readAt: number;
}

interface Entry {
  readonly found: FoundKey;
  readonly arrival: Arrival;
}

/** Keys that were read a moment ago. What is full forgets what was read first. */
export class KeyCache {
  private readonly entries = new Map<KeyPurpose, Entry>();
  /**
   * In the order of reading, from `first` on; those that were replaced or deleted since among them. The map would look at the places of all that left before it found its own
   * first entry, at every look-up.
   */
  private readonly arrivals: Arrival[] = [];
  private first = 0;
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.entries.size;
  }

  get(purpose: KeyPurpose): FoundKey | undefined {
    this.forgetOld();
    return this.entries.get(purpose)?.found;
  }

  set(purpose: KeyPurpose, found: FoundKey): void {
    const arrival = { purpose, readAt: this.clock.now() };
    this.entries.set(purpose, { found, arrival });
    this.arrivals.push(arrival);
    while (this.entries.size > CAPACITY || this.arrivals.length - this.first > 2 * CAPACITY) this.forgetFirst();
    // Where nobody asks any more, keys go all the same.
    this.timer ??= this.later(TRUSTED_FOR);
  }

  delete(purpose: KeyPurpose): void {
    this.entries.delete(purpose);
  }

  private forgetOld(): void {
    const until = this.clock.now() - TRUSTED_FOR;
    while (this.first < this.arrivals.length && this.arrivals[this.first]!.readAt <= until) this.forgetFirst();
  }

  private forgetFirst(): void {
    const arrival = this.arrivals[this.first++]!;
    if (this.entries.get(arrival.purpose)?.arrival === arrival) this.entries.delete(arrival.purpose);
    if (this.first < CAPACITY && this.first < this.arrivals.length) return;
    this.arrivals.splice(0, this.first);
    this.first = 0;
  }

  private later(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.forgetOld();
      const oldest = this.arrivals[this.first];
      this.timer = oldest === undefined ? null : this.later(Math.max(1, oldest.readAt + TRUSTED_FOR - this.clock.now()));
    }, milliseconds).unref();
  }
}
