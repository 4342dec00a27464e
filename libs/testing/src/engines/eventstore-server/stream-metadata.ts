import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';

const METADATA = '$$';
export const METADATA_TYPE = '$metadata';
/** What a deletion sets `$tb` to: the largest number that the server has. As text, since none of ours is that exact. */
export const LAST_REVISION = '9223372036854775807';
export const TOMBSTONE_TYPE = '$streamDeleted';

/** What of a stream the server leaves out, as its metadata say. */
export interface StreamMetadata {
  readonly $tb?: number;
  readonly $maxCount?: number;
  /** In seconds. */
  readonly $maxAge?: number;
}

/** The stream that holds the metadata of another. */
export function metadataStream(stream: string): string {
  return METADATA + stream;
}

/** What cannot be read says nothing, as with the real server. */
export function metadataIn(text: string): StreamMetadata {
  try {
    return (JSON.parse(text) ?? {}) as StreamMetadata;
  } catch {
    return {};
  }
}

export function isDeletion({ $tb = 0 }: StreamMetadata): boolean {
  return $tb >= Number(LAST_REVISION);
}

/** Whether an event of a stream whose last one is `last` is shown to who reads that stream. */
export function isShown({ version, meta }: RecordedEvent, { $tb = 0, $maxCount = Infinity, $maxAge = Infinity }: StreamMetadata, last: number): boolean {
  return version > $tb && version > last - $maxCount && meta.at > Date.now() - $maxAge * 1_000;
}
