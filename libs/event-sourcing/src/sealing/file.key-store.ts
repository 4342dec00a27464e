import { createHash, randomBytes } from 'node:crypto';
import { copyFile, link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Clock, SystemClock } from '#libs/platform/src/clock';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { Position } from '../log/event-store.ts';
import type { ErasablePurpose, KeyPurpose } from './key-store.ts';
import { KEY_BYTES, MasterKeys, type WrappedKey } from './master-keys.ts';
import { WrappedKeyStore } from './wrapped.key-store.ts';

/** Files that are open at the same time: a process may have few. */
const TOGETHER = 64;
const ERASER = 'eraser.position';
const DRAFT = '.tmp';

/** In the place of a key that was destroyed. */
interface Tombstone {
  readonly purpose: string;
  readonly erased: true;
}

/** Writes a whole file, durably, under a name that nobody looks for; answers that name. */
async function draftOf(path: string, content: string): Promise<string> {
  const draft = `${path}.${randomBytes(6).toString('hex')}${DRAFT}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  return draft;
}

/** Writes a whole file, durably, only where none is: whoever was first stays. */
async function createFile(path: string, content: string): Promise<void> {
  const draft = await draftOf(path, content);
  try {
    // Unlike a rename, a link never replaces.
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function replaceFile(path: string, content: string): Promise<void> {
  await rename(await draftOf(path, content), path);
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Copies a directory of keys while others write to it: drafts come and go, and a file that has its name keeps it. */
export async function copyKeyFiles(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  const names = (await readdir(from)).filter((name) => !name.endsWith(DRAFT));
  for (let first = 0; first < names.length; first += TOGETHER)
    await Promise.all(names.slice(first, first + TOGETHER).map((name) => copyFile(join(from, name), join(to, name))));
}

/** Data keys as files of one directory that only its owner may read. */
export class FileKeyStore extends WrappedKeyStore {
  private constructor(
    private readonly directory: string,
    masters: MasterKeys,
    clock: Clock,
  ) {
    super(masters, clock);
  }

  /**
   * `masterKeys`: 32 bytes each, in base64, the newest first. Without any, one is made and kept beside the data keys, which protects copies of the log, not a copy of
   * the whole directory.
   * @throws StartRefused for a key that is not 32 bytes
   */
  static async open(directory: string, masterKeys: readonly string[], clock: Clock = new SystemClock()): Promise<FileKeyStore> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    // Were the directory lost in a crash, every key would be.
    await syncDirectory(dirname(directory));
    // A directory that began without MASTER_KEYS goes on being readable after they are set.
    const path = join(directory, 'master.key');
    if (masterKeys.length === 0) await createFile(path, `${randomBytes(KEY_BYTES).toString('base64')}\n`);
    const own = await readIfThere(path);
    if (own !== null && Buffer.from(own.trim(), 'base64').length !== KEY_BYTES) throw damagedFile(path);
    return new FileKeyStore(directory, MasterKeys.of(own === null ? masterKeys : [...masterKeys, own.trim()]), clock);
  }

  /** The same for looking, beside the process that writes: makes nothing. @throws StartRefused where no master key is known */
  static async openForReading(directory: string, masterKeys: readonly string[]): Promise<FileKeyStore> {
    const own = await readIfThere(join(directory, 'master.key'));
    return new FileKeyStore(directory, MasterKeys.of(own === null ? masterKeys : [...masterKeys, own.trim()]), new SystemClock());
  }

  async erasedUpTo(): Promise<Position> {
    return (await readIfThere(join(this.directory, ERASER)))?.trim() ?? '';
  }

  async setErasedUpTo(position: Position): Promise<void> {
    await replaceFile(join(this.directory, ERASER), `${position}\n`);
    await syncDirectory(this.directory);
  }

  protected async load(purposes: readonly KeyPurpose[]): Promise<ReadonlyMap<KeyPurpose, WrappedKey | 'erased'>> {
    const found = new Map<KeyPurpose, WrappedKey | 'erased'>();
    for (let from = 0; from < purposes.length; from += TOGETHER) {
      const some = purposes.slice(from, from + TOGETHER);
      const texts = await Promise.all(some.map((purpose) => readIfThere(this.pathOf(purpose))));
      for (const [index, text] of texts.entries()) if (text !== null) found.set(some[index]!, this.parsed(some[index]!, text));
    }
    return found;
  }

  protected async putFirst(key: WrappedKey & { readonly purpose: KeyPurpose }): Promise<void> {
    await createFile(this.pathOf(key.purpose), JSON.stringify(key));
    await syncDirectory(this.directory);
  }

  protected async bury(purpose: ErasablePurpose): Promise<void> {
    const path = this.pathOf(purpose);
    const key = await open(path, 'r+').catch(() => null);
    try {
      const tombstone: Tombstone = { purpose, erased: true };
      await replaceFile(path, JSON.stringify(tombstone));
      await syncDirectory(this.directory);
      // The file has no name any more, and its bytes are still on the disk: overwritten, for what a plain removal leaves on simple disks.
      if (key !== null) {
        const { size } = await key.stat();
        await key.write(randomBytes(size), 0, size, 0);
        await key.sync();
      }
    } finally {
      await key?.close();
    }
  }

  protected damaged(purpose: string): Error {
    return damagedFile(this.pathOf(purpose));
  }

  /** Of another purpose, as a file that was copied over: under another naming key, every claimed value would be free to take. */
  private parsed(purpose: KeyPurpose, text: string): WrappedKey | 'erased' {
    const stored = objectIn(text);
    if (stored?.['purpose'] !== purpose) throw this.damaged(purpose);
    if (stored['erased'] !== true) return stored as unknown as WrappedKey;
    if (purpose === 'naming' || purpose === 'passwords') throw this.damaged(purpose);
    return 'erased';
  }

  private pathOf(purpose: string): string {
    return join(this.directory, `${createHash('sha256').update(purpose).digest('hex').slice(0, 40)}.key`);
  }
}

function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>> | null;
  } catch {
    return null;
  }
}

function damagedFile(path: string): StartRefused {
  return new StartRefused(`The data key in ${path} is damaged: put it back from the backup of the keys.`);
}
