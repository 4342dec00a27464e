import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { StartRefused } from '#libs/platform/src/start-refused';

export interface FirstKey {
  readonly value: string;
  readonly path: string;
  /** It was made now, and is shown this once. */
  readonly isNew: boolean;
}

const KEY = /^sk_[\x21-\x7e]{17,252}$/;

/** The key of the environment `development`, kept beside the data so that the next start finds it. @throws StartRefused */
export function firstKey(dataDir: string): FirstKey {
  const path = join(resolve(dataDir), 'development.key');
  const kept = read(path);
  if (kept !== null) {
    if (!KEY.test(kept)) throw new StartRefused(`${path} holds no key: write one that begins with sk_ into it, or remove the file and a new key is made.`);
    return { value: kept, path, isNew: false };
  }
  const value = `sk_${randomBytes(32).toString('base64url')}`;
  try {
    // On engines nobody else has made it.
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    write(path, value);
  } catch (error) {
    throw new StartRefused(`${path} cannot be written (${(error as NodeJS.ErrnoException).code}): set DATA_DIR to a directory that this user may write to.`);
  }
  return { value, path, isNew: true };
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new StartRefused(`${path} cannot be read: give it back to this user, or remove it and a new key is made.`);
  }
}

/** On disk before the key is used: a key that works and that nobody knows would be lost. */
function write(path: string, value: string): void {
  const file = openSync(`${path}.new`, 'w', 0o600);
  writeSync(file, `${value}\n`);
  fsyncSync(file);
  closeSync(file);
  renameSync(`${path}.new`, path);
}
