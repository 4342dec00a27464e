import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, link, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, SystemClock } from '#libs/platform/src/clock';
import { StartRefused } from '#libs/platform/src/start-refused';
import { type ErasableEnvironment, ErasableForReading, syncDirectory } from '#libs/platform/src/storage/erasable-environment';
import { type Position, START } from '../log/event-store.ts';
import { keyFilesIn, takeOverKeyFiles, type KeyInFile } from './key-files.ts';
import type { ErasablePurpose, KeyPurpose } from './key-store.ts';
import { KEY_BYTES, MasterKeys, type WrappedKey } from './master-keys.ts';
import { type SteppedKey, WrappedKeyStore } from './wrapped.key-store.ts';

const MASTER = 'master.key';
/** No purpose has this name, so that it lies among the keys and comes back with them. */
const ERASER = 'eraser';
/** Position and id of the record there: an entry of its own, since earlier releases read a position in the other, which they write alone. */
const ERASER_RECORD = 'eraser.record';
/** First byte of an entry. */
const [TOMBSTONE, KEY, LATER_KEY] = [0, 1, 2] as const;
/** Of a later key, behind the first byte. */
const STEP_BYTES = 4;
const MASTER_ID_BYTES = 8;
const IV_BYTES = 12;

/** What keys are read from: as they are served, or beside the process that serves them. */
type Entries = Pick<ErasableEnvironment, 'path' | 'getMany'>;

/** Data keys of the embedded engines, in an LMDB environment that only its owner may read. */
export class LmdbKeyStore extends WrappedKeyStore {
  private constructor(
    private readonly entries: Entries,
    /** Null for who only looks. */
    private readonly stored: ErasableEnvironment | null,
    masters: MasterKeys,
    clock: Clock,
  ) {
    super(masters, clock);
  }

  /**
   * `masterKeys`: 32 bytes each, in base64, the newest first. Without any, one is made and kept beside the data keys, which protects copies of the log, not a copy of
   * the whole directory. Key files of earlier releases are taken over; `onTakeOver` hears of it before anything is changed.
   * @throws StartRefused for a key that is not 32 bytes, and for a damaged file
   */
  static async open(
    stored: ErasableEnvironment,
    masterKeys: readonly string[],
    clock: Clock = new SystemClock(),
    onTakeOver: (files: number) => void = () => {},
  ): Promise<LmdbKeyStore> {
    if (masterKeys.length === 0) await makeMasterKey(stored.path);
    // A directory that began without MASTER_KEYS goes on being readable after they are set.
    const masters = MasterKeys.of([...masterKeys, ...(await ownMasterKey(stored.path))]);
    await takeOverKeyFiles(stored.path, {
      begin: onTakeOver,
      // A tombstone takes the place of a key, and a key that of nothing.
      put: async (key) => void (await ('erased' in key ? stored.put(key.purpose, bytesOf(key)) : stored.putFirst(key.purpose, bytesOf(key)))),
      setErasedUpTo: async (position) => void (await stored.putFirst(ERASER, Buffer.from(position))),
    });
    return new LmdbKeyStore(stored, stored, masters, clock);
  }

  /** The same for looking, beside the process that writes or into a backup, of whichever release: makes nothing. @throws StartRefused where no master key is known */
  static async openForReading(directory: string, masterKeys: readonly string[]): Promise<LmdbKeyStore> {
    const masters = MasterKeys.of([...masterKeys, ...(await ownMasterKey(directory))]);
    const files = new Map<string, Buffer>();
    for (const key of await keyFilesIn(directory)) files.set(key.purpose, bytesOf(key));
    const stored = ErasableForReading.isThere(directory) ? new ErasableForReading(directory) : null;
    const getMany: Entries['getMany'] = async (keys) => {
      const found = (await stored?.getMany(keys)) ?? [];
      return keys.map((key, index) => found[index] ?? files.get(key));
    };
    return new LmdbKeyStore({ path: directory, getMany }, null, masters, new SystemClock());
  }

  async setErasedUpTo(position: Position, record: string | null = null): Promise<void> {
    const note = this.writable.put(ERASER_RECORD, Buffer.from(`${position}\0${record ?? ''}`));
    await Promise.all([note, this.writable.put(ERASER, Buffer.from(position))]);
  }

  override async erasedRecordAt(position: Position): Promise<string | null> {
    const [upTo, note] = await this.entries.getMany([ERASER, ERASER_RECORD]);
    const [noted, record] = note?.toString().split('\0') ?? [];
    return upTo?.toString() === position && noted === position && record ? record : null;
  }

