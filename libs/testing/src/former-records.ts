import { crc32 } from 'node:zlib';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { contentText, storedText } from '#libs/event-sourcing/src/log/lazy-record';

/** A record as the embedded log kept it up to format 2 of the directory: a checksum over bytes and position, and one JSON object. */
export function inFormerForm({ id, stream, version, position, type, shape, public: announced, sealed, meta, data, subject }: RecordedEvent): Buffer {
  const text = storedText(
    { id, stream, version, position, type, shape, public: announced, sealed, meta },
    { data: contentText(data), subject: contentText(subject) },
  );
  const bytes = Buffer.from(`\0\0\0\0${text}`);
  bytes.writeUInt32LE(crc32(bytes, Number(position) >>> 0), 0);
  return bytes;
}
