import { createHash } from 'node:crypto';
import type { Clock } from '#libs/platform/src/clock';
import { RandomStock } from '#libs/platform/src/random-stock';
import { isPosition, type Position } from '../log/event-store.ts';
import { KeyCache } from './key-cache.ts';
import { KeyDestroyed, KeyStore, type DataKey, type ErasablePurpose, type FoundKey, type KeyPurpose, type LaterKey } from './key-store.ts';
import { KEY_BYTES, type MasterKeys, type WrappedKey } from './master-keys.ts';

const KEY_ID_LENGTH = 8;
const freshKeys = new RandomStock(KEY_BYTES);

/** One that takes the place of another. */
export type SteppedKey = WrappedKey & { readonly purpose: ErasablePurpose; readonly step: number };

type Keys = ReadonlyMap<KeyPurpose, FoundKey>;
type Reading = Promise<Keys>;

/** What every key store does, wherever it keeps the wrapped keys: wraps and unwraps, and reads a key again after a minute. */
export abstract class WrappedKeyStore extends KeyStore {
  private readonly cache: KeyCache;
  /** What is being read at the moment, by key. */
  private readonly readings = new Map<KeyPurpose, Reading>();
  /** Counts what was destroyed or replaced: what was read before one may not be remembered after it. */
  private destroyed = 0;

  constructor(
    private readonly masters: MasterKeys,
    clock: Clock,
  ) {
    super();
    this.cache = new KeyCache(clock);
  }

  async obtain(purpose: KeyPurpose): Promise<DataKey> {
    const found = this.cache.get(purpose) ?? (await this.findMany([purpose])).get(purpose) ?? (await this.make(purpose));
    if (found === 'erased') throw new KeyDestroyed(purpose);
    return found;
  }

  /** Of one that is known, without what several take. */
  override async find(purpose: KeyPurpose): Promise<FoundKey> {
    return this.cache.get(purpose) ?? super.find(purpose);
  }

  async findMany(purposes: readonly KeyPurpose[]): Promise<Keys> {
    const found = new Map<KeyPurpose, FoundKey>();
    const unread: KeyPurpose[] = [];
    const awaited = new Map<KeyPurpose, Reading>();
    for (const purpose of new Set(purposes)) {
      const known = this.cache.get(purpose);
      const reading = this.readings.get(purpose);
      if (known !== undefined) found.set(purpose, known);
      else if (reading !== undefined) awaited.set(purpose, reading);
      else unread.push(purpose);
    }
    const take = (keys: Keys, wanted: Iterable<KeyPurpose>): void => {
      for (const purpose of wanted) if (keys.has(purpose)) found.set(purpose, keys.get(purpose)!);
    };
    // What others asked for may fail because of another key.
    const ofOthers = Promise.all([...new Set(awaited.values())].map((reading) => reading.then((keys) => take(keys, awaited.keys())).catch(() => {})));
    if (unread.length > 0) take(await this.readFor(unread), unread);
    await ofOthers;
    // And it may have been asked before this one was made.
    const left = [...awaited.keys()].filter((purpose) => !found.has(purpose));
    if (left.length > 0) take(await this.readFor(left), left);
    return found;
  }

  async erasedAmong(purposes: readonly ErasablePurpose[]): Promise<ReadonlySet<ErasablePurpose>> {
    if (purposes.length === 0) return new Set();
    const stored = await this.load(purposes);
    return new Set(purposes.filter((purpose) => stored.get(purpose) === 'erased'));
  }

  async destroy(...purposes: readonly ErasablePurpose[]): Promise<void> {
    if (purposes.length === 0) return;
    purposes.forEach((purpose) => this.forget(purpose));
    await this.bury(purposes);
    purposes.forEach((purpose) => this.forget(purpose));
  }

  async advance(...keys: readonly LaterKey[]): Promise<void> {
    if (keys.length === 0) return;
    keys.forEach(({ purpose }) => this.forget(purpose));
    await this.replaceEarlier(keys.map(({ purpose, bytes, step }) => ({ ...this.masters.wrap(purpose, bytes, step), step })));
    keys.forEach(({ purpose }) => this.forget(purpose));
  }

  /** @throws what `damaged` says where it is no position of any log: nobody knows which erasures these keys have missed */
  async erasedUpTo(): Promise<Position> {
    const stored = await this.loadErasedUpTo();
    if (!isPosition(stored)) throw this.damaged('What says how far erasures have come');
    return stored;
  }

  /** What is stored; START where nothing is. */
  protected abstract loadErasedUpTo(): Promise<unknown>;

  /** What is stored for these, key or tombstone. */
  protected abstract load(purposes: readonly KeyPurpose[]): Promise<ReadonlyMap<KeyPurpose, WrappedKey | 'erased'>>;

  /** Stores a key durably, and only where there is neither key nor tombstone: whoever was first stays. Answers whether this one certainly was. */
  protected abstract putFirst(key: WrappedKey & { readonly purpose: KeyPurpose }): Promise<boolean>;

  /** Puts tombstones, durably, in the place of the keys. */
  protected abstract bury(purposes: readonly ErasablePurpose[]): Promise<void>;

  /** Puts keys, durably, in the place of those of earlier steps. */
  protected abstract replaceEarlier(keys: readonly SteppedKey[]): Promise<void>;

  /** That something is not what was stored. */
  protected abstract damaged(what: string): Error;

  private async make(purpose: KeyPurpose): Promise<FoundKey> {
    const bytes = freshKeys.next();
    const before = this.destroyed;
    const isFirst = await this.putFirst({ ...this.masters.wrap(purpose, bytes), purpose });
    if (!isFirst || this.destroyed !== before) return this.find(purpose);
    const key = dataKeyOf(bytes);
    this.cache.set(purpose, key);
    return key;
  }

  protected damagedKey(purpose: string): Error {
    return this.damaged(`The data key for ${purpose}`);
  }

  private unwrapped(stored: WrappedKey): DataKey {
    return dataKeyOf(
      this.masters.unwrap(stored, () => this.damagedKey(stored.purpose)),
      stored.step,
    );
  }

  /** One question, and for whoever asks for these keys until it is answered: all that follow the log meet the same people at the same time. */
  private readFor(purposes: readonly KeyPurpose[]): Reading {
    const reading = this.read(purposes).finally(() => {
      for (const purpose of purposes) if (this.readings.get(purpose) === reading) this.readings.delete(purpose);
    });
    for (const purpose of purposes) this.readings.set(purpose, reading);
    return reading;
  }

  private async read(purposes: readonly KeyPurpose[]): Promise<Keys> {
    const found = new Map<KeyPurpose, FoundKey>();
    const before = this.destroyed;
    for (const [purpose, stored] of await this.load(purposes)) {
      const key = stored === 'erased' ? stored : this.unwrapped(stored);
      found.set(purpose, key);
      if (this.destroyed === before) this.cache.set(purpose, key);
    }
    return found;
  }

  private forget(purpose: KeyPurpose): void {
    this.destroyed++;
    this.cache.delete(purpose);
    this.readings.delete(purpose);
  }
}

function dataKeyOf(bytes: Buffer, step = 0): DataKey {
  return { bytes, step, id: createHash('sha256').update('gatehouse data key').update(bytes).digest('base64url').slice(0, KEY_ID_LENGTH) };
}
