import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Blobs } from '#libs/blobs/src/blobs';
import { unavailable } from '#libs/platform/src/domain-error';
import type { ExportFormat, StoredAuditExport, StoredFile } from '../domain/audit-export.decider.ts';
import type { Handover } from './handover.ts';

export const EXPORTS_FOLDER = 'audit_exports';

/** The two files of an export. */
export type ExportPart = 'file' | 'proof';

const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = { csv: 'text/csv; charset=utf-8', ndjson: 'application/x-ndjson; charset=utf-8' };

/** What one of the files is to those who download it. */
export interface NamedFile {
  readonly name: string;
  readonly contentType: string;
}

export function namedFile({ id, format }: Pick<StoredAuditExport, 'id' | 'format'>, part: ExportPart): NamedFile {
  const name = `${id}.${format}`;
  return part === 'file' ? { name, contentType: CONTENT_TYPES[format] } : { name: `${name}.proof`, contentType: 'text/plain; charset=utf-8' };
}

/** Files of exports as they are stored: each attempt to make one has names of its own, so that nothing that it leaves is taken for what another has made. */
@Injectable()
export class ExportFiles {
  constructor(private readonly blobs: Blobs) {}

  nameOf(environment: string, { id, attempt }: { readonly id: string; readonly attempt: string }, part: ExportPart): string {
    return `${EXPORTS_FOLDER}/${environment}/${id}/${attempt}.${part}`;
  }

  /** @throws DomainError where the store is full, away, or does not give back what it was given */
  async store(name: string, pieces: Handover): Promise<StoredFile> {
    const stored = new Measure();
    await this.blobs.put(name, measured(pieces, stored));
    const file = stored.result();
    const found = await this.measureOf(name);
    if (found?.hash !== file.hash) throw unavailable('The store of files did not keep what it was given.', 5);
    return file;
  }

  /** Both of them; what is not there is removed already. */
  async remove(environment: string, of: { readonly id: string; readonly attempt: string }): Promise<void> {
    for (const part of ['file', 'proof'] as const) await this.blobs.remove(this.nameOf(environment, of, part));
  }

  /** Of an export that is over: what attempts left that ended with their process. `attempt`: whose files stay; null: nobody's. */
  async removeOthers(environment: string, { id, attempt }: { readonly id: string; readonly attempt: string | null }): Promise<void> {
    const folder = `${EXPORTS_FOLDER}/${environment}/${id}`;
    await this.blobs.endUnfinished(folder);
    for await (const { name } of this.blobs.list(folder)) if (attempt === null || !name.startsWith(`${folder}/${attempt}.`)) await this.blobs.remove(name);
  }

  private async measureOf(name: string): Promise<StoredFile | null> {
    const content = await this.blobs.get(name);
    if (content === null) return null;
    const measure = new Measure();
    for await (const piece of content.bytes) measure.add(piece);
    return measure.result();
  }
}

class Measure {
  private bytes = 0;
  private readonly hash = createHash('sha256');

  add(piece: Uint8Array): void {
    this.bytes += piece.byteLength;
    this.hash.update(piece);
  }

  result(): StoredFile {
    return { bytes: this.bytes, hash: this.hash.digest('base64url') };
  }
}

/**
 * Pieces of a file, of which the last is held back until all of them are what was stored: whoever was told how long it is has less than that where they are not.
 * @throws what `altered` makes
 */
export async function* wholeOnly(pieces: AsyncIterable<Uint8Array>, stored: StoredFile, altered: () => Error): AsyncGenerator<Uint8Array> {
  const measure = new Measure();
  let last: Uint8Array | null = null;
  for await (const piece of pieces) {
    measure.add(piece);
    if (last !== null) yield last;
    last = piece;
  }
  if (measure.result().hash !== stored.hash) throw altered();
  if (last !== null) yield last;
}

async function* measured(pieces: AsyncIterable<Uint8Array>, measure: Measure): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    measure.add(piece);
    yield piece;
  }
}
