import type { LogPlace } from '#libs/read-models/src/read-models';
import { type EventStore, type Position, PositionOfAnotherLog, type RecordedEvent } from '../log/event-store.ts';
import { bytesOf, LazyRecord, UnopenedRecord } from '../log/lazy-record.ts';
import { isFromLaterRelease } from '../log/upcasts.ts';
import type { Cursor, Taken, Way } from './cursor.ts';
import { letGoOfPublicEvents } from './public-events.ts';

/** How many records are kept. */
export interface TailLimits {
  /** For who is slow, and of one that catches up, for who comes soon after. Whoever falls further behind goes on by a reading of its own. */
  readonly most: number;
  /** And no more of their content, except for the last record. */
  readonly mostBytes: number;
  /** Although nobody is behind: who comes from further back meets the others there. */
  readonly meeting: number;
}

/** What is handed on at once. */
const BATCH = 500;
/** Behind the head without moving for so long, a subscription is taken for dead: a connection can hang without breaking (milliseconds). */
const STUCK = 5_000;
/** Those who have handled what was read wait so long for the others (milliseconds). What reading alone adds to handling that takes so long is little. */
const PATIENCE = 2_000;

const NOBODY: readonly Cursor[] = [];

/** The log ends before what was seen of it: it was put back to an earlier state. */
export class LogPutBack extends Error {
  constructor(readonly head: Position) {
    super(`The log ends at '${head}', before what was seen of it: it was put back to an earlier state.`);
  }
}

interface Needs {
  readonly events: EventStore;
  /** Something was read, or handled. */
  readonly onMoved: () => void;
  /** A batch was handed on; resolves when the next is to be read. */
  readonly onRead: (reading: Reading) => Promise<void> | null;
  readonly onEnded: (reading: Reading) => void;
  readonly kept: TailLimits;
}

/**
 * One reading of the log, for all who have come to the same place: each record is handed to those who handle its type. One that is live waits for nobody: what it has read
 * is kept for a while, and each who follows has a place of its own in that. One that catches up waits until those have handled what it read who do not take much longer than
 * the others.
 */
export class Reading implements Way {
  isLive = false;
  endPlace: LogPlace;
  lastAt = 0;
  private readonly cursors = new Set<Cursor>();
  private readonly ofType = new Map<string, Cursor[]>();
  private readonly ofAllTypes: Cursor[] = [];
  private readonly kept: RecordedEvent[] = [];
  private keptBytes = 0;
  /** Of the first record that is kept; they are numbered from 0. */
  private first = 0;
  /** The first whose content may still be at hand. */
  private held = 0;
  private readonly ending = new AbortController();
  private settled: (() => void) | null = null;
  private isHeldUp = false;
  private movedAt = performance.now();

  constructor(
    /** What was recorded after it is kept. */
    private from: Position,
    private readonly needs: Needs,
  ) {
    this.endPlace = { position: from, record: null };
  }

  get end(): Position {
    return this.endPlace.position;
  }

  get hasEnded(): boolean {
    return this.ending.signal.aborted;
  }

  get members(): readonly Cursor[] {
    return [...this.cursors];
  }

  /** Whether everything after a position is kept. */
  keeps(position: Position): boolean {
    return !this.hasEnded && position >= this.from;
  }

  /** Whether what is kept is all that somebody needs: keys were asked for on account of those alone who were there. */
  serves(cursor: Cursor): boolean {
    return this.keeps(cursor.position) && !this.kept.some((record) => record instanceof UnopenedRecord && cursor.looksInto(record));
  }

  /** From now on it goes along here; it may be further on than the others. */
  join(cursor: Cursor): void {
    this.cursors.add(cursor);
    for (const list of this.listsOf(cursor)) list.push(cursor);
    const place = this.kept.findIndex((record) => cursor.concerns(record));
    cursor.join(this, place < 0 ? null : this.first + place);
    // Where nothing is left for it, it has come to the end by that.
    this.needs.onMoved();
  }

  leave(cursor: Cursor): void {
    if (!cursor.goesAlong(this)) return;
    cursor.leave();
    this.forget(cursor);
  }

  /** The others go on. */
  putOut(cursor: Cursor, error: unknown): void {
    if (!cursor.goesAlong(this)) return;
    cursor.fail(error);
    this.forget(cursor);
  }

  async read(): Promise<void> {
    const { signal } = this.ending;
    try {
      for await (const batch of this.needs.events.subscribe(this.end, signal, (record) => this.isLookedInto(record))) {
        if (signal.aborted) return;
        this.receive(batch);
        await this.needs.onRead(this);
        if (signal.aborted) return;
      }
      if (!signal.aborted) throw new Error('A subscription to the log has ended.');
    } catch (error) {
      this.fail(error);
    }
  }

  recordedAt(number: number): number {
    return this.kept[Math.max(0, number - this.first)]?.meta.at ?? this.lastAt;
  }

  take(cursor: Cursor, from: number): Taken | null {
    if (from < this.first) {
      this.leave(cursor);
      return null;
    }
    const records: RecordedEvent[] = [];
    let place = from - this.first;
    for (; place < this.kept.length; place++) {
      const record = this.kept[place]!;
      if (!cursor.concerns(record)) continue;
      // What comes before one that only a later release can read is handled by itself.
      if (records.length === BATCH || (records.length > 0 && isFromLaterRelease(record))) break;
      records.push(record);
    }
    const isAll = place === this.kept.length;
    cursor.next = isAll ? null : this.first + place;
    return { records, upTo: isAll ? this.endPlace : placeAt(this.kept[place - 1]!) };
  }

