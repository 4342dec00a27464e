import { setImmediate as nextTurn } from 'node:timers/promises';
import { ULID_LENGTH } from '#libs/platform/src/ids';
import { Signal } from '#libs/platform/src/signal';
import { Arena } from '#libs/platform/src/storage/arena';
import type { Tree } from '#libs/platform/src/storage/lmdb-environment';
import { bufferKeys, HIGHEST_KEY, LAST_NUMBER, LOWEST_KEY, NUMBER_BYTES, numberKeys, readNumber, writeNumber } from '#libs/platform/src/storage/lmdb-keys';
import { FORMATS } from '#libs/platform/src/storage/lmdb-storage';
import type { LogStorage } from '#libs/platform/src/storage/log-storage';
import { appendBytes } from '../log/append-bytes.ts';
import {
  type Append,
  type Appended,
  AppendTooLarge,
  EventStore,
  MAX_APPEND_BYTES,
  type NewEvent,
  type Position,
  PositionOfAnotherLog,
  type RecordedEvent,
  START,
  WrongVersion,
} from '../log/event-store.ts';
import { contentText, type Envelope, LazyRecord } from '../log/lazy-record.ts';
import { LEFT_OUT_BYTES, readRecord, storedRecord } from './stored-record.ts';

/** Records, and bytes, that are handed on at once. */
const CHUNK = 1_000;
const CHUNK_BYTES = 4 * 1024 * 1024;
/** Records that are read from disk before other work gets its turn: some two milliseconds. */
const SLICE = 100;
/** Streams whose head is remembered at least. */
const HEADS = 10_000;
/** Records, and bytes of them, kept for subscribers that follow closely, so that they do not read again what was just written, and nobody parses it twice. */
const RECENT = 4_096;
const RECENT_BYTES = 16 * 1024 * 1024;
/** How far before the end a failed commit can have left a gap: far more than can be on its way at once. */
const GAP_WINDOW = 100_000;
const POSITION_DIGITS = 16;
const POSITION = new RegExp(`^\\d{${POSITION_DIGITS}}$`);
/** Behind every name. */
const LAST_NAME = '\x7f';
/** Printable, so that the zero byte behind a stream's name in a key cannot be part of a name. */
const STREAM_NAME = /^[\x21-\x7e]{1,500}$/;

/** A record that is missing, or not what was written. */
export class CorruptRecord extends Error {
  constructor(
    readonly position: Position,
    readonly detail: string,
  ) {
    super(`The record at position ${position} ${detail}.`);
  }
}

/** What `verify` found wrong. */
export interface LogProblem {
  readonly position: Position;
  readonly stream: string | null;
  readonly detail: string;
}

interface VerifyOptions {
  readonly from?: Position;
  /** Records that are read at a time. */
  readonly chunk?: number;
  readonly onChunk?: (from: Position) => void;
}

interface Head {
  readonly version: number;
  /** Of the stream's last record. */
  readonly position: number;
}

/** A record that was just written: its content is the text that lies on disk, whatever becomes of the values that it was made of. */
interface Slot {
  readonly stream: string;
  readonly version: number;
  readonly position: number;
  readonly record: LazyRecord;
}

interface Writing {
  readonly slot: Slot;
  readonly value: Buffer;
}

/** The appends of one event turn: one transaction, one flush. */
interface Batch {
  readonly flushed: Promise<void>;
  readonly slots: Slot[];
}

/**
 * The log in LMDB: `log` holds the records by position, each with a checksum; `streams` leads from stream and version to the position. This process is
 * the only writer, so versions and positions are given in memory, without waiting, and one flush serves all appends of a turn.
 */
export class LmdbEventStore extends EventStore {
  private readonly log: Tree<number>;
  private readonly streams: Tree<Buffer>;
  private readonly arena = new Arena();
  /** Also remembers that a stream does not exist. Exact, since nobody else writes. */
  private readonly heads = new RecentHeads();
  private readonly newest = new Map<string, string>();
  /** What is appended and not yet on disk, by stream and in order. */
  private readonly pending = new Map<string, Slot[]>();
  private readonly recent: (Slot | undefined)[] = Array.from({ length: RECENT });
  private recentBytes = 0;
  /** Of the oldest of these, or before it. */
  private firstRecent = 0;
  private readonly arrivals = new Signal();
  private batch: Batch | null = null;
  private lastPosition: number;
  private durable: number;
  /** `durable`, for the many who ask where the log ends. */
  private durableText: { readonly at: number; readonly text: Position } = { at: 0, text: START };

