import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { copyFile, cp, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Position } from '#libs/event-sourcing/src/log/event-store';
import { copyKeys } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { StartRefused } from '#libs/platform/src/start-refused';
import { expectEmpty } from '#libs/platform/src/storage/empty-directory';
import { expectKnownFormat, keysIn, LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { verifyLog } from './verify.ts';

/** A layout of the backup's directory, not of what lies in the files. */
const FORMAT = 1;
const MANIFEST = 'manifest.json';

interface Manifest {
  readonly format: number;
  readonly created_at: string;
  /** The last record that the backup holds; nothing after it is in any of its files. */
  readonly position: Position;
  readonly files: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>;
  /** What the second directory holds, so that it can be told whether the two belong together. */
  readonly keys: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>;
}

/**
 * In the process that holds the data: copies, as of one moment, the log and what it cannot refill, and then the keys, which by then hold at least every key that the copy
 * needs. Views hold personal data in clear: they are filled again.
 */
export async function copyData(storage: LmdbStorage, directory: string, keysDirectory: string): Promise<void> {
  for (const target of [directory, keysDirectory]) await expectEmpty(target);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await storage.backup(join(directory, 'data'));
  await copyKeys(storage.keys, keysDirectory);
}

/** In the process that asked for it: reads the copy once, and writes what it is. Without its manifest a backup is unfinished. @throws StartRefused */
export async function sealBackup(directory: string, keysDirectory: string): Promise<Position> {
  const data = join(directory, 'data');
  const { head, problem } = await verifyLog(data, null);
  if (problem !== null) throw new StartRefused(`The backup in ${directory} is no good: ${problem} Look at the original with 'verify'.`);
  // What verifying left beside the data belongs to that process.
  await rm(join(data, 'log', 'lock.mdb'), { force: true });
  const manifest: Manifest = {
    format: FORMAT,
    created_at: new Date().toISOString(),
    position: head,
    files: await checksums(data),
    keys: await checksums(keysDirectory),
  };
  const file = await open(join(directory, `${MANIFEST}.new`), 'w', 0o600);
  await file.writeFile(`${JSON.stringify(manifest, null, 2)}\n`);
  await file.sync();
  await file.close();
  await rename(join(directory, `${MANIFEST}.new`), join(directory, MANIFEST));
  return head;
}

/** Puts a backup where no data is yet. @throws StartRefused when the target holds something, or the backup is unfinished, changed, or of a newer release */
export async function restoreBackup(directory: string, keysDirectory: string, dataDirectory: string): Promise<Position> {
  const { format, position, files, keys } = await manifestOf(directory);
  if (format > FORMAT)
    throw new StartRefused(`${directory} has backup format ${format}, and this release knows ${FORMAT}: use the release that wrote it, or a later one.`);
  const data = join(directory, 'data');
  await expectFiles(data, files);
  await expectFiles(keysDirectory, keys);
  expectKnownFormat(data);
  await LmdbStorage.restore({ directory: dataDirectory }, async (into) => {
    // Backups of earlier releases hold views: they are filled again all the same.
    await cp(data, into, { recursive: true, preserveTimestamps: true, filter: (source) => !isView(data, source) });
    // Those of earlier releases lie in files, which the first start takes over.
    await mkdir(keysIn(into), { mode: 0o700 });
    for (const name of Object.keys(keys)) await copyFile(join(keysDirectory, name), join(keysIn(into), name));
  });
  return position;
}

function isView(data: string, path: string): boolean {
  return ['views', 'views.state'].includes(relative(data, path));
}

async function manifestOf(directory: string): Promise<Manifest> {
  const text = await readFile(join(directory, MANIFEST), 'utf8').catch(() => {
    throw new StartRefused(`${directory} holds no finished backup: it has no ${MANIFEST}.`);
  });
  try {
    return JSON.parse(text) as Manifest;
  } catch {
    throw new StartRefused(`${join(directory, MANIFEST)} is not what was written: take another backup.`);
  }
}

async function expectFiles(directory: string, files: Manifest['files']): Promise<void> {
  const found = await checksums(directory).catch(() => {
    throw new StartRefused(`${directory} cannot be read; the backup needs it.`);
  });
  for (const [path, { sha256 }] of Object.entries(files))
    if (found[path]?.sha256 !== sha256)
      throw new StartRefused(`${join(directory, path)} is ${found[path] === undefined ? 'missing' : 'not what was backed up'}: take another backup.`);
}

async function checksums(directory: string): Promise<Manifest['files']> {
  const files: Record<string, { bytes: number; sha256: string }> = {};
  for (const entry of await readdir(directory, { recursive: true })) {
    const path = join(directory, entry);
    const { size, isFile } = await stat(path).then((found) => ({ size: found.size, isFile: found.isFile() }));
    if (isFile) files[entry.replaceAll('\\', '/')] = { bytes: size, sha256: await checksum(path) };
  }
  return files;
}

async function checksum(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
