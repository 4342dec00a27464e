import type { NewEvent } from './event-store.ts';
import { SEPARATORS } from './lazy-record.ts';

/** EventStoreDB keeps the version of each event in its data; however large that is, an append counts the same. */
export const VERSION_DIGITS = 16;
const VERSION_BYTES = '"version":,'.length + VERSION_DIGITS;

/** What events come to in an append, as EventStoreDB counts: data, metadata, and two bytes for each character of the type. */
export function appendBytes(events: readonly NewEvent[]): number {
  return events.reduce((sum, { type, shape, data, subject, public: announced, sealed, meta }) => {
    const stored = jsonBytes({ shape, data, subject, public: announced, sealed }) + SEPARATORS + VERSION_BYTES;
    return sum + stored + jsonBytes(meta) + 2 * type.length;
  }, 0);
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
