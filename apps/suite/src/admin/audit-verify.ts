import { readFileSync } from 'node:fs';
import { NotGenuine, type Trust, type Verified } from '#apps/audit-logs/src/export-format/export-check';
import { verifyExport } from '#apps/audit-logs/src/export-format/verify-export';
import type { CommandInput } from './admin-socket.ts';

/** What somebody named instead of a saved answer. */
export class NotThatFile extends Error {}

/** Tells what an export is, by files alone. @throws NotThatFile; Error that says why it is not to be believed */
export async function verifyAuditExport({ arguments: [file], options }: CommandInput): Promise<string> {
  const proof = options['proof'] ?? `${file}.proof`;
  try {
    return sentences(await verifyExport({ file: file!, proof, trust: trustOf(options) }));
  } catch (error) {
    if (error instanceof NotGenuine) throw new Error(`${file} is NOT verified. ${error.message}`, { cause: error });
    throw error;
  }
}

function trustOf({ keys, checkpoint, consistency }: CommandInput['options']): Trust {
  if (keys === undefined && checkpoint === undefined)
    throw new NotThatFile("'audit verify' needs --keys or --checkpoint: a proof that came with the export, and nothing else, proves nothing.");
  if (consistency !== undefined && checkpoint === undefined) throw new NotThatFile('--consistency says what lies between the export and a --checkpoint.');
  const hashes = consistency === undefined ? {} : { consistency: savedList(consistency, 'hashes', 'of …/consistency').map(base64) };
  return {
    ...(keys !== undefined && {
      publicKeys: savedList(keys, 'data', 'of /audit_logs/keys').map((key) => base64((key as { readonly public_key?: unknown } | null)?.public_key)),
    }),
    ...(checkpoint !== undefined && { kept: { note: noteIn(checkpoint), ...hashes } }),
  };
}

/** A list in an answer that was saved. */
function savedList(file: string, name: string, which: string): readonly unknown[] {
  const list = (parsed(readFileSync(file, 'utf8')) as Readonly<Record<string, unknown>> | null)?.[name];
  if (!Array.isArray(list)) throw new NotThatFile(`${file} is no saved answer ${which}.`);
  return list;
}

/** The signed text alone, or the answer that it stands in. */
function noteIn(file: string): string {
  const text = readFileSync(file, 'utf8');
  const { checkpoint } = (parsed(text) ?? {}) as { readonly checkpoint?: unknown };
  return typeof checkpoint === 'string' ? checkpoint : text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function base64(text: unknown): Buffer {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  if (bytes.length !== 32) throw new NotThatFile(`${JSON.stringify(text)} is no key and no hash.`);
  return bytes;
}

function sentences({ checkpoint, events, leaves, isComplete }: Verified): string {
  const by = `by the checkpoint of ${checkpoint.origin}, of ${checkpoint.size} events at ${checkpoint.time}`;
  if (leaves === null) return `There is no event in it, and its proof is genuine, ${by}. That there was nothing to export is not proven.`;
  const extent = isComplete
    ? `It has all that arrived from leaf ${leaves.first} to leaf ${leaves.last}.`
    : `It is a selection of what arrived from leaf ${leaves.first} to leaf ${leaves.last}: whether others were left out that belong to it is not proven.`;
  return `${events} events are genuine and unaltered, ${by}. ${extent}`;
}
