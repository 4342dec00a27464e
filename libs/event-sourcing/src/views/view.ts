import type { Index, Table, TableDefinition } from '#libs/read-models/src/read-models';
import type { Decider, Fact } from '../deciding/decider.ts';
import type { RecordedEvent } from '../log/event-store.ts';

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
  /**
   * Instead of `evolve`, for rows that depend on the rows before them: the fold of the next events of the log, given the table as those before them left it.
   * `remembered` is what the view put there for the batch before: nothing where that was not stored, or something else may have been.
   */
  evolveAfter?(table: Table<Row>, events: readonly RecordedEvent[], remembered: Map<string, unknown>): Promise<View<Row>['evolve']>;
  /** False where nobody counts on finding what was just recorded: no command waits for such a view. */
  readonly waitedFor?: false;
  /** The row's stored text; an allow-list serialiser where rows are sent as they are stored. Default: JSON. */
  serialise?(row: Row): string;
}

/** The view whose rows are the states of an aggregate: `transact` writes them at once, the projector finds them done. */
export interface PrimaryView<State, Event extends Fact, Row extends State = NonNullable<State>> extends View<Row> {
  readonly decider: Decider<State, Event>;
  /**
   * Finds the row's id in a fact, where a natural key names the stream: one that was deleted and created again is another row, and the stream says it all.
   * Null where the stream's key is the id.
   */
  readonly idIn: ((data: Event['data']) => string) | null;
  /** The row of a state: null while it is to have none, although its stream goes on. */
  readonly rowOf: (state: State) => Row | null;
}

/**
 * A primary view. Its rows are found under the keys of their streams, or with `idIn` under the ids that the facts name; then the fold of a fact that creates
 * must not depend on what its key named before.
 */
export function primaryView<State, Event extends Fact, Row extends State>(
  options: Pick<PrimaryView<State, Event, Row>, 'name' | 'version' | 'decider' | 'indexes' | 'rowOf' | 'sortKey' | 'serialise'> & {
    readonly handles: readonly Event['type'][];
    readonly idIn?: (data: Event['data']) => string;
  },
): PrimaryView<State, Event, Row> {
  const { decider, rowOf, idIn = null } = options;
  return {
    ...options,
    idIn,
    idsOf: ({ stream, meta, data }) => [idIn === null ? stream.slice(decider.category.length + meta.environment.length + 2) : idIn(data)],
    evolve: (row, { type, data, meta }) =>
      rowOf(decider.evolve(row ?? decider.initial, { type, data, at: new Date(meta.at).toISOString() } as Event & { readonly at: string })),
  };
}

/** Where the rows of a view are stored: a new version of the view, or of the fold whose states its rows are, is another table. */
export function tableOf<Row>(view: View<Row> & { readonly decider?: { readonly foldVersion: number } }): TableDefinition<Row> {
  const { name, version, indexes, sortKey, decider } = view;
  return { name: `${name}-v${version}${decider === undefined ? '' : `.${decider.foldVersion}`}`, indexes, sortKey, rebuildable: true };
}
