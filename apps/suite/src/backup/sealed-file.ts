import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { KEY_BYTES, type MasterKeys, type WrappedKey } from '#libs/event-sourcing/src/sealing/master-keys';
import { StartRefused } from '#libs/platform/src/start-refused';

/**
 * A file of lines that only who has a master key reads, and that is whole or refused:
 *
 * - a header in clear: one line of JSON, with the file's own key, wrapped by a master key;
 * - frames: four bytes that say how long it is, and so many lines, zipped and sealed (AES-256-GCM) for their place, the last one as the last.
 *
 * What was cut off, lengthened, put together from several files or altered anywhere does not open.
 */
const FORMAT = 1;
const KIND = 'gatehouse small state';
const PURPOSE = 'backup';
/** Lines are sealed together up to this many bytes. */
const FRAME_BYTES = 256 * 1024;
/** No frame of ours comes near: a length beyond it is no length. */
const LARGEST_FRAME = 64 * 1024 * 1024;
const LARGEST_HEADER = 4 * 1024;
const LENGTH_BYTES = 4;
const TAG_BYTES = 16;
const COUNTER_BYTES = 11;
const READ_BYTES = 1024 * 1024;
const [zipped, unzipped] = [promisify(gzip), promisify(gunzip)];

export interface Header {
  readonly kind: typeof KIND;
  readonly format: number;
  /** Tells backups apart. */
  readonly id: string;
  readonly created_at: string;
  readonly key: Omit<WrappedKey, 'purpose'>;
}

/** The bytes of a file that holds these lines. */
export async function* sealed(lines: AsyncIterable<string>, masters: MasterKeys): AsyncGenerator<Buffer> {
  const key = randomBytes(KEY_BYTES);
  const { master, iv, wrapped } = masters.wrap(PURPOSE, key);
  const header: Header = { kind: KIND, format: FORMAT, id: randomUUID(), created_at: new Date().toISOString(), key: { master, iv, wrapped } };
  const head = Buffer.from(`${JSON.stringify(header)}\n`);
  yield head;
  let count = 0;
  let waiting: string[] = [];
  let bytes = 0;
  const frame = async (isLast: boolean): Promise<Buffer> => {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(count++, isLast)).setAAD(head);
    const parts = [cipher.update(await zipped(waiting.join('\n'))), cipher.final(), cipher.getAuthTag()];
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(parts.reduce((sum, part) => sum + part.length, 0));
    [waiting, bytes] = [[], 0];
    return Buffer.concat([length, ...parts]);
  };
  for await (const line of lines) {
    waiting.push(line);
    bytes += line.length;
    if (bytes >= FRAME_BYTES) yield await frame(false);
  }
  yield await frame(true);
}

/** A sealed file: read as often as one likes, a part at a time. */
export class SealedFile {
  private constructor(
    private readonly path: string,
    private readonly head: Buffer,
    readonly header: Header,
    private readonly key: Buffer,
  ) {}

  /** @throws StartRefused when it is no such file, of a later release, or sealed for whoever has another master key */
  static async open(path: string, masters: MasterKeys): Promise<SealedFile> {
    const foreign = new StartRefused(`${path} is no backup of a cluster's small state.`);
    const file = await opened(path);
    try {
      const { bytes } = await take(file, 0, LARGEST_HEADER);
      const end = bytes.indexOf('\n');
      if (end === -1) throw foreign;
      const head = bytes.subarray(0, end + 1);
      const header = headerIn(head.toString());
      if (header === null) throw foreign;
      if (header.format > FORMAT)
        throw new StartRefused(`${path} has format ${header.format}, and this release knows ${FORMAT}: use the release that wrote it, or a later one.`);
      const key = masters.unwrap({ ...header.key, purpose: PURPOSE }, () => altered(path));
      return new SealedFile(path, head, header, key);
    } finally {
      await file.close();
    }
  }

  /** @throws StartRefused where it ends too early, goes on too long, or is not what was written */
  async *lines(): AsyncGenerator<string> {
    const file = await opened(this.path);
    try {
      let position = this.head.length;
      for (let count = 0, isLast = false; !isLast; count++) {
        const { bytes: start } = await take(file, position, LENGTH_BYTES);
        if (start.length < LENGTH_BYTES) throw cutOff(this.path);
        const length = start.readUInt32BE();
        if (length <= TAG_BYTES || length > LARGEST_FRAME) throw altered(this.path);
        const { bytes: frame, isEnd } = await take(file, position + LENGTH_BYTES, length);
        if (frame.length < length) throw cutOff(this.path);
        isLast = isEnd;
        position += LENGTH_BYTES + length;
        const text = await this.opened(frame, count, isLast);
        if (text !== '') yield* text.split('\n');
      }
    } finally {
      await file.close();
    }
  }

  private async opened(frame: Buffer, count: number, isLast: boolean): Promise<string> {
    const text = this.decipher(frame, nonceOf(count, isLast));
    if (text !== null) return (await unzipped(text)).toString();
    // A frame that is whole, and not the last one, ends the file.
    throw isLast && this.decipher(frame, nonceOf(count, false)) !== null ? cutOff(this.path) : altered(this.path);
  }

  private decipher(frame: Buffer, nonce: Buffer): Buffer | null {
    const decipher = createDecipheriv('aes-256-gcm', this.key, nonce).setAAD(this.head).setAuthTag(frame.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(frame.subarray(0, -TAG_BYTES)), decipher.final()]);
    } catch {
      return null;
    }
  }
}

/** No two frames of a key have the same, and the last one has one that no other place has. */
function nonceOf(count: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(COUNTER_BYTES + 1);
  nonce.writeUIntBE(count, COUNTER_BYTES - 6, 6);
  nonce[COUNTER_BYTES] = isLast ? 1 : 0;
  return nonce;
}

/** Up to so many bytes of a file, and whether it ends with them. */
async function take(file: FileHandle, position: number, length: number): Promise<{ readonly bytes: Buffer; readonly isEnd: boolean }> {
  const bytes = Buffer.alloc(length + 1);
  let filled = 0;
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, Math.min(READ_BYTES, bytes.length - filled), position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return { bytes: bytes.subarray(0, Math.min(filled, length)), isEnd: filled <= length };
}

function headerIn(text: string): Header | null {
  try {
    const { kind, format, id, created_at, key } = JSON.parse(text) as Partial<Header>;
    const texts = [id, created_at, key?.master, key?.iv, key?.wrapped];
    const isOurs = kind === KIND && Number.isInteger(format) && texts.every((text) => typeof text === 'string');
    return isOurs ? { kind, format: format!, id: id!, created_at: created_at!, key: key! } : null;
  } catch {
    return null;
  }
}

async function opened(path: string): Promise<FileHandle> {
  try {
    const file = await open(path, 'r');
    if (!(await file.stat()).isDirectory()) return file;
    await file.close();
    throw Object.assign(new Error(), { code: 'EISDIR' });
  } catch (error) {
    throw new StartRefused(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

function cutOff(path: string): StartRefused {
  return new StartRefused(`${path} is cut off: the backup was not finished, or copied in part. Take another one.`);
}

function altered(path: string): StartRefused {
  return new StartRefused(`${path} is not what was written: take another backup.`);
}
