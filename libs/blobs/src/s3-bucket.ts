import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  type PutObjectCommandInput,
  S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import type { BlobDownload, BlobRange } from './blobs.ts';
import type { S3Encryption, S3Options } from './s3-options.ts';

/** With two on their way an upload takes 24 MiB of memory at most, and 10,000 of them are 78 GiB. */
const PART_BYTES = 8 * 2 ** 20;
const PARTS_AT_ONCE = 2;
const CONNECT_MS = 3_000;
const TIMEOUT_MS = 20_000;
/** Of each call, the first one included. */
const ATTEMPTS = 3;
/** What stores say where there is no room. */
const FULL = /^(?:XMinioStorageFull|QuotaExceeded|InsufficientStorage|.*StorageFull)$/;

interface Stored {
  readonly bytes: number;
  readonly storedAt: number;
}

/** The only file that knows the SDK of S3. */
export class S3Bucket {
  private readonly client: S3Client;
  /** Only signs. */
  private readonly outside: S3Client;

  constructor(private readonly options: S3Options) {
    const { region, endpoint, publicEndpoint, credentials, timeoutMs = TIMEOUT_MS } = options;
    // The SDK looks for files below the home folder, and fails where the user of a container has none.
    // oxlint-disable-next-line no-restricted-properties -- it reads no setting: the SDK does
    process.env['HOME'] ??= '/nonexistent';
    const shared = {
      region,
      ...(credentials !== null && { credentials }),
      maxAttempts: ATTEMPTS,
      // Others than AWS may not know the newer checksums; sizes are compared here, and owners hold content to a hash of their own.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: timeoutMs, requestTimeout: timeoutMs, throwOnRequestTimeout: true },
    } as const;
    this.client = new S3Client({ ...shared, ...at(endpoint) });
    this.outside = new S3Client({ ...shared, ...at(publicEndpoint ?? endpoint) });
  }

  async put(key: string, content: AsyncIterable<Uint8Array>): Promise<Stored> {
    const source = new Source(content);
    const upload = new Upload({
      client: this.client,
      params: { Bucket: this.options.bucket, Key: key, Body: Readable.from(source.counted(), { objectMode: false }), ...encryptionOf(this.options.encryption) },
      partSize: PART_BYTES,
      queueSize: PARTS_AT_ONCE,
    });
    try {
      await upload.done();
    } catch (error) {
      throw source.failure === null ? this.translated(error) : source.failure.error;
    }
    const found = await this.stat(key);
    if (found?.bytes === source.bytes) return found;
    this.options.log.error('The store of files has another number of bytes than it was given.', { key, given: source.bytes, stored: found?.bytes ?? null });
    await this.remove(key).catch(() => {});
    throw unavailable('The store of files did not keep what it was given.', 5);
  }

  async get(key: string, { first, last }: BlobRange): Promise<(Stored & { readonly content: AsyncIterable<Uint8Array> }) | null> {
    const Range = first === 0 && last === undefined ? undefined : `bytes=${first}-${last ?? ''}`;
    try {
      const found = await this.client.send(new GetObjectCommand({ Bucket: this.options.bucket, Key: key, Range }));
      const bytes = found.ContentRange === undefined ? found.ContentLength! : Number(found.ContentRange.split('/')[1]);
      return { bytes, storedAt: found.LastModified!.getTime(), content: this.reading(found.Body as Readable, found.ContentLength!) };
    } catch (error) {
      if (isAbsent(error)) return null;
      // Behind the end: nothing, as with a file.
      if ((error as Error).name !== 'InvalidRange') throw this.translated(error);
      const found = await this.stat(key);
      return found === null ? null : { ...found, content: nothing() };
    }
  }

  async stat(key: string): Promise<Stored | null> {
    try {
      const found = await this.client.send(new HeadObjectCommand({ Bucket: this.options.bucket, Key: key }));
      return { bytes: found.ContentLength!, storedAt: found.LastModified!.getTime() };
    } catch (error) {
      if (isAbsent(error)) return null;
      throw this.translated(error);
    }
  }

  async remove(key: string): Promise<void> {
    await this.call(() => this.client.send(new DeleteObjectCommand({ Bucket: this.options.bucket, Key: key })));
  }