  /** `mostBytes`: of an append. */
  constructor(
    private readonly storage: LogStorage,
    private readonly mostBytes = MAX_APPEND_BYTES,
  ) {
    super();
    this.log = storage.log.db('log', numberKeys);
    this.streams = storage.log.db('streams', bufferKeys);
    this.lastPosition = storage.afterCrash ? this.cutAfterGap() : this.lastStored();
    this.durable = this.lastPosition;
  }

  async read(stream: string, from = 1): Promise<readonly RecordedEvent[]> {
    return this.between(stream, from, Infinity);
  }

  async readBackwards(stream: string, count: number, from = this.headOf(stream).version): Promise<readonly RecordedEvent[]> {
    return this.between(stream, Math.max(1, from - count + 1), from).reverse();
  }

  async last(stream: string): Promise<RecordedEvent | null> {
    const pending = this.pending.get(stream)?.at(-1);
    if (pending) return pending.record;
    const { version, position } = this.headOf(stream);
    return version === 0 ? null : this.recordAt(position);
  }

  async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    this.storage.assertWritable();
    const head = this.headOf(stream);
    if (head.version !== expectedVersion) return this.repeated(stream, expectedVersion, events);
    if (events.length === 0 || !STREAM_NAME.test(stream)) throw new RangeError(`An append needs events and a printable stream name, not '${stream}'.`);
    // No await between the check above and the puts: that is what makes this append atomic. Everything that can throw comes before the first put.
    const writings = events.map((event, index) => this.writingOf(stream, expectedVersion + 1 + index, this.lastPosition + 1 + index, event));
    const slots = writings.map(({ slot }) => slot);
    this.refuseTooLarge(stream, events, writings);
    this.storage.leaveReleasesBefore(FORMATS.recordsAsLists);
    for (const { slot, value } of writings) {
      this.log.append(slot.position, value);
      this.streams.put(streamKey(stream, slot.version), this.numberValue(slot.position));
    }
    const { version, position } = slots.at(-1)!;
    this.lastPosition = position;
    this.remember(stream, { version, position });
    const pending = this.pending.get(stream);
    if (pending) pending.push(...slots);
    else this.pending.set(stream, slots);
    await this.flushed(slots);
    return { version, position: textOf(position) };
  }

  override get appendsTogether(): boolean {
    return true;
  }

  override async appendTogether(appends: readonly Append[]): Promise<readonly Appended[]> {
    const outrun = appends.find(({ stream, expectedVersion }) => this.headOf(stream).version !== expectedVersion);
    if (outrun !== undefined) throw new WrongVersion(outrun.stream, outrun.expectedVersion);
    // Each puts what it has before it first waits: all is one transaction.
    const running = appends.map(({ stream, expectedVersion, events }) => this.append(stream, expectedVersion, events));
    await Promise.allSettled(running);
    return Promise.all(running);
  }

  async head(): Promise<Position> {
    return this.headAtHand;
  }

  override get headAtHand(): Position {
    if (this.durableText.at !== this.durable) this.durableText = { at: this.durable, text: textOf(this.durable) };
    return this.durableText.text;
  }

  /** What is damaged ends nobody here who would not read it. */
  override async idAt(position: Position): Promise<string | null> {
    const number = POSITION.test(position) ? Number(position) : 0;
    const value = number > 0 && number <= this.durable ? this.log.get(number) : undefined;
    return value === undefined ? null : (readRecord(value, number, position)?.id ?? null);
  }

  async *subscribe(after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
    if (after !== START && !POSITION.test(after)) throw new PositionOfAnotherLog(after);
    for (let at = Number(after); !signal.aborted;) {
      if (at >= this.durable) {
        await this.arrivals.next(signal);
        continue;
      }
      const records = await this.batchAfter(at, signal);
      at += records.length;
      yield records;
      if (at < this.durable) await nextTurn();
    }
  }

  /**
   * Walks the whole log and its index; yields what is wrong, in order of position. `onChunk` is told where each chunk begins: reading it may be the last
   * that this process does.
   */
  async *verify({ from = START, chunk = CHUNK, onChunk = () => {} }: VerifyOptions = {}): AsyncIterable<LogProblem> {
    const last = this.lastStored();
    let expected = Number(from) || 1;
    let records = expected - 1;
    while (expected <= last) {
      onChunk(textOf(expected));
      for (const { key: position, value } of this.log.getRange({ start: expected, end: last + 1, limit: chunk })) {
        if (position !== expected)
          yield { position: textOf(expected), stream: await this.streamAt(expected), detail: `is missing, as are those up to ${textOf(position)}` };
        const problem = this.problemOf(position, value);
        if (problem) yield { position: textOf(position), stream: await this.streamAt(position), detail: problem };
        expected = position + 1;
        records++;
      }
      await nextTurn();
    }
    const indexed = this.streams.getKeysCount({ start: LOWEST_KEY, end: HIGHEST_KEY });
    if (indexed !== records)
      yield { position: textOf(last), stream: null, detail: `ends a log of ${records} records, and the index of streams has ${indexed}` };
  }

  private between(stream: string, from: number, to: number): RecordedEvent[] {
    const head = this.headOf(stream);
    const pending = this.pending.get(stream) ?? [];
    const stored = Math.min(to, pending.length > 0 ? pending[0]!.version - 1 : head.version);
    const records: RecordedEvent[] = [];
    if (from === stored) records.push(this.recordAt(this.positionOf(stream, stored, head)));
    else if (from < stored)
      for (const { value } of this.streams.getRange({ start: streamKey(stream, from), end: streamKey(stream, stored + 1) }))
        records.push(this.recordAt(readNumber(value, 0)));
    if (from <= stored && records.length !== stored - from + 1) throw this.corrupt(head.position, `belongs to ${stream}, whose index has gaps`);
    for (const slot of pending) if (slot.version >= from && slot.version <= to) records.push(slot.record);
    return records;
  }

  private headOf(stream: string): Head {
    const known = this.pending.get(stream)?.at(-1) ?? this.heads.get(stream);
    if (known) return known;
    let head: Head = { version: 0, position: 0 };
    if (stream > this.newestLike(stream)) return head;
    for (const { key, value } of this.streams.getRange({ start: streamKey(stream, LAST_NUMBER), end: streamKey(stream, 0), reverse: true, limit: 1 })) {
      head = { version: readNumber(key, key.length - NUMBER_BYTES), position: readNumber(value, 0) };
    }
    this.remember(stream, head);
    return head;
  }

  /** The last, by name, of the streams that are named like this one but for the ULID: most new streams lie behind it, and need not be looked for. */
  private newestLike(stream: string): string {
    const start = stream.slice(0, -ULID_LENGTH);
    if (!start.endsWith('_')) return LAST_NAME;
    let newest = this.newest.get(start);
    if (newest === undefined) {
      newest = '';
      for (const key of this.streams.getKeys({ start: Buffer.from(start + LAST_NAME), end: Buffer.from(start), reverse: true, limit: 1 }))
        newest = key.toString('latin1', 0, key.length - NUMBER_BYTES - 1);
      if (this.newest.size === HEADS) this.newest.clear();
      this.newest.set(start, newest);
    }
    return newest;
  }

  private remember(stream: string, { version, position }: Head): void {
    this.heads.set(stream, { version, position });
    if (version > 0 && stream > this.newestLike(stream)) this.newest.set(stream.slice(0, -ULID_LENGTH), stream);
  }

  /** Same ids at the same place: the caller did not learn of its first append. Anything else is a conflict. */
  private async repeated(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    const recorded = (await this.read(stream, expectedVersion + 1)).slice(0, events.length);
    if (events.length === 0 || recorded.length < events.length || recorded.some(({ id }, index) => id !== events[index]!.id))
      throw new WrongVersion(stream, expectedVersion);
    await this.storage.log.flushed();
    const { version, position } = recorded.at(-1)!;
    return { version, position };
  }

  private writingOf(stream: string, version: number, position: number, { id, type, shape, data, subject, public: announced, sealed, meta }: NewEvent): Writing {
    const envelope: Envelope = { id, stream, version, position: textOf(position), type, shape, public: announced, sealed, meta };
    const content = { data: contentText(data), subject: contentText(subject) };
    return { slot: { stream, version, position, record: new LazyRecord(envelope, content) }, value: storedRecord(this.arena, position, envelope, content) };
  }

  /** What is written, and left out of it, holds all that counts, and more: of the type that counts twice it is half. @throws AppendTooLarge */
  private refuseTooLarge(stream: string, events: readonly NewEvent[], written: readonly Writing[]): void {
    if (written.reduce((sum, { value, slot }) => sum + value.length + LEFT_OUT_BYTES + slot.record.type.length, 0) <= this.mostBytes) return;
    const bytes = appendBytes(events);
    if (bytes > this.mostBytes) throw new AppendTooLarge(stream, bytes);
  }

  private numberValue(value: number): Buffer {
    const bytes = this.arena.bytes(NUMBER_BYTES);
    writeNumber(value, bytes, 0);
    return bytes;
  }

  private flushed(slots: readonly Slot[]): Promise<void> {
    const flushed = this.storage.log.flushed();
    if (this.batch?.flushed !== flushed) {
      const batch: Batch = { flushed, slots: [] };
      this.batch = batch;
      // Registered before any append waits, so that `head` is never behind an answer.
      flushed.then(
        () => this.reveal(batch),
        () => undefined,
      );
    }
    this.batch.slots.push(...slots);
    return flushed;
  }

  private reveal({ slots }: Batch): void {
    for (const slot of slots) {
      this.keep(slot);
      const pending = this.pending.get(slot.stream)!;
      if (pending.length === 1) this.pending.delete(slot.stream);
      else pending.shift();
    }
    this.durable = Math.max(this.durable, slots.at(-1)!.position);
    this.arrivals.notify();
  }

  /** Empty where the signal has aborted. */
  private async batchAfter(after: number, signal: AbortSignal): Promise<readonly RecordedEvent[]> {
    const batch: LazyRecord[] = [];
    let bytes = 0;
    while (batch.length < CHUNK && bytes < CHUNK_BYTES && after + batch.length < this.durable) {
      if (batch.length > 0) await nextTurn();
      if (signal.aborted) return [];
      for (const record of this.recordsAfter(after + batch.length)) {
        batch.push(record);
        bytes += record.bytes;
      }
    }
    return batch;
  }

  /** Those that are in memory; else as many as are read from disk in one turn. */
  private recordsAfter(at: number): LazyRecord[] {
    const records: LazyRecord[] = [];
    while (at < this.durable && records.length < CHUNK && this.recent[(at + 1) % RECENT]?.position === at + 1) records.push(this.recent[++at % RECENT]!.record);
    if (records.length > 0) return records;
    const end = Math.min(this.durable, at + SLICE);
    let bytes = 0;
    for (const { key: position, value } of this.log.getRange({ start: at + 1, end: end + 1 })) {
      if (position !== at + 1) break;
      records.push(this.decode(position, value));
      at = position;
      if ((bytes += value.length) > CHUNK_BYTES) return records;
    }
    if (at < end) throw this.corrupt(at + 1, 'is missing');
    return records;
  }

  private keep(slot: Slot): void {
    this.recentBytes += slot.record.bytes - (this.recent[slot.position % RECENT]?.record.bytes ?? 0);
    this.recent[slot.position % RECENT] = slot;
    this.firstRecent = Math.max(this.firstRecent, slot.position - RECENT + 1);
    for (; this.recentBytes > RECENT_BYTES && this.firstRecent < slot.position; this.firstRecent++) {
      const oldest = this.recent[this.firstRecent % RECENT];
      if (oldest === undefined) continue;
      this.recentBytes -= oldest.record.bytes;
      this.recent[this.firstRecent % RECENT] = undefined;
    }
  }

  private positionOf(stream: string, version: number, head: Head): number {
    if (version === head.version) return head.position;
    return readNumber(this.streams.get(streamKey(stream, version))!, 0);
  }

  private recordAt(position: number): LazyRecord {
    const recent = this.recent[position % RECENT];
    if (recent?.position === position) return recent.record;
    const value = this.log.get(position);
    if (!value) throw this.corrupt(position, 'is missing');
    return this.decode(position, value);
  }

  private decode(position: number, value: Buffer): LazyRecord {
    const record = readRecord(value, position, textOf(position));
    if (record === null) throw this.corrupt(position, 'does not match its checksum');
    return record;
  }

  private corrupt(position: number, detail: string): CorruptRecord {
    const error = new CorruptRecord(textOf(position), detail);
    this.storage.fail(error.message, 'Look with `npm run gatehouse -- verify`, and restore a backup.');
    return error;
  }

  private problemOf(position: number, value: Buffer): string | null {
    const record = readRecord(value, position, textOf(position));
    if (record === null) return 'does not match its checksum';
    const { stream, version } = record;
    const indexed = this.streams.get(streamKey(stream, version));
    if (!indexed || readNumber(indexed, 0) !== position) return `is not where the index has version ${version} of ${stream}`;
    if (version > 1 && !this.streams.get(streamKey(stream, version - 1))) return `has version ${version} of ${stream}, which has no version ${version - 1}`;
    return null;
  }

  /** The stream of a record that cannot be read, from the index. */
  private async streamAt(position: number): Promise<string | null> {
    let start: Buffer = LOWEST_KEY;
    for (let left = CHUNK; left === CHUNK; await nextTurn()) {
      left = 0;
      for (const { key, value } of this.streams.getRange({ start, end: HIGHEST_KEY, limit: CHUNK })) {
        if (readNumber(value, 0) === position) return key.toString('latin1', 0, key.length - NUMBER_BYTES - 1);
        start = Buffer.concat([key, Buffer.of(0)]);
        left++;
      }
    }
    return null;
  }

  private lastStored(): number {
    for (const position of this.log.getKeys({ start: LAST_NUMBER, end: 0, reverse: true, limit: 1 })) return position;
    return 0;
  }

  /**
   * When a commit failed (disk full), one that was queued behind it may have got through. Nothing from the gap on was acknowledged, so it goes, and
   * positions stay without gaps. A record that the index still knows was stored once: that gap is damage, and nothing is touched.
   */
  private cutAfterGap(): number {
    const last = this.lastStored();
    let end = Math.max(0, last - GAP_WINDOW);
    for (const position of this.log.getKeys({ start: end + 1, end: last + 1 })) {
      if (position !== end + 1) break;
      end = position;
    }
    if (end === last) return last;
    for (const { value } of this.streams.getRange({ start: LOWEST_KEY, end: HIGHEST_KEY }))
      if (readNumber(value, 0) === end + 1) throw new CorruptRecord(textOf(end + 1), 'is missing');
    this.storage.log.transaction(() => {
      for (const { key: position, value } of [...this.log.getRange({ start: end + 1, end: last + 1 })]) {
        const { stream, version } = this.decode(position, value);
        this.streams.remove(streamKey(stream, version));
        this.log.remove(position);
      }
    });
    return end;
  }
}

/** In two generations: taking the oldest out of one large map, one by one, costs more than all the rest of an append. */
class RecentHeads {
  private young = new Map<string, Head>();
  private old = new Map<string, Head>();

  get(stream: string): Head | undefined {
    const head = this.young.get(stream);
    if (head) return head;
    const older = this.old.get(stream);
    if (older) this.set(stream, older);
    return older;
  }

  set(stream: string, head: Head): void {
    this.young.set(stream, head);
    if (this.young.size < HEADS) return;
    this.old = this.young;
    this.young = new Map();
  }
}

function textOf(position: number): Position {
  return position === 0 ? START : String(position).padStart(POSITION_DIGITS, '0');
}

/** Stream, a zero byte, version: the keys of one stream lie together and in order. */
function streamKey(stream: string, version: number): Buffer {
  const key = Buffer.allocUnsafe(stream.length + 1 + NUMBER_BYTES);
  key.write(stream, 'latin1');
  key[stream.length] = 0;
  writeNumber(version, key, stream.length + 1);
  return key;
}
