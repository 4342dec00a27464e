import type { LogPlace } from '#libs/read-models/src/read-models';
import type { Position, RecordedEvent } from '../log/event-store.ts';

/** Whoever nobody waits for takes together what comes within so long (milliseconds), rather than wake, and write, for each event. */
const GATHER_MS = 5;

/** Events of the types that were asked for, in order, and up to where the log was looked through for them. */
export interface Taken {
  readonly records: readonly RecordedEvent[];
  readonly upTo: LogPlace;
}

/** How a cursor goes along. */
interface Ways {
  /** Of the types that it handles; absent: all. */
  readonly isFor?: ((event: RecordedEvent) => boolean) | undefined;
  /** Somebody waits for each event. */
  readonly pace?: 'prompt' | undefined;
  /** It looks into none of them: what it needs is known without their content. */
  readonly isByEnvelope?: boolean | undefined;
  /** What comes next is read again from the log: as it was kept, it could not be handled. */
  readonly isAfresh?: boolean;
}

/** The reading of the log along which a cursor goes. */
export interface Way {
  /** Up to here it has read the log. */
  readonly end: Position;
  readonly endPlace: LogPlace;
  /** When the last record was recorded. */
  readonly lastAt: number;
  /** At the end of the log: it waits for nobody. */
  readonly isLive: boolean;
  /** What is left for the cursor from a number on; null where that is not kept any more. */
  take(cursor: Cursor, from: number): Taken | null;
  recordedAt(number: number): number;
  /** One of those who go along has handled something. */
  moved(): void;
  leave(cursor: Cursor): void;
}

/**
 * The place in the log of one who follows it. What it does not handle costs it nothing: where nothing is left for it in what its reading has read, it has seen all of that.
 */
export class Cursor {
  /** The number, in its reading, of the first record that is for it and that it has not taken; null: there is none. */
  next: number | null = null;
  /** The number of the first record that it has taken and not handled; null: there is none. */
  taken: number | null = null;
  readonly isAfresh: boolean;
  private readonly isFor: NonNullable<Ways['isFor']>;
  private readonly pace: 'prompt' | undefined;
  private readonly isByEnvelope: boolean;
  private reading: Way | null = null;
  private isBusy = false;
  private busySince = 0;
  private failure: { readonly error: unknown } | null = null;
  /** The furthest position that anybody waits for. */
  private awaited: Position;
  private look: () => void = () => {};
  private handledPlace: LogPlace;

  constructor(
    /** Null: every type. */
    readonly types: ReadonlySet<string> | null,
    /** Everything up to here was handled. */
    private handled: Position,
    { isFor = () => true, pace, isByEnvelope = false, isAfresh = false }: Ways = {},
  ) {
    this.awaited = handled;
    this.handledPlace = { position: handled, record: null };
    this.isFor = isFor;
    this.pace = pace;
    this.isByEnvelope = isByEnvelope;
    this.isAfresh = isAfresh;
  }

  /** Everything up to here that is for it was handled. */
  get position(): Position {
    const { reading, handled } = this;
    return reading === null || !this.isIdle || reading.end < handled ? handled : reading.end;
  }

  /** The same with the record there, where this process has met it. */
  get place(): LogPlace {
    const { reading, handledPlace, handled } = this;
    return reading === null || !this.isIdle || reading.end <= handled ? handledPlace : reading.endPlace;
  }

  /** It was given a reading to go along, and was not left behind since. */
  get hasPlace(): boolean {
    return this.reading !== null;
  }

  goesAlong(reading: Way): boolean {
    return this.reading === reading;
  }

  /** Nothing is on its way to it. */
  get isIdle(): boolean {
    return this.next === null && !this.isBusy;
  }

  /** When the oldest event was recorded that it has not handled, at the earliest (milliseconds since the epoch); null: there is none. */
  behindSince(head: Position): number | null {
    if (this.isBusy) return this.busySince;
    if (this.reading === null || this.position >= head) return null;
    return this.next === null ? this.reading.lastAt : this.reading.recordedAt(this.next);
  }

  concerns(event: RecordedEvent): boolean {
    return (this.types === null || this.types.has(event.type)) && event.position > this.handled && this.isFor(event);
  }

  looksInto(event: RecordedEvent): boolean {
    return !this.isByEnvelope && this.concerns(event);
  }

  /** Goes along there. `next`: the number of the first record that is kept for it. */
  join(reading: Way, next: number | null): void {
    this.next = next;
    this.reading = reading;
    this.look();
  }

  /** There is something for it behind what its reading had read. */
  offer(number: number): void {
    if (this.next !== null) return;
    if (!this.isBusy) this.handledTo(this.place);
    this.next = number;
    this.look();
  }

  /** Somebody waits until it has come so far: then it waits for no company. */
  hurry(position: Position): void {
    if (position <= this.awaited) return;
    this.awaited = position;
    this.look();
  }

  /** What it depends on has ended. */
  fail(error: unknown): void {
    this.leave();
    this.failure = { error };
    this.look();
  }

  /** Follows the log no more. */
  end(): void {
    this.reading?.leave(this);
  }

  /** Goes along there no more. */
  leave(): void {
    this.handledTo(this.place);
    this.reading = null;
    this.next = null;
    this.taken = null;
  }

  /** The others there went on without it. */
  leftBehind(): void {
    this.leave();
    this.look();
  }

  /**
   * The next events that are for it; null where it was left behind, or the signal has aborted, of which it is to be told (`wake`).
   * @throws what has ended its reading
   */
  async take(signal: AbortSignal): Promise<Taken | null> {
    const isOver = (): boolean => signal.aborted || this.failure !== null || this.reading === null;
    await this.until(() => isOver() || this.next !== null);
    if (!isOver() && !this.isHurried) await this.until(() => isOver() || this.isHurried, GATHER_MS);
    if (signal.aborted) return null;
    if (this.failure !== null) throw this.failure.error;
    if (this.reading === null) return null;
    const first = this.next!;
    const taken = this.reading.take(this, first);
    this.isBusy = taken !== null;
    this.taken = taken === null ? null : first;
    this.busySince = taken?.records[0]?.meta.at ?? 0;
    return taken;
  }

  /** Its signal has aborted. One listener for all that it takes: each alone costs as much as some records do. */
  wake(): void {
    this.look();
  }

  /** What was taken is behind it. */
  done(upTo: LogPlace): void {
    this.isBusy = false;
    this.taken = null;
    if (upTo.position > this.handled) this.handledTo(upTo);
    this.reading?.moved();
  }

  private handledTo(place: LogPlace): void {
    this.handledPlace = place;
    this.handled = place.position;
  }

  private get isHurried(): boolean {
    return this.pace === 'prompt' || this.awaited > this.handled || this.reading?.isLive === false;
  }

  private until(isOver: () => boolean, milliseconds?: number): Promise<void> {
    if (isOver()) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.look = () => {};
        resolve();
      };
      const timer = milliseconds === undefined ? undefined : setTimeout(done, milliseconds);
      this.look = () => {
        if (isOver()) done();
      };
    });
  }
}