  protected async loadErasedUpTo(): Promise<unknown> {
    const [position] = await this.entries.getMany([ERASER]);
    return position?.toString() ?? START;
  }

  protected async load(purposes: readonly KeyPurpose[]): Promise<ReadonlyMap<KeyPurpose, WrappedKey | 'erased'>> {
    const found = new Map<KeyPurpose, WrappedKey | 'erased'>();
    for (const [index, bytes] of (await this.entries.getMany(purposes)).entries()) {
      const purpose = purposes[index]!;
      if (bytes !== undefined) found.set(purpose, this.keyIn(bytes, purpose));
    }
    return found;
  }

  protected putFirst(key: WrappedKey & { readonly purpose: KeyPurpose }): Promise<boolean> {
    return this.writable.putFirst(key.purpose, bytesOf(key));
  }

  protected async bury(purposes: readonly ErasablePurpose[]): Promise<void> {
    await this.writable.erase(new Map(purposes.map((purpose) => [purpose, Buffer.of(TOMBSTONE)])));
  }

  protected async replaceEarlier(keys: readonly SteppedKey[]): Promise<void> {
    const later = new Map<string, SteppedKey>(keys.map((key) => [key.purpose, key]));
    await this.writable.eraseSome([...later.keys()], (purpose, present) => {
      const key = later.get(purpose)!;
      return present[0] === TOMBSTONE || stepIn(present) >= key.step ? null : bytesOf(key);
    });
  }

  protected damaged(what: string): Error {
    return new StartRefused(`${what} in ${this.entries.path} is damaged: put it back from the backup of the keys.`);
  }

  private get writable(): ErasableEnvironment {
    if (this.stored === null) throw new Error('These keys were opened for reading.');
    return this.stored;
  }

  private keyIn(bytes: Buffer, purpose: KeyPurpose): WrappedKey | 'erased' {
    if (bytes[0] === TOMBSTONE && purpose !== 'naming' && purpose !== 'passwords') return 'erased';
    const isLater = bytes[0] === LATER_KEY;
    const master = isLater ? 1 + STEP_BYTES : 1;
    const [iv, wrapped] = [master + MASTER_ID_BYTES, master + MASTER_ID_BYTES + IV_BYTES];
    if ((bytes[0] !== KEY && !isLater) || bytes.length < wrapped + KEY_BYTES) throw this.damagedKey(purpose);
    return {
      purpose,
      master: bytes.toString('hex', master, iv),
      iv: bytes.toString('base64', iv, wrapped),
      wrapped: bytes.toString('base64', wrapped),
      ...(isLater && { step: stepIn(bytes) }),
    };
  }
}

/** In the process that holds the keys: copies all of them, as of one moment, while others are made and destroyed. */
export async function copyKeys(stored: ErasableEnvironment, directory: string): Promise<void> {
  await stored.backup(directory);
  const [from, to] = [join(stored.path, MASTER), join(directory, MASTER)];
  if (existsSync(from)) await copyFile(from, to);
}

function bytesOf(key: KeyInFile): Buffer {
  if ('erased' in key) return Buffer.of(TOMBSTONE);
  const { master, iv, wrapped, step } = key;
  const head = step === undefined ? Buffer.of(KEY) : Buffer.concat([Buffer.of(LATER_KEY), stepBytes(step)]);
  return Buffer.concat([head, Buffer.from(master, 'hex'), Buffer.from(iv, 'base64'), Buffer.from(wrapped, 'base64')]);
}

function stepBytes(step: number): Buffer {
  const bytes = Buffer.alloc(STEP_BYTES);
  bytes.writeUInt32BE(step);
  return bytes;
}

function stepIn(bytes: Buffer): number {
  return bytes[0] === LATER_KEY ? bytes.readUInt32BE(1) : 0;
}

/** Whole and durable, or not at all; of two that make one at once, the first one's stays. */
async function makeMasterKey(directory: string): Promise<void> {
  const [path, draft] = [join(directory, MASTER), join(directory, `${MASTER}.${randomBytes(6).toString('hex')}.tmp`)];
  if (existsSync(path)) return;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(`${randomBytes(KEY_BYTES).toString('base64')}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    // Unlike a rename, a link never replaces.
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
  await syncDirectory(directory);
}

/** @throws StartRefused for one that is not what was written */
async function ownMasterKey(directory: string): Promise<readonly string[]> {
  const path = join(directory, MASTER);
  if (!existsSync(path)) return [];
  const key = (await readFile(path, 'utf8')).trim();
  if (Buffer.from(key, 'base64').length !== KEY_BYTES) throw new StartRefused(`The data key in ${path} is damaged: put it back from the backup of the keys.`);
  return [key];
}
