import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '#libs/platform/src/clock';
import { KeyCache } from './key-cache.ts';
import { KeyStore, type DataKey, type ErasablePurpose, type FoundKey, type KeyPurpose } from './key-store.ts';
import { KEY_BYTES, type MasterKeys, type WrappedKey } from './master-keys.ts';

const KEY_ID_LENGTH = 8;

/** What every key store does, wherever it keeps the wrapped keys: wraps and unwraps, and reads a key again after a minute. */
export abstract class WrappedKeyStore extends KeyStore {
  private readonly cache: KeyCache;
  /** Counts destructions: what was read before one may not be remembered after it. */
  private destroyed = 0;

  constructor(
    private readonly masters: MasterKeys,
    clock: Clock,
  ) {
    super();
    this.cache = new KeyCache(clock);
  }

  async obtain(purpose: KeyPurpose): Promise<DataKey> {
    const found = (await this.findMany([purpose])).get(purpose) ?? (await this.make(purpose));
    if (found === 'erased') throw new Error(`The data key ${purpose} was destroyed: nothing can be sealed with it any more.`);
    return found;
  }

  async findMany(purposes: readonly KeyPurpose[]): Promise<ReadonlyMap<KeyPurpose, FoundKey>> {
    const found = new Map<KeyPurpose, FoundKey>();
    const unknown = new Set<KeyPurpose>();
    for (const purpose of purposes) {
      const known = this.cache.get(purpose);
      if (known === undefined) unknown.add(purpose);
      else found.set(purpose, known);
    }
    if (unknown.size === 0) return found;
    const before = this.destroyed;
    for (const [purpose, stored] of await this.load([...unknown])) {
      const key = stored === 'erased' ? stored : this.unwrapped(stored);
      found.set(purpose, key);
      if (this.destroyed === before) this.cache.set(purpose, key);
    }
    return found;
  }

  async destroy(purpose: ErasablePurpose): Promise<void> {
    this.forget(purpose);
    await this.bury(purpose);
    this.forget(purpose);
  }

  /** What is stored for these, key or tombstone. */
  protected abstract load(purposes: readonly KeyPurpose[]): Promise<ReadonlyMap<KeyPurpose, WrappedKey | 'erased'>>;

  /** Stores a key durably, and only where there is neither key nor tombstone: whoever was first stays. */
  protected abstract putFirst(key: WrappedKey & { readonly purpose: KeyPurpose }): Promise<void>;

  /** Puts a tombstone, durably, in the place of the key. */
  protected abstract bury(purpose: ErasablePurpose): Promise<void>;

  /** What is wrong with a key that does not unwrap. */
  protected abstract damaged(purpose: string): Error;

  private async make(purpose: KeyPurpose): Promise<FoundKey> {
    await this.putFirst({ ...this.masters.wrap(purpose, randomBytes(KEY_BYTES)), purpose });
    return this.find(purpose);
  }

  private unwrapped(stored: WrappedKey): DataKey {
    const bytes = this.masters.unwrap(stored, () => this.damaged(stored.purpose));
    return { bytes, id: createHash('sha256').update('gatehouse data key').update(bytes).digest('base64url').slice(0, KEY_ID_LENGTH) };
  }

  private forget(purpose: KeyPurpose): void {
    this.destroyed++;
    this.cache.delete(purpose);
  }
}
