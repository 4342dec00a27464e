import type { Index } from '#libs/read-models/src/read-models';
import type { Decider, Fact } from './decider.ts';
import type { RecordedEvent } from './event-store.ts';

/** A read model as a value: pure, rebuilt from the log whenever its version (part of the stored name) grows. */
export interface View<Row> {
  readonly name: string;
  readonly version: number;
  readonly handles: readonly string[];
  readonly indexes: readonly Index<Row>[];
  readonly sortKey?: (row: Row) => string;
  /** The rows that an event touches. */
  idsOf(event: RecordedEvent): readonly string[];
  /** The row after the event; null deletes it. Events of one row come in order, each once. */
  evolve(row: Row | null, event: RecordedEvent, id: string): Row | null;
  /** The row's stored text; an allow-list serialiser where rows are sent as they are stored. Default: JSON. */
  serialise?(row: Row): string;
}

/** The view whose rows are the states of an aggregate: `transact` writes them at once, the projector finds them done. */
export interface PrimaryView<State, Event extends Fact> extends View<State> {
  readonly decider: Decider<State, Event>;
  /** The row's id for a stream key. */
  readonly idOf: (key: string) => string;
}
