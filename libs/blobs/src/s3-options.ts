import type { Log } from '#libs/platform/src/log';

export interface S3Options {
  readonly bucket: string;
  /** What all keys begin with, so that installations may share a bucket. */
  readonly prefix: string;
  readonly region: string;
  /** Null: that of AWS. */
  readonly endpoint: string | null;
  /** Where those who download reach the same store; null: at `endpoint`. */
  readonly publicEndpoint: string | null;
  /** Null: what the SDK finds in the process's surroundings, such as a role. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | null;
  readonly encryption: S3Encryption;
  /** Longest silence of the store while something of it is waited for. */
  readonly timeoutMs?: number;
  /** An upload that is older has no process any more that goes on with it. */
  readonly unfinishedMs?: number;
  readonly log: Log;
}

/** How the store encrypts what it is given; `none` leaves it to the bucket. */
export type S3Encryption = { readonly by: 'none' } | { readonly by: 'AES256' } | { readonly by: 'aws:kms'; readonly key: string | null };
