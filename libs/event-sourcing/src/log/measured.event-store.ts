import type { Metrics } from '#libs/platform/src/metrics';
import { type Append, type Appended, EventStore, type LooksInto, type NewEvent, type Position, type RecordedEvent } from './event-store.ts';

/** Tells how long it takes until an append is durable: what every write waits for. */
export class MeasuredEventStore extends EventStore {
  private readonly duration;
  private readonly failures;

  constructor(
    private readonly store: EventStore,
    metrics: Metrics,
  ) {
    super();
    this.duration = metrics.histogram({ name: 'append_duration_seconds', help: 'Time until an append was durable.' });
    this.failures = metrics.counter({ name: 'append_failures_total', help: 'Appends that met a conflict or an error.' });
  }

  append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    return this.measured(() => this.store.append(stream, expectedVersion, events));
  }

  override get appendsTogether(): boolean {
    return this.store.appendsTogether;
  }

  override appendTogether(appends: readonly Append[]): Promise<readonly Appended[]> {
    return this.measured(() => this.store.appendTogether(appends));
  }

  read(stream: string, from?: number): Promise<readonly RecordedEvent[]> {
    return this.store.read(stream, from);
  }

  readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
    return this.store.readBackwards(stream, count, from);
  }

  last(stream: string): Promise<RecordedEvent | null> {
    return this.store.last(stream);
  }

  head(): Promise<Position> {
    return this.store.head();
  }

  override idAt(position: Position): Promise<string | null> {
    return this.store.idAt(position);
  }

  override get headAtHand(): Position | null {
    return this.store.headAtHand;
  }

  subscribe(after: Position, signal: AbortSignal, looksInto?: LooksInto): AsyncIterable<readonly RecordedEvent[]> {
    return this.store.subscribe(after, signal, looksInto);
  }

  private async measured<Result>(append: () => Promise<Result>): Promise<Result> {
    const began = performance.now();
    try {
      const appended = await append();
      this.duration.observe((performance.now() - began) / 1_000);
      return appended;
    } catch (error) {
      this.failures.inc();
      throw error;
    }
  }
}
