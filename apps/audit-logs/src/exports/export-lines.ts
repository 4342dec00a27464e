import { csvLine } from '../export-format/csv.ts';
import { ndjsonLine } from '../export-format/ndjson.ts';
import type { ExportedContent } from '../export-format/exported-event.ts';
import type { ExportFormat } from '../domain/audit-export.decider.ts';
import type { Month } from '../domain/audit-month.decider.ts';
import { MonthKey } from '../sealing/month-key.ts';
import { isMatch, type ExportFilter } from './export-filter.ts';

/** An event as the log has it. */
export type SealedRecord = readonly [id: string, leaf: number, receivedAt: number, month: Month, sealed: string];

/** Events of one trail, in the order of their leaves, and all that it takes to write them. */
export interface SealedBatch {
  readonly stream: string;
  readonly organization: string;
  readonly format: ExportFormat;
  readonly filter: ExportFilter | null;
  /** The keys of the months in which they arrived. */
  readonly keys: readonly (readonly [month: Month, key: Uint8Array])[];
  readonly records: readonly SealedRecord[];
}

/** Lines of an export, and whose they are. */
export interface Lines {
  readonly bytes: Uint8Array;
  readonly leaves: readonly number[];
}

/** Nobody can tell any more what an event said: its record was altered, or its key is another. */
export interface Unreadable {
  readonly leaf: number;
}

export function linesOf({ stream, organization, format, filter, keys, records }: SealedBatch): Lines | Unreadable {
  const months = new Map(keys.map(([month, key]) => [month, new MonthKey(Buffer.from(key))]));
  const lineOf = format === 'csv' ? csvLine : ndjsonLine;
  const leaves: number[] = [];
  let text = '';
  for (const [id, leaf, receivedAt, month, sealed] of records) {
    const key = months.get(month)!;
    const content = opened(key, `${stream} ${id}`, sealed);
    if (content === null) return { leaf };
    if (filter !== null && !isMatch(filter, content)) continue;
    const received_at = new Date(receivedAt).toISOString();
    text += lineOf({ id, organization_id: organization, received_at, ...content, leaf_index: leaf, salt: key.saltOf(id).toString('hex') });
    leaves.push(leaf);
  }
  return { bytes: new TextEncoder().encode(text), leaves };
}

function opened(key: MonthKey, binding: string, sealed: string): ExportedContent | null {
  try {
    return JSON.parse(key.open(binding, sealed)) as ExportedContent;
  } catch {
    return null;
  }
}
