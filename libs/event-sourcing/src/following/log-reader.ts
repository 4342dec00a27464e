import type { Clock } from '#libs/platform/src/clock';
import { within } from '#libs/platform/src/deadline';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import type { LogPlace } from '#libs/read-models/src/read-models';
import { type EventStore, type Position, START } from '../log/event-store.ts';
import { SharedReading } from './shared-reading.ts';
import type { Cursor } from './cursor.ts';
import { type TailLimits, LogPutBack, Reading } from './reading.ts';

/** How often it is asked where the log ends, while anybody follows it. */
const HEARTBEAT = 1_000;
const HEAD_LIMIT = 5_000;

/** Is told where the log ends. */
export interface Listener {
  /** `asked`: when, in milliseconds since the epoch. */
  headIs(head: Position, asked: number): void;
  headIsUnknown?(error: unknown): void;
}

/**
 * Reads the log for everybody in this process who follows it: once for all who have come to its end, and once for those together who come from further back, until they
 * meet the others.
 */
export class LogReader {
  private readonly readings = new Set<Reading>();
  private readonly heads: SharedReading<Position>;
  private readonly listeners = new Set<Listener>();
  private readonly watchers = new Set<() => void>();
  private beating: NodeJS.Timeout | null = null;
  private isAsking = false;

  constructor(
    private readonly events: EventStore,
    private readonly clock: Clock,
    private readonly kept: TailLimits = { most: 4_096, mostBytes: 16 * 1024 * 1024, meeting: 512 },
  ) {
    this.heads = new SharedReading(() => within(events.head(), HEAD_LIMIT, endUnknown).catch(refuseAsUnknown));
  }

  /**
   * The end of the log, as it stands after the call: one reading for everybody who asks meanwhile.
   * @throws DomainError `service_unavailable` where it takes longer (milliseconds), or the log does not say it
   */
  head(patience = HEAD_LIMIT): Promise<Position> {
    const { headAtHand } = this.events;
    if (headAtHand !== null) return Promise.resolve(headAtHand);
    const head = this.heads.next();
    // A timer for each of thirty thousand questions a second would cost more than some answers: the reading has one for all.
    return patience >= HEAD_LIMIT ? head : within(head, patience, endUnknown);
  }

  /**
   * Whether the log has another record where this one was seen: it was put back to an earlier state, and has grown past that place since.
   * @throws DomainError `service_unavailable` where the log does not say it
   */
  async hasAnotherAt({ position, record }: LogPlace): Promise<boolean> {
    if (record === null) return false;
    const found = await within(this.events.idAt(position), HEAD_LIMIT, endUnknown);
    return found !== null && found !== record;
  }

  /** As `head`, where that is known without asking; null elsewhere. */
  get headAtHand(): Position | null {
    return this.events.headAtHand;
  }

  /** Those who are close to where others are go along with these; the rest go together, from the one that is furthest behind. */
  async seat(cursors: readonly Cursor[], signal: AbortSignal): Promise<void> {
    const head = await this.head();
    if (signal.aborted) return;
    const rest: Cursor[] = [];
    for (const cursor of cursors) {
      const live = this.live?.serves(cursor) === true ? this.live : undefined;
      const reading = cursor.isAfresh || cursor.position > head ? undefined : (live ?? this.readingFor([cursor], cursor.position));
      if (reading === undefined) rest.push(cursor);
      else reading.join(cursor);
    }
    if (rest.length > 0) this.begin(rest, head);
  }

  /** Is told whenever something was read or handled. */
  watch(watcher: () => void): void {
    this.watchers.add(watcher);
  }

  /** Is told of the end of the log about every second, until it leaves. */
  listen(listener: Listener): void {
    this.listeners.add(listener);
    this.beat();
  }

  leave(listener: Listener): void {
    this.listeners.delete(listener);
    this.beat();
  }

  /** Up to here this process has read the log; START where it does not follow it. */
  get end(): Position {
    return this.live?.end ?? START;
  }

  /** One that has been at a position, and keeps everything after it that these need. */
  private readingFor(cursors: readonly Cursor[], position: Position, except: Reading | null = null): Reading | undefined {
    for (const reading of this.readings)
      if (reading !== except && reading.keeps(position) && position <= reading.end && cursors.every((cursor) => reading.serves(cursor))) return reading;
    return undefined;
  }

  private get live(): Reading | undefined {
    for (const reading of this.readings) if (reading.isLive) return reading;
    return undefined;
  }

  private begin(cursors: readonly Cursor[], head: Position): void {
    const from = cursors.map(({ position }) => position).reduce((low, position) => (position < low ? position : low));
    const reading: Reading = new Reading(from, {
      events: this.events,
      kept: this.kept,
      onMoved: () => {
        for (const watcher of this.watchers) watcher();
      },
      onRead: () => this.goesOn(reading, head),
      onEnded: () => {
        this.readings.delete(reading);
        this.beat();
      },
    });
    this.readings.add(reading);
    for (const cursor of cursors) reading.join(cursor);
    reading.isLive = from >= head && this.live === undefined;
    void reading.read();
    this.beat();
  }

  /** At the end of the log it waits for nobody any more. Until then, when all have handled what it read, it may meet others. */
  private goesOn(reading: Reading, head: Position): Promise<void> | null {
    if (reading.isLive) return null;
    if (reading.end >= head && this.live === undefined) {
      reading.isLive = true;
      return null;
    }
    return reading.allHandled().then(() => this.meet(reading));
  }

  private meet(reading: Reading): void {
    if (reading.isLive || reading.hasEnded || !reading.isSettled) return;
    const other = this.readingFor(reading.members, reading.end, reading);
    if (other === undefined) return;
    for (const cursor of reading.members) {
      reading.leave(cursor);
      other.join(cursor);
    }
  }

  private beat(): void {
    const isNeeded = this.readings.size > 0 || this.listeners.size > 0;
    if (isNeeded) this.beating ??= setInterval(() => void this.look(), HEARTBEAT).unref();
    else if (this.beating !== null) {
      clearInterval(this.beating);
      this.beating = null;
    }
  }

  private async look(): Promise<void> {
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      const asked = this.clock.now();
      // What is read while the answer is on its way may lie behind it.
      const seen = [...this.readings].map((reading) => ({ reading, ends: [reading, ...reading.members].map((one) => [one, endOf(one)] as const) }));
      const head = await this.head();
      for (const { reading, ends } of seen)
        this.tend(
          reading,
          head,
          ends.filter(([, end]) => end > head).map(([one]) => one),
        );
      for (const listener of this.listeners) listener.headIs(head, asked);
    } catch (error) {
      for (const listener of this.listeners) listener.headIsUnknown?.(error);
    } finally {
      this.isAsking = false;
    }
  }

  private tend(reading: Reading, head: Position, beyond: readonly (Reading | Cursor)[]): void {
    for (const one of beyond) {
      if (one instanceof Reading) one.fail(new LogPutBack(head));
      else reading.putOut(one, new LogPutBack(head));
    }
    if (reading.isStuck(head)) reading.fail(new Error('A subscription to the log does not move.'));
    else this.meet(reading);
  }
}

function endUnknown(): Error {
  return unavailable('The log does not say where it ends.');
}

function refuseAsUnknown(error: unknown): never {
  throw error instanceof DomainError ? error : Object.assign(endUnknown(), { cause: error });
}

function endOf(one: Reading | Cursor): Position {
  return one instanceof Reading ? one.end : one.position;
}
