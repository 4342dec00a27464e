import { DomainError } from '#libs/platform/src/domain-error';
import { Blobs } from './blobs.ts';

/** In a process that was told of no store: what needs one is refused, and all else goes on. */
export class AbsentBlobs extends Blobs {
  override async put(): Promise<never> {
    throw notConfigured();
  }

  override async get(): Promise<never> {
    throw notConfigured();
  }

  override async stat(): Promise<never> {
    throw notConfigured();
  }

  override async remove(): Promise<never> {
    throw notConfigured();
  }

  override async endUnfinished(): Promise<never> {
    throw notConfigured();
  }

  override list(): AsyncIterable<never> {
    throw notConfigured();
  }

  override async downloadAddress(): Promise<never> {
    throw notConfigured();
  }

  override requireStore(): never {
    throw notConfigured();
  }

  override async close(): Promise<void> {}
}

function notConfigured(): DomainError {
  return new DomainError('unavailable', 'blob_store_not_configured', 'This installation stores no files: an operator has to set S3_BUCKET.');
}
