import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartRefused } from '#libs/platform/src/start-refused';
import { removeScrubbed, syncDirectory } from '#libs/platform/src/storage/erasable-environment';
import { isPosition, type Position } from '../log/event-store.ts';
import type { KeyPurpose } from './key-store.ts';
import type { WrappedKey } from './master-keys.ts';

// How earlier releases kept the keys of embedded engines: a file each, called after a hash of its purpose.

const KEY_FILE = /^[0-9a-f]{40}\.key$/;
const ERASER = 'eraser.position';
const DRAFT = '.tmp';
/** Files that are open at the same time: a process may have few. */
const TOGETHER = 64;
const A_FLUSH = 4096;
/** Stands there from when every key is in its new place until the last file is gone. */
const TAKEN = 'files.taken-over';

/** A key, or what stands in the place of one that was destroyed. */
export type KeyInFile = WrappedKey | { readonly purpose: string; readonly erased: true };

/** Where keys move to; each is durable there when it resolves. */
interface NewPlace {
  /** Told once, when all files were found whole and before anything is changed. */
  readonly begin: (files: number) => void;
  readonly put: (key: KeyInFile) => Promise<void>;
  readonly setErasedUpTo: (position: Position) => Promise<void>;
}

/**
 * Moves the keys that lie in files. All of them are durable in their new place before the first file goes, and a note says so: of a file that is being removed, a crash may
 * leave the zeros that it was overwritten with. Cut short before that, it is done again: `put` meets what it has put before.
 * @throws StartRefused for a damaged file, before anything is changed
 */
export async function takeOverKeyFiles(directory: string, place: NewPlace): Promise<void> {
  const names = (await readdir(directory)).filter((name) => KEY_FILE.test(name) || name === ERASER || name.endsWith(DRAFT));
  const note = join(directory, TAKEN);
  if (names.length > 0 && !existsSync(note)) {
    const erasedUpTo = names.includes(ERASER) ? await positionIn(join(directory, ERASER)) : null;
    await moveKeys(directory, place);
    if (erasedUpTo !== null) await place.setErasedUpTo(erasedUpTo);
    await writeFile(note, '', { mode: 0o600, flush: true });
    await syncDirectory(directory);
  }
  for (let from = 0; from < names.length; from += TOGETHER)
    await Promise.all(names.slice(from, from + TOGETHER).map((name) => (KEY_FILE.test(name) ? removeScrubbed : rm)(join(directory, name))));
  if (names.length > 0) await syncDirectory(directory);
  await rm(note, { force: true });
}

async function moveKeys(directory: string, place: NewPlace): Promise<void> {
  let files = 0;
  for await (const keys of wholeFilesIn(directory)) files += keys.length;
  place.begin(files);
  // Each group waits for a flush of the disk.
  let group: KeyInFile[] = [];
  for await (const keys of wholeFilesIn(directory)) {
    group.push(...keys);
    if (group.length < A_FLUSH) continue;
    await Promise.all(group.map(place.put));
    group = [];
  }
  await Promise.all(group.map(place.put));
}

/** What the files of a directory hold, beside a process that may be taking them over. Nothing where that has all of them. @throws StartRefused for a damaged one */
export async function keyFilesIn(directory: string): Promise<readonly KeyInFile[]> {
  const found: KeyInFile[] = [];
  try {
    for await (const keys of wholeFilesIn(directory)) found.push(...keys);
  } catch (error) {
    if (!(await areTakenOver(directory))) throw error;
    return [];
  }
  return found;
}

async function areTakenOver(directory: string): Promise<boolean> {
  return existsSync(join(directory, TAKEN)) || !(await readdir(directory)).some((name) => KEY_FILE.test(name));
}

/** Many at a time. @throws StartRefused for a damaged one */
async function* wholeFilesIn(directory: string): AsyncIterable<readonly KeyInFile[]> {
  const names = (await readdir(directory)).filter((name) => KEY_FILE.test(name));
  for (let from = 0; from < names.length; from += TOGETHER)
    yield await Promise.all(
      names.slice(from, from + TOGETHER).map(async (name) => keyIn(join(directory, name), await readFile(join(directory, name), 'utf8'))),
    );
}

/** @throws StartRefused also for one of another purpose, as a file that was copied over: under another naming key, every claimed value would be free to take */
function keyIn(path: string, text: string): KeyInFile {
  const stored = objectIn(text);
  const purpose = stored?.['purpose'] as KeyPurpose | undefined;
  const isThere = purpose !== undefined && path.endsWith(`${createHash('sha256').update(purpose).digest('hex').slice(0, 40)}.key`);
  const isErased = stored?.['erased'] === true;
  const isWhole = isErased ? purpose !== 'naming' && purpose !== 'passwords' : ['master', 'iv', 'wrapped'].every((name) => typeof stored?.[name] === 'string');
  if (!isThere || !isWhole) throw new StartRefused(`The data key in ${path} is damaged: put it back from the backup of the keys.`);
  return stored as unknown as KeyInFile;
}

/** @throws StartRefused for what is none */
async function positionIn(path: string): Promise<Position> {
  const text = (await readFile(path, 'utf8')).trim();
  if (!isPosition(text)) throw new StartRefused(`What says how far erasures have come, ${path}, is damaged: put it back from the backup of the keys.`);
  return text;
}

function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>> | null;
  } catch {
    return null;
  }
}
