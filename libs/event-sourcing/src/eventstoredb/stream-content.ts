import type { RecordedEvent } from '../log/event-store.ts';
import { UnreadableRecord } from '../log/lazy-record.ts';
import type { Damage } from '../log/log-damage.ts';
import { environmentOf } from '../log/naming.ts';
import { SKIPPED } from '../log/protocol.ts';
import type { LogEvent } from './wire.ts';

/** What was read of a stream: its records, and what keeps them from being the whole. */
export interface StreamContent {
  readonly records: readonly RecordedEvent[];
  readonly damages: readonly Damage[];
}

export interface Reading {
  readonly stream: string;
  /** The first version that was asked for; null: wherever the stream ends. */
  readonly from: number | null;
  /** Whether an operator decided to go on without a version. */
  readonly isSkipped: (version: number) => boolean;
}

/** Events of a stream as they were read forwards, all from a version on. */
export function contentForwards(events: readonly LogEvent[], reading: Reading): StreamContent {
  const found = new Found(reading);
  let next = reading.from ?? 1;
  for (const event of events) {
    found.gap(next, event.version - 1, event);
    found.take(event);
    next = event.version + 1;
  }
  return found;
}

/** Up to so many events of a stream, as they were read backwards. */
export function contentBackwards(events: readonly LogEvent[], count: number, reading: Reading): StreamContent {
  const found = new Found(reading);
  let before: LogEvent | null = null;
  for (const event of events) {
    if (before !== null) found.gap(event.version + 1, before.version - 1, before);
    found.take(event);
    before = event;
  }
  // Fewer than were asked for: there is nothing before them.
  if (before !== null && events.length < count) found.gap(1, before.version - 1, before);
  return found;
}

/** Stands in the place of an event that was skipped, so that versions go on without a gap. No fold sees it. */
export function skippedRecord({ stream, position, version, createdAt }: LogEvent & { readonly stream: string }): RecordedEvent {
  const actor = { id: '', source: 'system', name: null };
  const meta = { environment: environmentOf(stream), actor, requestId: '', commandId: '', at: createdAt };
  return { id: '', stream, version, position, type: SKIPPED, shape: 1, data: {}, subject: null, public: [], meta };
}

class Found implements StreamContent {
  readonly records: RecordedEvent[] = [];
  readonly damages: Damage[] = [];

  constructor(private readonly reading: Reading) {}

  take(event: LogEvent): void {
    const { record, damage, version } = event;
    const { stream, isSkipped } = this.reading;
    if (isSkipped(version)) this.records.push(skippedRecord({ ...event, stream }));
    else if (damage !== null) this.damages.push(damage);
    else if (record !== null && !(record instanceof UnreadableRecord)) this.records.push(record);
  }

  /** Versions that are not there, and should be. */
  gap(from: number, to: number, { position }: LogEvent): void {
    let first = from;
    while (first <= to && this.reading.isSkipped(first)) first++;
    if (first <= to) this.damages.push({ stream: this.reading.stream, from: first - 1, revision: to - 1, position, cause: 'missing' });
  }
}
