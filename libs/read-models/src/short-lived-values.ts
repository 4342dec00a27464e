import type { Entry, ShortLived } from './short-lived.ts';

/** One collection of `ShortLived` whose entries are all of one type, kept as JSON. */
export class ShortLivedValues<Value> {
  constructor(
    private readonly store: ShortLived,
    private readonly collection: string,
  ) {}

  async get(key: string): Promise<Entry<Value> | null> {
    return parsed<Value>(await this.store.get(this.collection, key));
  }

  /** As `ShortLived.putIfAbsent`. */
  async putIfAbsent(key: string, value: Value, expiresAt: number): Promise<{ readonly stored: boolean; readonly entry: Entry<Value> }> {
    const { stored, entry } = await this.store.putIfAbsent(this.collection, key, JSON.stringify(value), expiresAt);
    return { stored, entry: parsed<Value>(entry)! };
  }

  put(key: string, value: Value, expiresAt: number): Promise<void> {
    return this.store.put(this.collection, key, JSON.stringify(value), expiresAt);
  }

  /** As `ShortLived.compareAndSet`; the expiry stays as it is where none is given. */
  replace(key: string, { version, expiresAt }: Pick<Entry, 'version' | 'expiresAt'>, value: Value, until = expiresAt): Promise<boolean> {
    return this.store.compareAndSet(this.collection, key, version, JSON.stringify(value), until);
  }

  async take(key: string): Promise<Entry<Value> | null> {
    return parsed<Value>(await this.store.take(this.collection, key));
  }
}

function parsed<Value>(entry: Entry | null): Entry<Value> | null {
  return entry === null ? null : { ...entry, value: JSON.parse(entry.value) as Value };
}
