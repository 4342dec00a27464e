import { createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import type { Collection } from 'mongodb';
import { type Clock, SystemClock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import { StartRefused } from '#libs/platform/src/start-refused';
import { isDuplicate, type MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { KeyStore, type KeyPurpose } from './key-store.ts';
import { KEY_BYTES, MasterKeys, type WrappedKey } from './master-keys.ts';

/** How long a process goes on with a key that another has destroyed. */
const TRUST_MS = 60_000;

interface KeyDocument extends Omit<WrappedKey, 'purpose'> {
  readonly _id: KeyPurpose;
}

interface Known {
  readonly key: Promise<KeyObject | null>;
  readonly readAt: number;
}

/** Data keys in MongoDB, which all processes of a cluster share. */
export class MongodbKeyStore extends KeyStore {
  private readonly known = new Map<KeyPurpose, Known>();

  private constructor(
    private readonly storage: MongodbStorage,
    private readonly masters: MasterKeys,
    private readonly clock: Clock,
  ) {
    super();
  }

  /**
   * `masterKeys`: 32 bytes each, in base64, the newest first. None is ever made here: beside the keys that it wraps, it would protect nothing.
   * @throws StartRefused for a key that is not 32 bytes, and for none at all
   */
  static async open(storage: MongodbStorage, masterKeys: readonly string[], clock: Clock = new SystemClock()): Promise<MongodbKeyStore> {
    return new MongodbKeyStore(storage, MasterKeys.of(masterKeys), clock);
  }

  async obtain(purpose: KeyPurpose): Promise<KeyObject> {
    const found = await this.find(purpose);
    if (found !== null) return found;
    const { master, iv, wrapped } = this.masters.wrap(purpose, randomBytes(KEY_BYTES));
    try {
      await this.storage.answer(() => this.stored.insertOne({ _id: purpose, master, iv, wrapped }));
    } catch (error) {
      // Another made it first; theirs is the key.
      if (!isDuplicate(error)) throw error;
    }
    this.known.delete(purpose);
    const made = await this.find(purpose);
    if (made === null) throw new Error(`The key for ${purpose} was removed while it was made.`);
    return made;
  }

  find(purpose: KeyPurpose): Promise<KeyObject | null> {
    const known = this.known.get(purpose);
    const now = this.clock.now();
    if (known !== undefined && now - known.readAt < TRUST_MS) return known.key;
    const key = this.load(purpose).catch((error: unknown) => {
      // It is not gone because nobody answers.
      if (known !== undefined && error instanceof DomainError) return known.key;
      throw error;
    });
    const read: Known = { key, readAt: now };
    this.known.set(purpose, read);
    // What failed, or is not there yet, is looked for again.
    const forget = (): void => {
      if (this.known.get(purpose) === read) this.known.delete(purpose);
    };
    void key.then((loaded) => {
      if (loaded === null) forget();
    }, forget);
    return key;
  }

  async destroy(purpose: KeyPurpose): Promise<void> {
    this.known.delete(purpose);
    await this.storage.answer(() => this.stored.deleteOne({ _id: purpose }));
    this.known.delete(purpose);
  }

  private get stored(): Collection<KeyDocument> {
    return this.storage.collection('keys');
  }

  private async load(purpose: KeyPurpose): Promise<KeyObject | null> {
    const stored = await this.storage.answer(() => this.stored.findOne({ _id: purpose }));
    if (stored === null) return null;
    try {
      return createSecretKey(this.masters.unwrap({ ...stored, purpose }));
    } catch (error) {
      if (error instanceof StartRefused) throw error;
      throw new StartRefused(`The data key for ${purpose} is damaged: put it back from the backup of the keys.`);
    }
  }
}
