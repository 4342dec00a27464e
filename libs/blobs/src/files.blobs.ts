import { randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { Blobs, requireBlobFolder, requireBlobName, type Blob, type BlobContent, type BlobRange } from './blobs.ts';

/** Where uploads lie until all of them is there. No folder of blobs begins with a point. */
const INCOMING = '.incoming';
/** Bytes of a file that wait for the disk: appends to the log, which others wait for, are flushed behind them. */
const UNSYNCED = 4 * 1024 * 1024;
/** Of a file, read at once: each piece waits for a turn of the event loop. */
const READ_BYTES = 256 * 1024;
/** Somebody may remove an empty folder just before a blob is put into it. */
const ATTEMPTS = 5;

interface Options {
  /** Made when the first blob is stored. */
  readonly directory: string;
  /** Asked before anything is written. @throws DomainError `storage_full` */
  readonly assertWritable?: () => void;
}

/** Blobs as files of a directory that one process holds, for its owner alone. */
export class FilesBlobs extends Blobs {
  private constructor(private readonly options: Options) {
    super();
  }

  /** No other process uploads into the directory: what lies among the uploads was left by one that ended. */
  static async open(options: Options): Promise<FilesBlobs> {
    await rm(join(options.directory, INCOMING), { recursive: true, force: true });
    return new FilesBlobs(options);
  }

  override async put(name: string, content: AsyncIterable<Uint8Array>): Promise<Blob> {
    const path = this.pathOf(requireBlobName(name));
    const incoming = join(this.options.directory, INCOMING, randomUUID());
    try {
      await translated(mkdir(dirname(incoming), { recursive: true, mode: 0o700 }));
      const bytes = await this.write(incoming, content);
      await translated(moveDurably(incoming, path));
      const { storedAt } = blobOf(name, await translated(stat(path)));
      return { name, bytes, storedAt };
    } catch (error) {
      await rm(incoming, { force: true }).catch(() => {});
      throw error;
    }
  }

  override async get(name: string, range: BlobRange = { first: 0 }): Promise<BlobContent | null> {
    const file = await translated(absent(open(this.pathOf(requireBlobName(name)), 'r'), null));
    if (file === null) return null;
    try {
      const blob = blobOf(name, await file.stat());
      return { blob, bytes: readingOf(file, Math.min((range.last ?? blob.bytes - 1) + 1, blob.bytes), range.first) };
    } catch (error) {
      await file.close();
      throw unavailableFor(error);
    }
  }

  override async stat(name: string): Promise<Blob | null> {
    const found = await translated(absent(stat(this.pathOf(requireBlobName(name))), null));
    return found === null ? null : blobOf(name, found);
  }

  override async remove(name: string): Promise<void> {
    const path = this.pathOf(requireBlobName(name));
    await translated(rm(path, { force: true }));
    // Folders that stay empty would be counted, for ever, by whoever lists them.
    for (let folder = dirname(path); folder !== this.options.directory; folder = dirname(folder)) {
      const isGone = await rmdir(folder).then(
        () => true,
        () => false,
      );
      if (!isGone) return;
    }
  }

  /** Nobody else stores here, and what is left of a process that ended goes with the start of the next. */
  override async endUnfinished(): Promise<void> {}

  override async *list(folder: string): AsyncGenerator<Blob> {
    yield* this.below(requireBlobFolder(folder));
  }

  override async downloadAddress(): Promise<null> {
    return null;
  }

  override async close(): Promise<void> {}

  private pathOf(name: string): string {
    return join(this.options.directory, name);
  }

  private async write(path: string, content: AsyncIterable<Uint8Array>): Promise<number> {
    const file = await translated(open(path, 'wx', 0o600));
    try {
      let [bytes, onDisk] = [0, 0];
      for await (const part of content) {
        this.options.assertWritable?.();
        await translated(writeAll(file, part));
        bytes += part.byteLength;
        if (bytes - onDisk < UNSYNCED) continue;
        await translated(file.datasync());
        onDisk = bytes;
      }
      await translated(file.sync());
      return bytes;
    } finally {
      await translated(file.close());
    }
  }

  private async *below(folder: string): AsyncGenerator<Blob> {
    for (const entry of await translated(absent(readdir(this.pathOf(folder), { withFileTypes: true }), []))) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) yield* this.below(name);
      else {
        const found = await this.stat(name);
        if (found !== null) yield found;
      }
    }
  }
}

function blobOf(name: string, { size, mtimeMs }: Pick<Stats, 'size' | 'mtimeMs'>): Blob {
  return { name, bytes: size, storedAt: Math.floor(mtimeMs) };
}

/** A write may take a part only, on a disk that is nearly full. */
async function writeAll(file: FileHandle, part: Uint8Array): Promise<void> {
  for (let at = 0; at < part.byteLength;) at += (await file.write(part, at)).bytesWritten;
}

async function moveDurably(from: string, to: string): Promise<void> {
  const folder = dirname(to);
  for (let attempt = 1; ; attempt += 1) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    try {
      await rename(from, to);
      break;
    } catch (error) {
      if (attempt === ATTEMPTS || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** @param end the byte behind the last one */
async function* readingOf(file: FileHandle, end: number, first: number): AsyncGenerator<Uint8Array> {
  try {
    if (first >= end) return;
    let at = first;
    for await (const part of file.createReadStream({ autoClose: false, start: first, end: end - 1, highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>) {
      at += part.byteLength;
      yield part;
    }
    if (at < end) throw unavailable('A file is shorter than it was.');
  } catch (error) {
    throw unavailableFor(error);
  } finally {
    await file.close();
  }
}

async function absent<Found, Instead>(found: Promise<Found>, instead: Instead): Promise<Found | Instead> {
  try {
    return await found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return instead;
    throw error;
  }
}

async function translated<Answer>(work: Promise<Answer>): Promise<Answer> {
  try {
    return await work;
  } catch (error) {
    throw unavailableFor(error);
  }
}

function unavailableFor(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new DomainError('unavailable', 'storage_full', 'The disk is full: files are refused until there is room.', { retryAfter: 30 });
  return unavailable(`A file could not be read or written (${code}).`, 5);
}
