import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { EventStore, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { auditExportDecider, type ExportFailure, type StoredAuditExport, type StoredFiles } from '../domain/audit-export.decider.ts';
import { monthOf, type Month } from '../domain/audit-month.decider.ts';
import { AUDIT_TRAIL, leafOf, TERM_LENGTH, type AuditTrailEvent } from '../domain/audit-trail.decider.ts';
import { CSV_HEAD } from '../export-format/csv.ts';
import { ProofWriter } from '../export-format/proof-file.ts';
import { Retention } from '../readers/retention.ts';
import { TrailKeys, type TrailKey, type TrailOwner } from '../sealing/trail-keys.ts';
import { TrailTrees } from '../tree/trail-trees.ts';
import { ExportFiles } from './export-files.ts';
import { soughtTerms, type ExportFilter } from './export-filter.ts';
import type { Lines, SealedBatch, SealedRecord, Unreadable } from './export-lines.ts';
import type { ExportThread } from './export-thread.ts';
import { Handover } from './handover.ts';

type TrailRecord = Recorded<AuditTrailEvent>;

/**
 * Records that are read from the log before other work gets its turn: a request of somebody else takes eight turns or so, and waits in each of them. Where turns are long, since others
 * have much to do, it is as many as take an eighth of one (a record takes a sixty-fourth of a millisecond): else exports would stand still for as long as that lasts.
 */
const SLICE = { least: 32, most: 128, forEachMs: 8 } as const;
/** Events that the thread is given at once, or a few more. */
const BATCH = 128;
/** Batches that are written while the next is read. */
const AHEAD = 3;
/** An upload in parts of 8 MiB (libs/blobs) has room for 78 GiB, and whoever downloads a file needs room for it too. */
const LARGEST_BYTES = 64 * 2 ** 30;
/** As much as an event may come before, or after, it happened. */
const EARLIEST_MS = 5 * 60_000;
const LATEST_MS = 366 * 86_400_000;
/** Events stand in the order of their arrival, by clocks that differ. */
const CLOCKS_DIFFER_MS = 86_400_000;
const LOOK_UP_MS = 30_000;

/** What is to be made. */
interface Asked extends StoredAuditExport {
  /** What was received before is gone. Milliseconds since the epoch. */
  readonly keptSince: number;
}

/** There will be no export, however often it is tried. */
export class ExportFailed extends Error {
  constructor(readonly reason: ExportFailure) {
    super(reason);
  }
}

/** What was made of an export could not be stored: trying again may help. */
export class NotStored extends Error {
  constructor(override readonly cause: unknown) {
    super('The files of an export could not be stored.', { cause });
  }
}

/** The work was given up: its lease is another's, or the process stops. */
export class BuildStopped extends Error {}

/** What was made has events that retention has ended meanwhile, since it was shortened. */
export class RetentionShortened extends Error {}

/** Makes the files of an export. It keeps nothing between two attempts: what one leaves is begun anew by the next. */
@Injectable()
export class ExportBuilds implements OnModuleDestroy {
  /** Of a file: what would be larger is given up, rather than tried again and again. */
  largestBytes = LARGEST_BYTES;
  private thread: Promise<ExportThread> | null = null;

  constructor(
    private readonly events: EventStore,
    private readonly keys: TrailKeys,
    private readonly retention: Retention,
    private readonly trees: TrailTrees,
    private readonly files: ExportFiles,
    private readonly clock: Clock,
  ) {}

  async onModuleDestroy(): Promise<void> {
    await (await this.thread)?.end();
  }

  /** Its files are stored when it resolves, and nothing is where it does not. @throws ExportFailed, NotStored, RetentionShortened, BuildStopped, and DomainError where the log or the keys are away */
  async build(environment: string, made: StoredAuditExport, signal: AbortSignal): Promise<StoredFiles> {
    const attempt = newUlid(this.clock.now());
    const of = { id: made.id, attempt };
    const owner = { environment, organization: made.organization_id };
    const begunAt = this.clock.now();
    const [file, proof] = [new Handover(), new Handover()];
    let failure: { readonly error: unknown } | null = null;
    const end = (error: unknown): void => {
      failure ??= { error };
      for (const each of [file, proof]) each.fail(error);
    };
    const stop = (): void => end(new BuildStopped());
    signal.addEventListener('abort', stop);
    const stored = (part: 'file' | 'proof', pieces: Handover) =>
      this.files.store(this.files.nameOf(environment, of, part), pieces).catch((error: unknown) => {
        end(new NotStored(error));
        return null;
      });
    try {
      if (signal.aborted) throw new BuildStopped();
      const keptSince = await this.keptSince(owner, begunAt);
      const [events, storedFile, storedProof] = await Promise.all([
        this.write(owner, { ...made, keptSince }, { file, proof }).catch((error: unknown) => {
          end(error);
          return 0;
        }),
        stored('file', file),
        stored('proof', proof),
      ]);
      if (failure !== null) throw (failure as { readonly error: unknown }).error;
      if ((await this.keptSince(owner, begunAt)) > keptSince) throw new RetentionShortened();
      return { attempt, events, file: storedFile!, proof: storedProof! };
    } catch (error) {
      // What stays all the same is found among what nobody owns.
      await this.files.remove(environment, of).catch(() => {});
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** At the end of the log, as of when it began: what grows old while it is made is in it. */
  private keptSince(owner: TrailOwner, begunAt: number): Promise<number> {
    return this.retention.retainedSince(owner, this.clock.now() + LOOK_UP_MS, begunAt);
  }

  /** Answers how many events there are. */
  private async write(owner: TrailOwner, made: Asked, { file, proof }: { readonly file: Handover; readonly proof: Handover }): Promise<number> {
    const encoder = new TextEncoder();
    const writer = new ProofWriter(made.checkpoint, (await this.trees.tree(owner)).nodes);
    await proof.give(encoder.encode(writer.head()));
    if (made.format === 'csv') await file.give(encoder.encode(CSV_HEAD));
    let [events, length] = [0, 0];
    if (made.size > 0) {
      const key = await this.keys.find(owner);
      if (key === null) throw new ExportFailed('organization_deleted');
      for await (const { bytes, leaves } of this.linesOf(owner, made, key)) {
        if (leaves.length === 0) continue;
        events += leaves.length;
        length += bytes.byteLength;
        if (length > this.largestBytes) throw new ExportFailed('too_large');
        await file.give(bytes);
        const hashes = await writer.events(leaves);
        if (hashes !== '') await proof.give(encoder.encode(hashes));
      }
    }
    file.end();
    const rest = await writer.rest();
    if (rest !== '') await proof.give(encoder.encode(rest));
    proof.end();
    return events;
  }

  private async *linesOf(owner: TrailOwner, made: Asked, key: TrailKey): AsyncGenerator<Lines> {
    const thread = await (this.thread ??= import('./export-thread.ts').then(({ ExportThread }) => new ExportThread()));
    const ahead: Promise<Lines | Unreadable>[] = [];
    for await (const batch of this.batches(owner, made, key)) {
      const written = thread.lines(batch);
      // Told of when its turn comes.
      written.catch(() => {});
      ahead.push(written);
      if (ahead.length > AHEAD) yield readable(await ahead.shift()!);
    }
    for (const written of ahead) yield readable(await written);
  }

  private async *batches(owner: TrailOwner, made: Asked, key: TrailKey): AsyncGenerator<SealedBatch> {
    const stream = streamName(AUDIT_TRAIL, owner.environment, owner.organization);
    const filter = filterOf(owner, made, key);
    const isSought = filter === null ? () => true : soughtBy(filter, key);
    const { format, range_start, range_end, keptSince } = made;
    const batchOf = (records: readonly SealedRecord[], months: ReadonlyMap<Month, Uint8Array>): SealedBatch => {
      return { stream, organization: owner.organization, format, filter, keys: [...months], records };
    };
    let records: SealedRecord[] = [];
    let months = new Map<Month, Uint8Array>();
    for await (const slice of this.slices(stream, made)) {
      for (const record of slice) {
        const { data, meta } = record;
        if (meta.at < keptSince || data.occurred_at < range_start || data.occurred_at > range_end || !isSought(record)) continue;
        const month = monthOf(meta.at);
        if (!months.has(month)) months.set(month, key.at(meta.at).bytes);
        records.push([data.id, leafOf(record), meta.at, month, data.sealed]);
      }
      if (records.length < BATCH) continue;
      yield batchOf(records, months);
      records = [];
      months = new Map();
    }
    if (records.length > 0) yield batchOf(records, months);
  }

  /** In the order of their arrival, all that can have happened in the range. */
  private async *slices(stream: string, { size, range_start, range_end, keptSince }: Asked): AsyncGenerator<readonly TrailRecord[]> {
    const first = await this.firstSince(stream, size, Math.max(keptSince, range_start - EARLIEST_MS) - CLOCKS_DIFFER_MS);
    const last = (await this.firstSince(stream, size, range_end + LATEST_MS + CLOCKS_DIFFER_MS)) - 1;
    for (let next = first, count: number = SLICE.least; next <= last;) {
      const slice = await this.read(stream, next, Math.min(count, last - next + 1));
      next += slice.length;
      yield slice;
      const before = performance.now();
      await nextTurn();
      count = Math.max(SLICE.least, Math.min(SLICE.most, Math.floor((performance.now() - before) * SLICE.forEachMs)));
    }
  }

  /** The version of the first record that arrived then or later; one more than there are where none did. */
  private async firstSince(stream: string, size: number, time: number): Promise<number> {
    let [low, high] = [1, size + 1];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [record] = await this.read(stream, middle, 1);
      if (record!.meta.at < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private async read(stream: string, first: number, count: number): Promise<readonly TrailRecord[]> {
    const records = await this.events.readBackwards(stream, count, first + count - 1);
    if (records.length !== count || records.some(({ version }, at) => version !== first + count - 1 - at))
      throw unavailable('A record of this trail is missing.');
    return (records as readonly (RecordedEvent & TrailRecord)[]).toReversed();
  }
}

/** Where a filter is sealed to: moved to another export, it does not open. */
export function filterBinding(environment: string, exportId: string): string {
  return `${streamName(auditExportDecider.category, environment, exportId)} filter`;
}

function filterOf({ environment }: TrailOwner, { id, filter, asked_at }: StoredAuditExport, key: TrailKey): ExportFilter | null {
  return filter === null ? null : (JSON.parse(key.at(asked_at).open(filterBinding(environment, id), filter)) as ExportFilter);
}

/** By what events are found by, most of those that do not match need not be opened. */
function soughtBy(filter: ExportFilter, key: TrailKey): (record: TrailRecord) => boolean {
  const terms = soughtTerms(filter);
  const months = new Map<Month, readonly ReadonlySet<string>[]>();
  return ({ data, meta }) => {
    const month = monthOf(meta.at);
    let sought = months.get(month);
    if (sought === undefined) {
      const monthKey = key.at(meta.at);
      months.set(month, (sought = terms.map(([kind, values]) => new Set(values.map((value) => monthKey.termOf(kind, value))))));
    }
    return sought.every((some) => hasTerm(data.terms, some));
  };
}

function hasTerm(terms: string, some: ReadonlySet<string>): boolean {
  for (let at = 0; at < terms.length; at += TERM_LENGTH) if (some.has(terms.slice(at, at + TERM_LENGTH))) return true;
  return false;
}

function readable(written: Lines | Unreadable): Lines {
  if ('leaf' in written) throw new ExportFailed('event_unreadable');
  return written;
}
