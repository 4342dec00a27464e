import type { Clock } from '#libs/platform/src/clock';
import type { FoundKey, KeyPurpose } from './key-store.ts';

/** About 5 MB. */
const CAPACITY = 10_000;
/** How long a process goes on with a key that another has destroyed. */
export const TRUSTED_FOR = 60_000;

interface Entry {
  readonly found: FoundKey;
  readonly readAt: number;
}

/** Keys that were read a moment ago. What is full forgets what was read first, so that the first is always the oldest. */
export class KeyCache {
  private readonly entries = new Map<KeyPurpose, Entry>();
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
    this.entries.delete(purpose);
    this.entries.set(purpose, { found, readAt: this.clock.now() });
    if (this.entries.size > CAPACITY) this.entries.delete(this.entries.keys().next().value!);
    // Where nobody asks any more, keys go all the same.
    this.timer ??= this.later(TRUSTED_FOR);
  }

  delete(purpose: KeyPurpose): void {
    this.entries.delete(purpose);
  }

  private forgetOld(): void {
    const until = this.clock.now() - TRUSTED_FOR;
    for (const [purpose, { readAt }] of this.entries) {
      if (readAt > until) return;
      this.entries.delete(purpose);
    }
  }

  private later(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.forgetOld();
      const [oldest] = this.entries.values();
      this.timer = oldest === undefined ? null : this.later(Math.max(1, oldest.readAt + TRUSTED_FOR - this.clock.now()));
    }, milliseconds).unref();
  }
}
