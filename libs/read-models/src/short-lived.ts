/**
 * Things with an expiry: reservations, codes, challenges, counters, leases. One contract suite, `short-lived.contract.ts`.
 * A write is visible to every replica when it resolves, and nothing that is written to any store of this process after it resolved can be durable
 * without it (embedded: one log of writes; MongoDB: majority and journal).
 */
export abstract class ShortLived {
  abstract get(collection: string, key: string): Promise<Entry | null>;

  /** Stores only where nothing (alive) is stored; answers what is stored afterwards, and whether it is ours. */
  abstract putIfAbsent(collection: string, key: string, value: string, expiresAt: number): Promise<{ readonly stored: boolean; readonly entry: Entry }>;

  abstract put(collection: string, key: string, value: string, expiresAt: number): Promise<void>;

  /** Replaces only the version last read; false when another was faster or it expired. */
  abstract compareAndSet(collection: string, key: string, version: number, value: string, expiresAt: number): Promise<boolean>;

  /** Reads and removes in one step: of two takers one gets it. */
  abstract take(collection: string, key: string): Promise<Entry | null>;

  /** Adds to a counter that starts at 0 and expires; answers the total. */
  abstract add(collection: string, key: string, amount: number, expiresAt: number): Promise<number>;

  /**
   * Takes or renews a lease; null while another holds it. The token grows with every change of holder and fences what the holder stores. A holder that has given up
   * waiting for something may want another one, greater than `after`, since what it waited for may still be carried out.
   */
  abstract lease(name: string, holder: string, ttlMs: number, after?: number): Promise<{ readonly token: number } | null>;

  /** Gives back what was taken under this token, and nothing that was taken since. */
  abstract release(name: string, holder: string, token: number): Promise<void>;

  /** Removes what expired, at most `limit` entries; answers how many. */
  abstract sweep(now: number, limit: number): Promise<number>;

  /**
   * Resolves once everything that this process has written here is on disk, and what it has read of its own writes with it. For answers that append nothing: an append is
   * durable only after what was written before it.
   */
  abstract durable(): Promise<void>;

  /** Every entry that is alive, for backups, while others go on writing; no leases. Resumes internally, so it holds no long read. */
  abstract dump(): AsyncIterable<DumpedEntry>;
}

export interface DumpedEntry {
  readonly collection: string;
  readonly key: string;
  readonly value: string;
  readonly expiresAt: number;
}

export interface Entry<Value = string> {
  readonly value: Value;
  /** Grows with every write of the entry. */
  readonly version: number;
  readonly expiresAt: number;
}
