import type { DomainError } from '#libs/platform/src/domain-error';
import type { RecordedEvent } from '../log/event-store.ts';
import type { EventShapes } from '#libs/contracts/src/shapes';

/** A fact to record, as a decision yields it. Type and data are what is folded; the rest is filled in by `transact`. */
export interface Fact<Type extends string = string, Data = unknown> {
  readonly type: Type;
  readonly data: Data;
}

/** Those facts of a union that have one of these types. */
export type FactOf<Event extends Fact, Type extends Event['type']> = Extract<Event, { readonly type: Type }>;

/** A fact as the log has it: of a union of facts, the type tells the data. */
export type Recorded<Event extends Fact = Fact> = Event extends Fact ? Omit<RecordedEvent, 'type' | 'data'> & Pick<Event, 'type' | 'data'> : never;

/** A fact as it is folded. */
export type Folded<Event extends Fact> = Event & {
  /** ISO 8601 with milliseconds. By the clock of whoever recorded it: clocks differ, so it says nothing about what came first. */
  readonly at: string;
  /** Counts from 1 in its stream: what came first there has the lower one. */
  readonly version: number;
};

/** What a decision may know besides the state: everything impure was looked up before. */
export interface DecisionContext {
  readonly environment: string;
  /** ISO 8601 with milliseconds. */
  readonly now: string;
  /** The id of the `ordinal`-th (default 0) resource of this kind that the command creates: the same whenever the command is repeated. */
  readonly id: (prefix: string, ordinal?: number) => string;
}

/** A command, bound to its arguments: yields the facts that follow, none when it is already satisfied. @throws DomainError when it is refused */
export type Decision<State, Event extends Fact> = (state: State, context: DecisionContext) => readonly Event[];

/** A value that at most one owner of an environment may hold: what `transact` claims before the events that take it. */
export interface Claim {
  /** Names the kind of value: `organization.external_id`. */
  readonly kind: string;
  /** The value, already normalised. */
  readonly value: string;
  /** What a rival that holds it answers. */
  readonly refusal: () => DomainError;
  /**
   * Holders of this value may never have claimed it: it was spelled differently when they took it. So it is claimed along with every change, and where a
   * rival from that time holds it too, the change goes on.
   */
  readonly mayBeUnclaimed?: true;
}

/** As facts have it of somebody who may have been erased since. */
export type Erasable<Type, Personal extends PropertyKey> = {
  readonly [Field in keyof Type]: Field extends Personal ? Type[Field] | null : Type[Field];
};

/** Whose key seals which fields of a fact, and of the resource that it announces. */
export interface Sealing<State, Event extends Fact> {
  /** The holder: `user.<id>`, `invitation.<id>`, `organization.<id>.<yyyy-mm>`. `key` is that of the stream. */
  of(fact: Event & { readonly at: string }, about: { readonly key: string; readonly before: State; readonly after: State }): string;
  /** Paths within the fact's data and within the announced resource, as they are written: `email`, `addresses.*.street`. What they name may be null once its holder is erased. */
  readonly fields: readonly string[];
}

/** For every type of event whom it holds something personal of; null for nobody. A new type that is forgotten here does not compile. */
export type Sealed<State, Event extends Fact> = {
  readonly [Type in Event['type']]: readonly Sealing<State, Extract<Event, { readonly type: Type }>>[] | null;
};

/**
 * An aggregate as a value: pure, one file. `State` is the resource wherever possible. It folds events of the last shape that this release reads; where it writes an
 * earlier one (`writes`), its decisions yield facts of that, `Written`, which are upcast before they are folded.
 */
export interface Decider<State, Event extends Fact, Written extends Fact = Event> extends EventShapes {
  /** First part of the stream name, `<category>-<environment>-<key>`. */
  readonly category: string;
  /** Counts up whenever `evolve` folds differently: rows of an older fold are not trusted. */
  readonly foldVersion: number;
  readonly initial: State;
  evolve(state: State, event: Folded<Event>): State;
  /** What of its events is personal to whom. */
  readonly sealed: Sealed<State, Event>;
  /** How events of older shapes become what `evolve` folds, as its service's contract has it (`SHAPES`). Absent: every type still has its first shape. */
  readonly upcasts?: EventShapes['upcasts'];
  /** The shapes of facts that are written earlier ones of: the release that first reads a shape does not write it yet. */
  readonly writes?: EventShapes['writes'];
  /** The values that this state holds exclusively. Absent: none. */
  claims?(state: State): readonly Claim[];
  /**
   * Facts of these types, at the end of what a decision yields, are left for another append where all together are more than one takes: the state says that they
   * are still to come, and decisions yield them again for as long. Whoever asks goes on until nothing follows. Absent: all or nothing.
   */
  readonly mayFollow?: readonly Written['type'][];
  /** What this aggregate hangs on, and how it ends with it: a reaction of the library records that. Absent: it ends by itself alone. */
  readonly hangsOn?: HangsOn<State, Event>;
  /** The organization that this state belongs to, for the event's meta and the message key. */
  organization?(state: State): string | undefined;
  /**
   * What an event announces: its public name and the public resource as of the event (the state after it; before it for a deletion), in the shape that is written.
   * `null` keeps it private.
   */
  toPublicEvent(event: Event, before: State, after: State): NewPublicEvent | null;
}

/** What takes an aggregate along when it ends. Dead at once for every reader, it gets an end of its own recorded, whenever it began. */
export interface HangsOn<State, Event extends Fact> {
  /** Names the stored checkpoint of the reaction, for ever; deciders of a service that name the same one share it. */
  readonly reaction: string;
  readonly parents: readonly Parent[];
  /** The facts by which it begins: what began while a parent ended is met there. Absent: nothing begins under what has ended, or a guard sees to it (`hanging.ts`). */
  readonly begins?: readonly Event['type'][];
  /** The key of the stream that a row is the state of; absent: its id. */
  keyOf?(row: NonNullable<State>): string;
  /** Records the end of what has this id (of what lies in the parent's own stream: that of the parent); nothing where it has ended. */
  end(id: string): Decision<State, Event>;
}

/** An aggregate that others hang on. */
export interface Parent {
  /** The fact by which it ends, whose data is its id. */
  readonly ends: string;
  /** The index of the primary view that finds what hangs on one, unless the view says otherwise (`under`). Absent: what hangs on it has a stream of the same key. */
  readonly index?: string;
  /** Its category, and the field of a beginning that names it, null where that hangs on none. Absent: nothing begins under it unseen. */
  readonly category?: string;
  readonly field?: string;
}

export interface NewPublicEvent {
  readonly payload: unknown;
  /** Public event names; usually the event's own type. */
  readonly names: readonly string[];
}