  async *list(prefix: string): AsyncGenerator<Stored & { readonly key: string }> {
    for (let next: string | undefined; ;) {
      const page = await this.call(() => this.client.send(new ListObjectsV2Command({ Bucket: this.options.bucket, Prefix: prefix, ContinuationToken: next })));
      for (const { Key, Size, LastModified } of page.Contents ?? []) yield { key: Key!, bytes: Size!, storedAt: LastModified!.getTime() };
      next = page.NextContinuationToken;
      if (next === undefined) return;
    }
  }

  async downloadAddress(key: string, { until, fileName, contentType }: BlobDownload): Promise<string> {
    const command = new GetObjectCommand({
      Bucket: this.options.bucket,
      Key: key,
      ResponseContentType: contentType,
      ResponseContentDisposition: `attachment; filename="${fileName.replaceAll(/[^A-Za-z0-9._-]/g, '_')}"`,
    });
    return this.call(() => getSignedUrl(this.outside, command, { expiresIn: Math.max(1, Math.ceil((until - Date.now()) / 1_000)) }));
  }

  /** Ends the first of the uploads that began up to then; a store lists 1,000. */
  async abortUploads(prefix: string, until: number): Promise<void> {
    const { bucket: Bucket } = this.options;
    const { Uploads = [] } = await this.call(() => this.client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: prefix })));
    for (const { Key, UploadId, Initiated } of Uploads)
      if (Initiated!.getTime() <= until) await this.call(() => this.client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })));
  }

  close(): void {
    this.client.destroy();
    this.outside.destroy();
  }

  private async *reading(body: Readable, expected: number): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    const { timeoutMs = TIMEOUT_MS } = this.options;
    const parts = body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
    try {
      for (;;) {
        // Only the wait for the store is counted, not what whoever reads does in between.
        const late = setTimeout(() => body.destroy(new Error('The store of files sent nothing for too long.')), timeoutMs);
        const part = await parts.next().finally(() => clearTimeout(late));
        if (part.done === true) break;
        bytes += part.value.byteLength;
        yield part.value;
      }
    } catch (error) {
      throw this.translated(error);
    } finally {
      body.destroy();
    }
    if (bytes !== expected) throw this.translated(new Error(`${bytes} bytes came instead of ${expected}.`));
  }

  private async call<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    try {
      return await ask();
    } catch (error) {
      throw this.translated(error);
    }
  }

  private translated(error: unknown): DomainError {
    if (error instanceof DomainError) return error;
    const { name, message, $metadata } = error as Error & { readonly $metadata?: { readonly httpStatusCode?: number } };
    // The SDK's errors hold the request, and so its signature.
    this.options.log.error('The store of files refused something, or did not answer.', { name, message, status: $metadata?.httpStatusCode });
    if (FULL.test(name) || $metadata?.httpStatusCode === 507)
      return new DomainError('unavailable', 'storage_full', 'The store of files is full: they are refused until there is room.', { retryAfter: 30 });
    return unavailable('Files cannot be stored or read at the moment.', 5);
  }
}

/** Counts, and remembers what was thrown here, to tell it from what the store did. */
class Source {
  bytes = 0;
  failure: { readonly error: unknown } | null = null;

  constructor(private readonly content: AsyncIterable<Uint8Array>) {}

  async *counted(): AsyncGenerator<Uint8Array> {
    try {
      for await (const part of this.content) {
        this.bytes += part.byteLength;
        yield part;
      }
    } catch (error) {
      this.failure = { error };
      throw error;
    }
  }
}

/** A store of one's own seldom has a host name for each bucket. */
function at(endpoint: string | null): { readonly endpoint?: string; readonly forcePathStyle?: boolean } {
  return endpoint === null ? {} : { endpoint, forcePathStyle: true };
}

function encryptionOf(encryption: S3Encryption): Partial<PutObjectCommandInput> {
  if (encryption.by === 'none') return {};
  if (encryption.by === 'AES256') return { ServerSideEncryption: 'AES256' };
  return { ServerSideEncryption: 'aws:kms', ...(encryption.key !== null && { SSEKMSKeyId: encryption.key }) };
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && (error.name === 'NoSuchKey' || error.name === 'NotFound');
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
