import { unavailable } from '#libs/platform/src/domain-error';
import { Blobs, requireBlobFolder, requireBlobName, type Blob, type BlobContent, type BlobDownload, type BlobRange } from './blobs.ts';
import type { S3Bucket } from './s3-bucket.ts';
import type { S3Options } from './s3-options.ts';

const UNFINISHED_MS = 24 * 3_600_000;
const SWEEP_EVERY_MS = 6 * 3_600_000;

/** Blobs in a bucket of S3, or of what speaks its protocol. The SDK takes time and memory, so it is loaded with the first use. */
export class S3Blobs extends Blobs {
  private opened: Promise<S3Bucket> | null = null;
  /** When uploads were last looked for that ended with their process. */
  private sweptAt = -Infinity;
  private sweep: Promise<void> = Promise.resolve();

  constructor(private readonly options: S3Options) {
    super();
  }

  override async put(name: string, content: AsyncIterable<Uint8Array>): Promise<Blob> {
    const { prefix } = this.options;
    const bucket = await this.bucket();
    this.sweepSometimes(bucket);
    return { name, ...(await bucket.put(prefix + requireBlobName(name), content)) };
  }

  override async get(name: string, range: BlobRange = { first: 0 }): Promise<BlobContent | null> {
    const found = await (await this.bucket()).get(this.options.prefix + requireBlobName(name), range);
    return found === null ? null : { blob: { name, bytes: found.bytes, storedAt: found.storedAt }, bytes: found.content };
  }

  override async stat(name: string): Promise<Blob | null> {
    const found = await (await this.bucket()).stat(this.options.prefix + requireBlobName(name));
    return found === null ? null : { name, ...found };
  }

  override async remove(name: string): Promise<void> {
    await (await this.bucket()).remove(this.options.prefix + requireBlobName(name));
  }

  override async endUnfinished(folder: string): Promise<void> {
    await (await this.bucket()).abortUploads(`${this.options.prefix}${requireBlobFolder(folder)}/`, Infinity);
  }

  override async *list(folder: string): AsyncGenerator<Blob> {
    const { prefix } = this.options;
    for await (const { key, ...stored } of (await this.bucket()).list(`${prefix}${requireBlobFolder(folder)}/`))
      yield { name: key.slice(prefix.length), ...stored };
  }

  override async downloadAddress(name: string, download: BlobDownload): Promise<string> {
    return (await this.bucket()).downloadAddress(this.options.prefix + requireBlobName(name), download);
  }

  override async close(): Promise<void> {
    await this.sweep;
    (await this.opened?.catch(() => null))?.close();
  }

  /** Beside an upload, since whoever stores nothing leaves nothing. */
  private sweepSometimes(bucket: S3Bucket): void {
    const now = Date.now();
    if (now < this.sweptAt + SWEEP_EVERY_MS) return;
    this.sweptAt = now;
    const { log, prefix, unfinishedMs = UNFINISHED_MS } = this.options;
    this.sweep = bucket.abortUploads(prefix, now - unfinishedMs).catch((error: unknown) => log.warn('Uploads that were cut off stay for now.', { error }));
  }

  private bucket(): Promise<S3Bucket> {
    this.opened ??= import('./s3-bucket.ts').then(
      ({ S3Bucket }) => new S3Bucket(this.options),
      (error: unknown) => {
        this.opened = null;
        this.options.log.error('The SDK of S3 cannot be loaded.', { error });
        throw unavailable('Files cannot be stored or read at the moment.', 5);
      },
    );
    return this.opened;
  }
}
