import { Injectable } from '@nestjs/common';
import { LAST, atTime, contentOf, ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import type { AuditLogStreamState } from '#libs/contracts/src/audit-log-streams/audit-log-stream';
import type { StoredStream, StreamPlace } from '../domain/audit-stream.decider.ts';

/** How many requests are shown, of those that were taken and of those that failed. */
const SHOWN = 20;

/** One request, as it is stored. */
export interface StoredAttempt {
  readonly batch_id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly latency: number;
  readonly status: number | null;
  /** Null: it was taken. */
  readonly error: string | null;
  /** Sealed with the key of the trail, since it may quote what it was sent. */
  readonly excerpt: string | null;
  readonly events: number;
  readonly checkpoints: number;
  readonly first_leaf_index: number | null;
}

/** A batch that was not taken. */
export interface Failing {
  readonly state: 'error' | 'invalid';
  readonly error: string;
  readonly tries: number;
  /** Milliseconds since the epoch. */
  readonly next_attempt_at: number;
  /** Of the stream as it was: once that has changed, it is tried at once. */
  readonly change: string;
  /** Where it ends: the same is sent again. Null where less is to be sent. */
  readonly to: StreamPlace | null;
}

/** How far a stream is. */
export interface Progress {
  /** The receiver has taken all up to here. */
  readonly delivered: StreamPlace;
  readonly skipped: number;
  /** Milliseconds since the epoch. */
  readonly last_synced_at: number | null;
  readonly failing: Failing | null;
  /** More items at once are too large for the receiver, as the stream was with this change; null: nobody said so. */
  readonly limit: { readonly items: number; readonly change: string } | null;
  /** The oldest first. */
  readonly attempts: readonly StoredAttempt[];
}

/** With the row that it was read from: what is stored takes the place of that alone. */
export interface StoredProgress {
  readonly progress: Progress;
  readonly row: StoredRow<Progress>;
}

/** Which failure counts: one of before the stream changed says nothing. */
export function failureOf({ failing }: Progress, { change }: Pick<StoredStream, 'change'>): Failing | null {
  return failing?.change === change ? failing : null;
}

export function stateOf(stream: StoredStream, progress: Progress): AuditLogStreamState {
  if (stream.is_paused) return 'inactive';
  return failureOf(progress, stream)?.state ?? 'active';
}

/** When the receiver took something last; null: never yet. */
export function lastSyncedAt({ last_synced_at }: Progress): string | null {
  return last_synced_at === null ? null : new Date(last_synced_at).toISOString();
}

/** With another attempt: the oldest of those that came to the same goes. */
export function withAttempt(attempts: readonly StoredAttempt[], attempt: StoredAttempt): readonly StoredAttempt[] {
  const isAlike = ({ error }: StoredAttempt): boolean => (error === null) === (attempt.error === null);
  const all = [...attempts, attempt];
  return all.filter(isAlike).length <= SHOWN ? all : all.toSpliced(all.findIndex(isAlike), 1);
}

/** How far streams are: a rebuild cannot give it back. */
@Injectable()
export class StreamProgress {
  private readonly table: Table<Progress>;

  constructor(readModels: ReadModels) {
    this.table = readModels.table({ name: 'audit_stream_progress', indexes: [], rebuildable: false });
  }

  /** As it is stored, or as a stream begins. */
  async read(environment: string, { id, after }: Pick<StoredStream, 'id' | 'after'>): Promise<Progress> {
    const row = await this.table.get(environment, id);
    return row === null ? first(after) : contentOf(row);
  }

  /** For whoever will store it; null once the stream has ended. */
  async open(environment: string, { id, after }: Pick<StoredStream, 'id' | 'after'>): Promise<StoredProgress | null> {
    const row = await this.table.get(environment, id);
    if (row !== null) return { progress: contentOf(row), row };
    await this.table.write([{ environment, id, position: atTime(1), revision: 0, text: JSON.stringify(first(after)) }]);
    const begun = await this.table.get(environment, id);
    return begun === null ? null : { progress: contentOf(begun), row: begun };
  }

  /** Null where it is not what it was: another process has been further, or the stream has ended. */
  async store(environment: string, { row }: StoredProgress, progress: Progress): Promise<StoredProgress | null> {
    const text = JSON.stringify(progress);
    const position = atTime(Number(row.position) + 1);
    const isStored = await this.table.replace(environment, row, text, position);
    return isStored ? { progress, row: { ...row, text, position } } : null;
  }

  /** Nothing brings it back. */
  async end(environment: string, id: string): Promise<void> {
    await this.table.write([{ environment, id, position: LAST, revision: 0, text: null }]);
  }
}

function first(after: StreamPlace): Progress {
  return { delivered: after, skipped: 0, last_synced_at: null, failing: null, limit: null, attempts: [] };
}
