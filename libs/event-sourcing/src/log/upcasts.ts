import { EventStore, type Appended, type NewEvent, type Position, type RecordedEvent, UnreadableRecord } from './event-store.ts';

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

/** An event of any older shape in the shape of this release. @throws Error for a shape that only a later release knows */
export function upcast<Event extends Upcastable & Pick<RecordedEvent, 'type' | 'shape'>>(event: Event, steps: readonly Upcast[] = []): Event {
  const shape = 1 + steps.length;
  if (event.shape === shape) return event;
  if (event.shape > shape) throw new Error(`A ${event.type} of shape ${event.shape} was written by a later release: this one knows ${shape}.`);
  const { data, subject } = steps.slice(event.shape - 1).reduce<Upcastable>((older, step) => step(older), event);
  return { ...event, shape, data, subject };
}

/** The log in the shapes of this release, whatever release wrote it. */
export class UpcastingEventStore extends EventStore {
  private readonly upcasts: ReadonlyMap<string, readonly Upcast[]>;
  /** A record is upcast once for all its readers, and stays the same object for them. */
  private readonly current = new WeakMap<RecordedEvent, RecordedEvent>();

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
    return record === null ? null : this.upcast(record);
  }

  append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    const isAffected = events.some(({ type }) => this.upcasts.has(type));
    return this.events.append(stream, expectedVersion, isAffected ? events.map((event) => ({ ...event, shape: this.shapeOf(event.type) })) : events);
  }

  head(): Promise<Position> {
    return this.events.head();
  }

  async *subscribe(after: Position, signal: AbortSignal, pace?: 'prompt'): AsyncIterable<readonly RecordedEvent[]> {
    for await (const batch of this.events.subscribe(after, signal, pace)) yield this.isUpToDate(batch) ? batch : batch.map((record) => this.followed(record));
  }

  private shapeOf(type: string): number {
    return 1 + (this.upcasts.get(type)?.length ?? 0);
  }

  private upToDate(records: readonly RecordedEvent[]): readonly RecordedEvent[] {
    return this.isUpToDate(records) ? records : records.map((record) => this.upcast(record));
  }

  private isUpToDate(records: readonly RecordedEvent[]): boolean {
    return records.every(({ type, shape }) => shape === this.shapeOf(type));
  }

  /** A record on which a step fails is no reason to keep back the others: whoever handles it meets the reason. A later release's shape is not such a record. */
  private followed(record: RecordedEvent): RecordedEvent {
    try {
      return this.upcast(record);
    } catch (error) {
      if (record.shape > this.shapeOf(record.type)) throw error;
      return new UnreadableRecord(record, error);
    }
  }

  private upcast(record: RecordedEvent): RecordedEvent {
    if (record instanceof UnreadableRecord) return record;
    const known = this.current.get(record);
    if (known !== undefined) return known;
    const current = upcast(record, this.upcasts.get(record.type));
    this.current.set(record, current);
    return current;
  }
}
