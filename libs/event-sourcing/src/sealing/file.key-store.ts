import { createHash, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StartRefused } from '#libs/platform/src/start-refused';
import { KeyStore, type KeyPurpose } from './key-store.ts';
import { KEY_BYTES, MasterKeys, type WrappedKey } from './master-keys.ts';

/** Writes a whole file, durably, only where none is. Answers false when another was first. */
async function createFile(path: string, content: string): Promise<boolean> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    // Unlike a rename, a link never replaces.
    await link(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
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

/** Data keys as files of one directory that only its owner may read. */
export class FileKeyStore extends KeyStore {
  private readonly cache = new Map<KeyPurpose, Promise<KeyObject | null>>();

  private constructor(
    private readonly directory: string,
    private readonly masters: MasterKeys,
  ) {
    super();
  }

  /**
   * `masterKeys`: 32 bytes each, in base64, the newest first. Without any, one is made and kept beside the data keys, which protects copies of the log, not a copy of
   * the whole directory.
   * @throws StartRefused for a key that is not 32 bytes
   */
  static async open(directory: string, masterKeys: readonly string[]): Promise<FileKeyStore> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    // Were the directory lost in a crash, every key would be.
    await syncDirectory(dirname(directory));
    // A directory that began without MASTER_KEYS goes on being readable after they are set.
    const path = join(directory, 'master.key');
    if (masterKeys.length === 0) await createFile(path, `${randomBytes(KEY_BYTES).toString('base64')}\n`);
    const own = await readIfThere(path);
    if (own !== null && Buffer.from(own.trim(), 'base64').length !== KEY_BYTES) throw damaged(path);
    return new FileKeyStore(directory, MasterKeys.of(own === null ? masterKeys : [...masterKeys, own.trim()]));
  }

  async obtain(purpose: KeyPurpose): Promise<KeyObject> {
    const found = await this.find(purpose);
    if (found !== null) return found;
    await createFile(this.pathOf(purpose), JSON.stringify(this.masters.wrap(purpose, randomBytes(KEY_BYTES))));
    await syncDirectory(this.directory);
    this.cache.delete(purpose);
    const made = await this.find(purpose);
    if (made === null) throw new Error(`The key for ${purpose} was removed while it was made.`);
    return made;
  }

  find(purpose: KeyPurpose): Promise<KeyObject | null> {
    let key = this.cache.get(purpose);
    if (key === undefined) {
      key = this.load(purpose);
      this.cache.set(purpose, key);
      // What failed, or is not there yet, is looked for again.
      void key.then(
        (loaded) => loaded === null && this.cache.delete(purpose),
        () => this.cache.delete(purpose),
      );
    }
    return key;
  }

  async destroy(purpose: KeyPurpose): Promise<void> {
    const path = this.pathOf(purpose);
    this.cache.delete(purpose);
    // Overwritten first, for what a plain removal leaves on simple disks.
    const file = await open(path, 'r+').catch(() => null);
    if (file === null) return;
    const { size } = await file.stat();
    await file.write(randomBytes(size), 0, size, 0);
    await file.sync();
    await file.close();
    const gone = `${path}.gone`;
    await rename(path, gone);
    await rm(gone, { force: true });
    await syncDirectory(this.directory);
    this.cache.delete(purpose);
  }

  private async load(purpose: KeyPurpose): Promise<KeyObject | null> {
    const path = this.pathOf(purpose);
    const text = await readIfThere(path);
    if (text === null) return null;
    try {
      return createSecretKey(this.masters.unwrap(JSON.parse(text) as WrappedKey));
    } catch (error) {
      if (error instanceof StartRefused) throw error;
      throw damaged(path);
    }
  }

  private pathOf(purpose: KeyPurpose): string {
    return join(this.directory, `${createHash('sha256').update(purpose).digest('hex').slice(0, 40)}.key`);
  }
}

function damaged(path: string): StartRefused {
  return new StartRefused(`The data key in ${path} is damaged: put it back from the backup of the keys.`);
}
