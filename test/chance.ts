/** Random numbers that a seed gives again: mulberry32. */
export class Chance {
  constructor(private state: number) {}

  /** At least 0 and below 1. */
  number(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.number() * limit);
  }

  is(probability: number): boolean {
    return this.number() < probability;
  }

  /** Later ones are likelier, so that what is new is used, and what is old, or gone, is not forgotten. */
  of<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(Math.sqrt(this.number()) * items.length)];
  }

  weighted<T>(items: readonly (readonly [weight: number, item: T])[]): T {
    let rest = this.number() * items.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, item] of items) if ((rest -= weight) < 0) return item;
    return items.at(-1)![1];
  }
}
