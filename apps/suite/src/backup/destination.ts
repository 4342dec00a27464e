import type { Stats } from 'node:fs';
import { access, lstat, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StartRefused } from '#libs/platform/src/start-refused';

/** Standard output, or input. */
export const STREAM = '-';

type Tell = (line: string) => void;

/** Where a backup goes, and where meanwhile something is told to a person. */
interface Destination {
  readonly tell: Tell;
  /** Resolves when all of it is there. @throws StartRefused */
  readonly write: (bytes: AsyncIterable<Buffer>) => Promise<void>;
}

interface Streams {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

export function destinationOf(path: string, tell: Tell, { stdout, stderr }: Streams = process): Destination {
  if (path !== STREAM) return { tell, write: (bytes) => writeWhole(path, bytes) };
  // A line among the bytes would spoil them.
  return { tell: (line) => void stderr.write(`${line}\n`), write: (bytes) => writeOut(bytes, stdout) };
}

/** Waits for each part: what a slow reader has not taken when the process ends is lost. */
async function writeOut(bytes: AsyncIterable<Buffer>, stdout: NodeJS.WritableStream): Promise<void> {
  let failure: NodeJS.ErrnoException | null = null;
  // The part that fails says so too.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    failure = error;
  });
  const taken = new Writable({ write: (part: Buffer, _encoding, done) => void stdout.write(part, done) });
  await pipeline(bytes, taken).catch((error: unknown) => {
    throw failure === null ? error : new StartRefused(`The backup cannot be written to standard output (${failure.code}): what is there is no backup.`);
  });
}

/** Under its name there is the whole file, on disk, or none. @throws StartRefused */
async function writeWhole(path: string, bytes: AsyncIterable<Buffer>): Promise<void> {
  if (await isThere(path)) throw new StartRefused(`${path} is there already: name a file that is not.`);
  const draft = `${path}.unfinished`;
  try {
    await rm(draft, { force: true });
    // A file of its own: neither one that others may read, nor one that a link names.
    const file = await open(draft, 'wx', 0o600);
    try {
      for await (const part of bytes) await file.writeFile(part);
      await file.sync();
      if (!(await isStill(draft, file))) throw new StartRefused(`Another backup has begun to write ${path} meanwhile: this one is given up.`);
      await rename(draft, path);
    } catch (error) {
      if (await isStill(draft, file)) await rm(draft, { force: true });
      throw error;
    } finally {
      await file.close();
    }
    const directory = await open(dirname(path), 'r');
    await directory.sync();
    await directory.close();
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    throw syscall === undefined ? error : new StartRefused(`${path} cannot be written (${code}).`);
  }
}

/** Whether the name is still that of the file. */
async function isStill(path: string, file: FileHandle): Promise<boolean> {
  const [named, held]: [Stats | null, Stats] = await Promise.all([lstat(path).catch(() => null), file.stat()]);
  return named !== null && named.ino === held.ino && named.dev === held.dev;
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
