import type { EventShapes, Upcast, Upcastable } from '#libs/contracts/src/shapes';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { EventStore, type Append, type Appended, type LooksInto, type NewEvent, type Position, type RecordedEvent } from './event-store.ts';
import { withContent, UnreadableRecord } from './lazy-record.ts';

/** The shapes of several resources together. @throws Error where two speak of one event, or one is to be written that nobody reads */
export function shapesOf(all: readonly EventShapes[]): Required<EventShapes> {
  const upcasts = new Map<string, readonly Upcast[]>();
  const writes = new Map<string, number>();
  for (const shapes of all) {
    for (const [type, steps] of Object.entries(shapes.upcasts ?? {})) {
      if (upcasts.has(type)) throw new Error(`The shapes of ${type} are declared twice.`);
      upcasts.set(type, steps);
    }
    for (const [type, shape] of Object.entries(shapes.writes ?? {})) {
      if (!Number.isInteger(shape) || shape < 1 || shape > lastShape(shapes, type))
        throw new Error(`${type} is to be written in the shape ${shape}, which is not read.`);
      writes.set(type, shape);
    }
  }
  return { upcasts: Object.fromEntries(upcasts), writes: Object.fromEntries(writes) };
}

/** @throws Error where deciders know shapes that processes of other services would not: these read the same events */
export function requireKnown(deciders: readonly EventShapes[], { upcasts, writes }: Required<EventShapes>): void {
  for (const decider of deciders) {
    const unknown =
      Object.entries(decider.upcasts ?? {}).find(([type, steps]) => upcasts[type] !== steps) ??
      Object.entries(decider.writes ?? {}).find(([type, shape]) => writes[type] !== shape);
    if (unknown !== undefined) throw new Error(`The shapes of ${unknown[0]} are not among SHAPES, so only its own service would know them.`);
  }
}

/** The last shape of an event type that is read. */
function lastShape({ upcasts = {} }: EventShapes, type: string): number {
  return 1 + (upcasts[type]?.length ?? 0);
}

/** In which shape events of a type are written. */
export function writtenShape(shapes: EventShapes, type: string): number {
  return shapes.writes?.[type] ?? lastShape(shapes, type);
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
    private readonly shapes: EventShapes,
  ) {
    super();
    this.upcasts = new Map(Object.entries(shapes.upcasts ?? {}));
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
    return this.events.append(stream, expectedVersion, this.asWritten(events));
  }

  override get appendsTogether(): boolean {
    return this.events.appendsTogether;
  }

  override appendTogether(appends: readonly Append[]): Promise<readonly Appended[]> {
    return this.events.appendTogether(appends.map((append) => ({ ...append, events: this.asWritten(append.events) })));
  }

  head(): Promise<Position> {
    return this.events.head();
  }

  override idAt(position: Position): Promise<string | null> {
    return this.events.idAt(position);
  }

  override get headAtHand(): Position | null {
    return this.events.headAtHand;
  }

  async *subscribe(after: Position, signal: AbortSignal, looksInto?: LooksInto): AsyncIterable<readonly RecordedEvent[]> {
    for await (const batch of this.events.subscribe(after, signal, looksInto)) yield* parted(this.upToDate(batch));
  }

  private asWritten(events: readonly NewEvent[]): readonly NewEvent[] {
    const isAffected = events.some(({ type }) => this.upcasts.has(type));
    return isAffected ? events.map((event) => ({ ...event, shape: writtenShape(this.shapes, event.type) })) : events;
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
