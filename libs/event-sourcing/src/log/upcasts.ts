import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { EventStore, type Appended, type NewEvent, type Position, type RecordedEvent, UnreadableRecord } from './event-store.ts';
import { withContent } from './lazy-record.ts';

/** What an upcast may change; everything else about an event stands for ever. */
export type Upcastable = Pick<RecordedEvent, 'data' | 'subject'>;

/** From one shape to the next. Pure, and never edited once it was released. */
export type Upcast = (event: Upcastable) => Upcastable;

/** By event type: how shape 1 becomes shape 2, shape 2 shape 3, and so on. The last one is what is written and folded. */
export type Upcasts = Readonly<Record<string, readonly Upcast[]>>;

/** The upcasts of all deciders whose events a process may read. */
export function upcastsOf(deciders: readonly { readonly upcasts?: Upcasts }[]): Upcasts {
  return Object.assign({}, ...deciders.map(({ upcasts }) => upcasts)) as Upcasts;
}

/** The content of an event of any older shape in the last one that these steps lead to. */
export function upcast(content: Upcastable, shape: number, steps: readonly Upcast[] = []): Upcastable {
  return steps.slice(shape - 1).reduce((older, step) => step(older), content);
}

/** A record of a shape that only a later release knows. */
export type LaterRecord = UnreadableRecord & { readonly reason: NeedsLaterRelease };

/** Whether this release cannot know what the record says. Whoever handles its type leaves it to a process that can, and asks for nothing that it would have to say. */
export function isFromLaterRelease(record: RecordedEvent): record is LaterRecord {
  return record instanceof UnreadableRecord && record.reason instanceof NeedsLaterRelease;
}

/** In parts, of which each record of a later release begins one. */
function parted(batch: readonly RecordedEvent[]): readonly (readonly RecordedEvent[])[] {
  if (!batch.some(isFromLaterRelease)) return [batch];
  const starts = batch.flatMap((record, index) => (index === 0 || isFromLaterRelease(record) ? [index] : []));
  return starts.map((start, index) => batch.slice(start, starts[index + 1]));
}

/**
 * The log in the shapes of this release, whatever release wrote it. A record of a later one comes, to whoever follows the log, as the first of a batch: who cannot go on
 * there has finished everything before it.
 */
export class UpcastingEventStore extends EventStore {
  private readonly upcasts: ReadonlyMap<string, readonly Upcast[]>;
  /** A record is upcast once for all its readers, and stays the same object for them. */
  private readonly known = new WeakMap<RecordedEvent, RecordedEvent>();

  constructor(
    private readonly events: EventStore,
    upcasts: Upcasts,
  ) {
    super();
    this.upcasts = new Map(Object.entries(upcasts));
  }

  async read(stream: string, from?: number): Promise<readonly RecordedEvent[]> {
    return this.upToDate(await this.events.read(stream, from));
  }

  async readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
    return this.upToDate(await this.events.readBackwards(stream, count, from));
  }

  async last(stream: string): Promise<RecordedEvent | null> {
    const record = await this.events.last(stream);
    return record === null ? null : this.current(record);
  }

  append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    const isAffected = events.some(({ type }) => this.upcasts.has(type));
    return this.events.append(stream, expectedVersion, isAffected ? events.map((event) => ({ ...event, shape: this.shapeOf(event.type) })) : events);
  }

  head(): Promise<Position> {
    return this.events.head();
  }

  async *subscribe(after: Position, signal: AbortSignal, pace?: 'prompt'): AsyncIterable<readonly RecordedEvent[]> {
    for await (const batch of this.events.subscribe(after, signal, pace)) yield* parted(this.upToDate(batch));
  }

  private shapeOf(type: string): number {
    return 1 + (this.upcasts.get(type)?.length ?? 0);
  }

  private upToDate(records: readonly RecordedEvent[]): readonly RecordedEvent[] {
    return records.every(({ type, shape }) => shape === this.shapeOf(type)) ? records : records.map((record) => this.current(record));
  }

  /** What a step fails on keeps nobody from the rest: whoever looks into it meets the reason. */
  private current(record: RecordedEvent): RecordedEvent {
    const { type, shape } = record;
    const current = this.shapeOf(type);
    if (shape === current || record instanceof UnreadableRecord) return record;
    let known = this.known.get(record);
    if (known === undefined) {
      known = shape > current ? new UnreadableRecord(record, new NeedsLaterRelease(record, current)) : this.upcast(record, current);
      this.known.set(record, known);
    }
    return known;
  }

  private upcast(record: RecordedEvent, shape: number): RecordedEvent {
    let upcasted: Upcastable | null = null;
    const content = (): Upcastable => (upcasted ??= upcast(record, record.shape, this.upcasts.get(record.type)));
    return withContent(record, { shape, data: () => content().data, subject: () => content().subject });
  }
}
