import type { Index, PageRequest, Table, TableDefinition } from '#libs/read-models/src/read-models';
import { namesOf } from '../deciding/changes.decider.ts';
import type { Decider, Fact, Recorded } from '../deciding/decider.ts';
import { toFolded } from '../deciding/records.ts';
import { ERASING } from '../erasure/erasing.ts';
import { streamKeyOf } from '../log/naming.ts';
import type { Path } from '../sealing/sealed-paths.ts';

/** What of a row is personal: the library forgets it where its holder is erased, in every row, so that a rebuild and the rows that serve say the same. */
export interface PersonalColumns<Row> {
  /** Whose it is: `user.<id>`, and whoever else the facts seal something for. */
  readonly holders: (row: Row) => readonly string[];
  /** What of the row is this holder's, and what derives from it, such as folded spellings and words to search for: paths, as facts declare theirs. It becomes null, so a row always has it. */
  readonly columns: (row: Row, holder: string) => readonly Path[];
  /** The ids of a holder's rows, where ids say it. Absent: the library keeps an index, so that a view which declares this later has a new version. */
  readonly idsOf?: (holder: string) => readonly string[];
}

/** Of rows as they are stored. */
export interface ViewRetention {
  /** What may be left of one. */
  shortened(text: string): string;
  /** Whether one is so old that it may be gone. `now`: milliseconds since the epoch. */
  mayBeGone(text: string, now: number): boolean;
  /** The row of the same view that says whether one may be gone whatever its age, since what it belongs to is over. */
  readonly owner?: { idOf(text: string): string; isOver(ownerText: string, text: string, now: number): boolean };
}

/** A read model as a value: pure, rebuilt from the log whenever its version (part of the stored name) grows. `Event`: the facts that it folds, of whatever service. */
export interface View<Row, Event extends Fact = Fact> {
  readonly name: string;
  readonly version: number;
  /** What callers call a row, in the answer that there is none: `Organization`. */
  readonly noun?: string;
  readonly handles: readonly Event['type'][];
  /** It shows whatever is announced: what only a later release can announce is left to that, whatever its type. */
  readonly showsAnnounced?: true;
  readonly indexes: readonly Index<Row>[];
  readonly sortKey?: (row: Row) => string;
  /** Of views with very many rows: pages are asked for by indexes alone. */
  readonly isReadByIndexes?: true;
  /** The rows that an event touches. */
  idsOf(event: Recorded<Event>): readonly string[];
  /** The row after the event; null deletes it. Events of one row come in order, each once. */
  evolve(row: Row | null, event: Recorded<Event>, id: string): Row | null;
  /**
   * Instead of `evolve`, for rows that depend on the rows before them: the fold of the next events of the log, given the table as those before them left it.
   * `remembered` is what the view put there for the batch before: nothing where that was not stored, or something else may have been.
   */
  evolveBatch?(table: Table<Row>, events: readonly Recorded<Event>[], remembered: Map<string, unknown>): Promise<View<Row, Event>['evolve']>;
  /** Null: nothing, although it folds facts of which something is sealed; to be said where that is so. */
  readonly personal?: PersonalColumns<Row> | null;
  /** Its rows lie together, whichever environment their events are of (`SYSTEM_ENVIRONMENT`): they are asked for by whoever has to find the environment first. */
  readonly isOfAllEnvironments?: true;
  /** False where nobody counts on finding what was just recorded: no command waits for such a view. */
  readonly awaited?: false;
  /** What time takes of its rows beside the log: then these are not all that a rebuild makes of it. */
  readonly retention?: ViewRetention;
  /** The row's stored text; an allow-list serialiser where rows are sent as they are stored. Default: JSON. */
  serialise?(row: Row): string;
}

/** The view whose rows are the states of an aggregate: `transact` writes them at once, the projector finds them done. */
export interface PrimaryView<State, Event extends Fact, Row extends State = NonNullable<State>> extends View<Row, Event> {
  readonly decider: Decider<State, Event>;
  /**
   * Finds the row's id in a fact, where a natural key names the stream: one that was deleted and created again is another row, and the stream says it all.
   * Null where the stream's key is the id.
   */
  readonly rowIdOf: ((data: Event['data']) => string) | null;
  /** The row of a state: null while it is to have none, although its stream goes on. */
  readonly rowOf: (state: State) => Row | null;
  /** By the index that a parent names, how the rows that hang on one are found there; absent: under its id. */
  readonly under?: Readonly<Record<string, (parentId: string) => NonNullable<PageRequest['where']>>>;
}

/**
 * A primary view: it handles whatever its decider records. Its rows are found under the keys of their streams, or with `rowIdOf` under the ids that the facts name; then the fold of a fact that creates
 * must not depend on what its key named before.
 */
export function primaryView<State, Event extends Fact, Row extends State>(
  options: Pick<
    PrimaryView<State, Event, Row>,
    'name' | 'version' | 'noun' | 'decider' | 'indexes' | 'rowOf' | 'under' | 'sortKey' | 'serialise' | 'personal' | 'retention'
  > & {
    readonly rowIdOf?: (data: Event['data']) => string;
  },
): PrimaryView<State, Event, Row> {
  const { decider, rowOf, rowIdOf = null } = options;
  return {
    ...options,
    rowIdOf,
    handles: namesOf(decider.sealed),
    idsOf: ({ stream, data }) => [rowIdOf === null ? streamKeyOf(stream) : rowIdOf(data)],
    evolve: (row, record) => rowOf(decider.evolve(row ?? decider.initial, toFolded<Event>(record))),
  };
}

/** The primary views among these, by the categories of their deciders. */
export function primariesOf(views: readonly object[]): ReadonlyMap<string, PrimaryView<unknown, Fact, object>> {
  const primaries = views.filter((view): view is PrimaryView<unknown, Fact, object> => 'decider' in view);
  return new Map(primaries.map((view) => [view.decider.category, view]));
}

/** The index of the library by which rows of a holder are found. */
export const HOLDER_INDEX = 'holder';

/** The types of records that concern a view. */
export function typesOf<Row>({ handles, personal }: Pick<View<Row>, 'handles' | 'personal'>): readonly string[] {
  return personal ? [...new Set([...handles, ...ERASING])] : handles;
}

/** A view of whatever kind, by what its rows are. */
export type ViewOf<Row> = View<Row> & { readonly decider?: { readonly foldVersion: number } };

/** Where the rows of a view are stored: a new version of the view, or of the fold whose states its rows are, is another table. */
export function tableOf<Row>(view: ViewOf<Row>): TableDefinition<Row> {
  const { name, version, noun, sortKey, isReadByIndexes, decider, personal } = view;
  const indexes = personal && personal.idsOf === undefined ? [...view.indexes, { name: HOLDER_INDEX, keys: personal.holders }] : view.indexes;
  return {
    name: `${name}-v${version}${decider === undefined ? '' : `.${decider.foldVersion}`}`,
    noun,
    indexes,
    sortKey,
    ...(isReadByIndexes && { isReadByIndexes }),
    rebuildable: true,
  };
}
