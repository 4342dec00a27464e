import { AbsentBlobs } from '#libs/blobs/src/absent.blobs';
import type { Blobs } from '#libs/blobs/src/blobs';
import type { S3Encryption } from '#libs/blobs/src/s3-options';
import { S3Blobs } from '#libs/blobs/src/s3.blobs';
import type { BlobSettings } from '#libs/platform/src/config/settings';
import type { Log } from '#libs/platform/src/log';
import { StartRefused } from '#libs/platform/src/start-refused';

interface Place {
  readonly installation: string;
  readonly log: Log;
  /** What they are stored in where no bucket is named; null: nowhere. */
  readonly instead: (() => Promise<Blobs>) | null;
}

/** The store is not asked: what does without it starts while it is away. @throws StartRefused */
export async function openBlobs(settings: BlobSettings | null, { installation, log, instead }: Place): Promise<Blobs> {
  if (settings === null || settings.S3_BUCKET === null) return instead === null ? new AbsentBlobs() : instead();
  return new S3Blobs({
    bucket: settings.S3_BUCKET,
    prefix: `${installation}/`,
    region: settings.S3_REGION,
    endpoint: settings.S3_ENDPOINT,
    publicEndpoint: settings.S3_PUBLIC_ENDPOINT,
    credentials: credentialsOf(settings),
    encryption: encryptionOf(settings),
    log,
  });
}

/** @throws StartRefused */
export function credentialsOf({ S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey }: BlobSettings) {
  if ((accessKeyId === null) !== (secretAccessKey === null))
    throw new StartRefused('S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY belong together: set both of them, or neither.');
  return accessKeyId === null ? null : { accessKeyId, secretAccessKey: secretAccessKey! };
}

/** @throws StartRefused */
export function encryptionOf({ S3_ENCRYPTION: by, S3_KMS_KEY: key }: BlobSettings): S3Encryption {
  if (by === 'aws:kms') return { by, key };
  if (key !== null) throw new StartRefused('S3_KMS_KEY is set, and is used only where S3_ENCRYPTION is aws:kms: set that, or unset it.');
  return { by };
}