  moved(): void {
    if (this.settled !== null && this.isSettled) this.settled();
    this.needs.onMoved();
  }

  /** Resolves once all have handled what was read; who takes much longer than others goes on by a reading of its own. */
  async allHandled(): Promise<void> {
    if (this.isSettled || this.hasEnded) return;
    this.isHeldUp = true;
    const patience = setInterval(() => this.leaveBehind(), PATIENCE);
    await new Promise<void>((resolve) => (this.settled = resolve));
    clearInterval(patience);
    this.settled = null;
    this.isHeldUp = false;
    this.movedAt = performance.now();
  }

  get isSettled(): boolean {
    for (const cursor of this.cursors) if (!cursor.isIdle) return false;
    return true;
  }

  private leaveBehind(): void {
    if (this.members.some(({ isIdle }) => isIdle)) this.leaveThose(({ isIdle }) => !isIdle);
  }

  /** They go on by a reading of their own. */
  private leaveThose(isMeant: (cursor: Cursor) => boolean): void {
    for (const cursor of this.members.filter(isMeant)) {
      cursor.leftBehind();
      this.forget(cursor);
    }
  }

  /** Whether it hangs: the log goes on without it. `head` was read just now. */
  isStuck(head: Position): boolean {
    if (this.end >= head || this.isHeldUp) this.movedAt = performance.now();
    return performance.now() - this.movedAt > STUCK;
  }

  /** Ends it; whoever goes along learns why. Who is not at the position that the log does not have learns of that by a reading of its own. */
  fail(error: unknown): void {
    if (this.hasEnded) return;
    this.ending.abort();
    const members = this.members;
    const reasons = members.map(({ position }) =>
      error instanceof PositionOfAnotherLog && error.position !== position ? new Error(error.message, { cause: error }) : error,
    );
    for (const cursor of members) this.forget(cursor);
    for (const [index, cursor] of members.entries()) cursor.fail(reasons[index]);
    this.needs.onEnded(this);
  }

  private isLookedInto(record: RecordedEvent): boolean {
    for (const cursor of this.ofType.get(record.type) ?? NOBODY) if (cursor.looksInto(record)) return true;
    for (const cursor of this.ofAllTypes) if (cursor.looksInto(record)) return true;
    return false;
  }

  private receive(batch: readonly RecordedEvent[]): void {
    // They came while the keys of others were asked for.
    for (const record of batch) if (record instanceof UnopenedRecord) this.leaveThose((cursor) => cursor.looksInto(record));
    for (const record of batch) {
      const number = this.first + this.kept.push(record) - 1;
      this.keptBytes += bytesOf(record);
      for (const cursor of this.ofType.get(record.type) ?? NOBODY) if (cursor.concerns(record)) cursor.offer(number);
      for (const cursor of this.ofAllTypes) if (cursor.concerns(record)) cursor.offer(number);
    }
    const last = batch.at(-1);
    if (last === undefined) return;
    this.endPlace = placeAt(last);
    this.lastAt = last.meta.at;
    this.movedAt = performance.now();
    this.letGo();
    this.drop();
    this.needs.onMoved();
  }

  /**
   * What all have handled is kept for the few who come later, and its content is made again for them: at hand for as long as it is kept, it would outlive several collections
   * of garbage.
   */
  private letGo(): void {
    let needed = this.first + this.kept.length;
    for (const { next, taken } of this.cursors) needed = Math.min(needed, next ?? needed, taken ?? needed);
    for (this.held = Math.max(this.held, this.first); this.held < needed; this.held++) {
      const record = this.kept[this.held - this.first]!;
      if (record instanceof LazyRecord) record.letGo();
      letGoOfPublicEvents(record);
    }
  }

  /** What nobody needs any more goes, and what only those need who are far behind. */
  private drop(): void {
    const { most, mostBytes, meeting } = this.needs.kept;
    const { length } = this.kept;
    if (length < 2 * meeting && this.keptBytes <= mostBytes) return;
    const unneeded = this.needed - this.first;
    // One that catches up waits for those who need it.
    const [soon, last] = this.isLive ? [Math.min(length - meeting, unneeded), length - 1] : [0, Math.min(length - 1, unneeded)];
    let gone = 0;
    for (; gone < last && (gone < soon || gone < length - most || this.keptBytes > mostBytes); gone++) this.keptBytes -= bytesOf(this.kept[gone]!);
    if (gone > 0) this.from = this.kept.splice(0, gone).at(-1)!.position;
    this.first += gone;
  }

  /** The first that somebody has yet to take. */
  private get needed(): number {
    let needed = Infinity;
    for (const { next } of this.cursors) if (next !== null && next < needed) needed = next;
    return needed;
  }

  private forget(cursor: Cursor): void {
    if (!this.cursors.delete(cursor)) return;
    for (const list of this.listsOf(cursor)) list.splice(list.indexOf(cursor), 1);
    if (this.settled !== null && this.isSettled) this.settled();
    if (this.cursors.size > 0 || this.hasEnded) return;
    this.ending.abort();
    this.needs.onEnded(this);
  }

  private listsOf({ types }: Cursor): readonly Cursor[][] {
    if (types === null) return [this.ofAllTypes];
    return [...types].map((type) => {
      const list = this.ofType.get(type) ?? [];
      this.ofType.set(type, list);
      return list;
    });
  }
}

export function placeAt({ position, id }: RecordedEvent): LogPlace {
  return { position, record: id };
}
