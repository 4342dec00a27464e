import type { Collection } from 'mongodb';
import { type Clock, SystemClock } from '#libs/platform/src/clock';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { Belonging } from '#libs/platform/src/storage/log-note';
import { isDuplicate, type MongodbStorage, WHILE_WAITED_FOR } from '#libs/platform/src/storage/mongodb-storage';
import { type Position, START } from '../log/event-store.ts';
import type { ErasablePurpose, KeyPurpose } from './key-store.ts';
import { MasterKeys, type WrappedKey } from './master-keys.ts';
import { type SteppedKey, WrappedKeyStore } from './wrapped.key-store.ts';

/** Purposes that one question asks for. */
const BULK = 1_000;
const ERASER = 'eraser';
/** Of the log that the keys belong to. No purpose has this name either. */
const NOTE = 'installation';

type KeyDocument = (Omit<WrappedKey, 'purpose'> | { readonly erased: true }) & { readonly _id: KeyPurpose };

/** No purpose has this name, so that it lies among the keys and comes back with them. */
interface EraserDocument {
  readonly _id: typeof ERASER;
  readonly position: Position;
  /** What was seen at a position: earlier releases store another one and leave this as it was. */
  readonly record?: { readonly position: Position; readonly id: string } | null;
}

/** Data keys in MongoDB, which all processes of a cluster share. */
export class MongodbKeyStore extends WrappedKeyStore {
  private constructor(
    private readonly storage: MongodbStorage,
    masters: MasterKeys,
    clock: Clock,
  ) {
    super(masters, clock);
  }

  /**
   * `masterKeys`: 32 bytes each, in base64, the newest first. None is ever made here: beside the keys that it wraps, it would protect nothing.
   * @throws StartRefused for a key that is not 32 bytes, and for none at all
   */
  static async open(storage: MongodbStorage, masterKeys: readonly string[], clock: Clock = new SystemClock()): Promise<MongodbKeyStore> {
    return new MongodbKeyStore(storage, MasterKeys.of(masterKeys), clock);
  }

  /**
   * How the keys note the log that they belong to: among them, so that the note comes back with them.
   * @param setting names the database
   */
  belonging(setting: string): Belonging {
    return {
      storage: this.storage,
      title: `The collection keys of the database ${this.storage.name} (${setting})`,
      collection: 'keys',
      _id: NOTE,
      used: { collection: 'keys', filter: { _id: 'naming' } },
      wayOut: 'Keys of another log open nothing of this one: name the database of its own keys, or put those back that were backed up with it.',
    };
  }

  async setErasedUpTo(position: Position, id: string | null = null): Promise<void> {
    const place = { position, record: id === null ? null : { position, id } };
    await this.storage.answer((inSession) => this.eraser.updateOne({ _id: ERASER }, { $set: place }, { upsert: true, ...inSession }));
  }

  override async erasedRecordAt(position: Position): Promise<string | null> {
    const stored = await this.storage.answer((inSession) => this.eraser.findOne({ _id: ERASER }, { ...inSession, ...WHILE_WAITED_FOR }));
    return stored?.position === position && stored.record?.position === position ? stored.record.id : null;
  }

  protected async loadErasedUpTo(): Promise<unknown> {
    const stored = await this.storage.answer((inSession) => this.eraser.findOne({ _id: ERASER }, { ...inSession, ...WHILE_WAITED_FOR }));
    return stored === null ? START : stored.position;
  }

  protected async load(purposes: readonly KeyPurpose[]): Promise<ReadonlyMap<KeyPurpose, WrappedKey | 'erased'>> {
    const found = new Map<KeyPurpose, WrappedKey | 'erased'>();
    for (let from = 0; from < purposes.length; from += BULK) {
      const some = purposes.slice(from, from + BULK);
      const documents = await this.storage.answer((inSession) =>
        this.stored.find({ _id: { $in: some } }, { batchSize: BULK, ...inSession, ...WHILE_WAITED_FOR }).toArray(),
      );
      for (const document of documents) {
        const { _id } = document;
        found.set(_id, 'erased' in document ? 'erased' : { ...document, purpose: _id });
      }
    }
    return found;
  }

  protected async putFirst({ purpose, master, iv, wrapped }: WrappedKey & { readonly purpose: KeyPurpose }): Promise<boolean> {
    try {
      await this.storage.answer((inSession) => this.stored.insertOne({ _id: purpose, master, iv, wrapped }, inSession));
      return true;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      return false;
    }
  }

  protected async bury(purposes: readonly ErasablePurpose[]): Promise<void> {
    for (const purpose of purposes) await this.buryOne(purpose);
  }

  protected async replaceEarlier(keys: readonly SteppedKey[]): Promise<void> {
    for (let from = 0; from < keys.length; from += BULK) {
      const updates = keys.slice(from, from + BULK).map(({ purpose, master, iv, wrapped, step }) => ({
        updateOne: {
          filter: { _id: purpose, erased: { $exists: false }, $or: [{ step: { $exists: false } }, { step: { $lt: step } }] },
          update: { $set: { master, iv, wrapped, step } },
        },
      }));
      await this.storage.answer((inSession) => this.stored.bulkWrite(updates, { ordered: false, ...inSession }));
    }
  }

  protected damaged(what: string): Error {
    return new StartRefused(`${what} is damaged: put it back from the backup of the keys.`);
  }

  private async buryOne(purpose: ErasablePurpose): Promise<void> {
    const replace = () => this.storage.answer((inSession) => this.stored.replaceOne({ _id: purpose }, { erased: true }, { upsert: true, ...inSession }));
    try {
      await replace();
    } catch (error) {
      // Where the key is made at the same time, there is one to replace at the second try.
      if (!isDuplicate(error)) throw error;
      await replace();
    }
  }

  private get stored(): Collection<KeyDocument> {
    return this.storage.collection('keys');
  }

  private get eraser(): Collection<EraserDocument> {
    return this.storage.collection('keys');
  }
}
