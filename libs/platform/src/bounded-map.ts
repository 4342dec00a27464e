interface Arrival {
  readonly environment: string;
  readonly key: string;
}

/**
 * Remembers at most so many values, each by its environment and key: the one that was put in first makes room. A `Map` alone would look at the places of all that left before it
 * found its first key, 300 µs with 100,000 of them.
 */
export class BoundedMap<Value> {
  private readonly environments = new Map<string, Map<string, Value>>();
  /** Everybody who is remembered, in the order of arrival from `next` on. Who left and came again is here twice, and may leave early. */
  private readonly arrivals: Arrival[] = [];
  private next = 0;

  constructor(private readonly most: number) {}

  get(environment: string, key: string): Value | undefined {
    return this.environments.get(environment)?.get(key);
  }

  set(environment: string, key: string, value: Value): void {
    if (!this.environments.get(environment)?.has(key)) {
      if (this.arrivals.length === this.most) this.leave(this.arrivals[this.next]!);
      this.arrivals[this.next] = { environment, key };
      this.next = (this.next + 1) % this.most;
    }
    const values = this.environments.get(environment);
    if (values === undefined) this.environments.set(environment, new Map([[key, value]]));
    else values.set(key, value);
  }

  delete(environment: string, key: string): void {
    this.leave({ environment, key });
  }

  clear(): void {
    this.environments.clear();
    this.arrivals.length = 0;
    this.next = 0;
  }

  private leave({ environment, key }: Arrival): void {
    const values = this.environments.get(environment);
    values?.delete(key);
    if (values?.size === 0) this.environments.delete(environment);
  }
}
