import { setImmediate as nextTurn } from 'node:timers/promises';
import { AwaitedViews } from '#libs/event-sourcing/src/awaited-views';
import { EventStore, START, type Appended, type NewEvent, type Position, type RecordedEvent } from '#libs/event-sourcing/src/event-store';
import { ViewFold } from '#libs/event-sourcing/src/view-fold';
import { tableOf, type View } from '#libs/event-sourcing/src/view';
import { ReadModels, Table, type PageRequest, type RowPage, type StoredRow, type TableDefinition, type Write } from '#libs/read-models/src/read-models';
import { groupRoleAssignmentsView } from '../assignments/group-role-assignments.view.ts';
import { roleAssignmentsView } from '../assignments/role-assignments.view.ts';
import { resourcesView } from '../resources/resources.view.ts';
import { endedUsersView, groupMembersView, groupsView, membershipsView } from './access.views.ts';

/** What an index is loaded from. */
export const VIEWS = [
  resourcesView,
  membershipsView,
  groupsView,
  groupMembersView,
  endedUsersView,
  roleAssignmentsView,
  groupRoleAssignmentsView,
] as unknown as readonly View<object>[];

/** A log in memory. A spec says how much of it is heard, and what happens while it is asked. */
export class GivenLog extends EventStore {
  all: RecordedEvent[] = [];
  /** How many records those hear who follow it. */
  heard = Infinity;
  /** How many come at once, at the most. */
  together = Infinity;
  /** Before anything is answered. */
  meanwhile: (asked: 'read' | 'head' | 'subscribe') => Promise<void> | void = () => {};

  async read(stream: string, from = 1): Promise<readonly RecordedEvent[]> {
    await this.meanwhile('read');
    return this.all.filter((record) => record.stream === stream && record.version >= from);
  }

  async last(stream: string): Promise<RecordedEvent | null> {
    return (await this.read(stream)).at(-1) ?? null;
  }

  async append(stream: string, expected: number, told: readonly NewEvent[]): Promise<Appended> {
    for (const [place, event] of told.entries())
      this.all.push({ ...event, stream, version: expected + place + 1, position: String(this.all.length + 1).padStart(16, '0') });
    return { version: expected + told.length, position: this.all.at(-1)!.position };
  }

  async head(): Promise<Position> {
    await this.meanwhile('head');
    return this.all.at(-1)?.position ?? START;
  }

  async *subscribe(after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
    for (let place = Number(after); !signal.aborted;) {
      await this.meanwhile('subscribe');
      const batch = this.all.slice(place, Math.min(this.heard, place + this.together));
      place += batch.length;
      if (batch.length > 0) yield batch;
      else await nextTurn();
    }
  }
}

/** Rows in memory, which follow the log as far as a spec brings them. */
export class GivenRows extends ReadModels {
  /** Before anything is answered. */
  meanwhile: (asked: 'get' | 'page' | 'write' | 'checkpoint', view: string) => Promise<void> | void = () => {};
  private readonly tables = new Map<string, GivenTable<never>>();
  private readonly places = new Map<View<object>, number>();

  constructor(private readonly log: GivenLog) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): GivenTable<Row> {
    const known = this.tables.get(definition.name) ?? new GivenTable(definition, this);
    this.tables.set(definition.name, known);
    return known as unknown as GivenTable<Row>;
  }

  async dropOthers(): Promise<void> {}

  /** Brings views along the log, up to so many records; their checkpoints too, unless they break off before that. */
  async follow(views: readonly View<object>[] = VIEWS, upTo = this.log.all.length, breaksOff = false): Promise<void> {
    for (const view of views) {
      const batch = this.log.all.slice(this.places.get(view) ?? 0, upTo);
      if (batch.length === 0) continue;
      const table = this.table(tableOf(view));
      const fold = new ViewFold(view, table);
      if (breaksOff) for (const event of batch.filter((each) => fold.concerns(each))) await table.write(await this.folded(view, event), undefined);
      else {
        await fold.apply(batch);
        this.places.set(view, Math.max(upTo, this.places.get(view) ?? 0));
      }
    }
  }

  /** Writes the rows that events touch, as those who recorded them do. */
  async writeAtOnce(views: readonly View<object>[], told: readonly RecordedEvent[]): Promise<void> {
    for (const view of views)
      for (const event of told.filter(({ type }) => view.handles.includes(type)))
        await this.table(tableOf(view)).write(await this.folded(view, event), undefined);
  }

  /** The views whose rows a command writes itself. */
  static readonly PRIMARY = [resourcesView, roleAssignmentsView, groupRoleAssignmentsView] as unknown as readonly View<object>[];

  awaited(): AwaitedViews {
    return Object.assign(Object.create(AwaitedViews.prototype) as AwaitedViews, { headReached: () => this.follow() });
  }

  private async folded(view: View<object>, last: RecordedEvent): Promise<Write[]> {
    const { environment } = last.meta;
    return view.idsOf(last).map((id) => {
      const events = this.log.all.filter(
        (event) =>
          event.position <= last.position && view.handles.includes(event.type) && event.meta.environment === environment && view.idsOf(event).includes(id),
      );
      const row = events.reduce<object | null>((before, event) => view.evolve(before, event, id), null);
      const text = row === null ? null : (view.serialise?.(row) ?? JSON.stringify(row));
      return { environment, id, position: last.position, revision: last.version, text, row };
    });
  }
}

class GivenTable<Row> extends Table<Row> {
  private rows = new Map<string, Map<string, { readonly stored: StoredRow; readonly isThere: boolean }>>();
  private filledTo: Position = START;

  constructor(
    readonly definition: TableDefinition<Row>,
    private readonly given: GivenRows,
  ) {
    super();
  }

  async get(environment: string, id: string): Promise<StoredRow | null> {
    await this.given.meanwhile('get', this.definition.name);
    return this.stored(environment, id);
  }

  async getMany(environment: string, ids: readonly string[]): Promise<readonly (StoredRow | null)[]> {
    await this.given.meanwhile('get', this.definition.name);
    return ids.map((id) => this.stored(environment, id));
  }

  async page(environment: string, { where, limit, after = '' }: PageRequest): Promise<RowPage> {
    await this.given.meanwhile('page', this.definition.name);
    const index = this.definition.indexes.find(({ name }) => name === where!.index)!;
    const rows = [...(this.rows.get(environment)?.values() ?? [])]
      .filter(({ stored, isThere }) => isThere && stored.id > after)
      .filter(({ stored }) => index.keys(JSON.parse(stored.text) as Row).some((key) => where!.values.includes(key)))
      .map(({ stored }) => stored)
      .sort((one, other) => (one.id < other.id ? -1 : 1));
    return { rows: rows.slice(0, limit), hasBefore: after !== '', hasAfter: rows.length > limit };
  }

  async write(writes: readonly Write[], checkpoint?: string): Promise<void> {
    for (const { environment, id, position, revision, text } of writes) {
      await this.given.meanwhile('write', this.definition.name);
      const rows = this.rows.get(environment) ?? new Map<string, { readonly stored: StoredRow; readonly isThere: boolean }>();
      this.rows.set(environment, rows);
      if ((rows.get(id)?.stored.position ?? START) < position) rows.set(id, { stored: { id, position, revision, text: text ?? '' }, isThere: text !== null });
    }
    if (checkpoint !== undefined && checkpoint > this.filledTo) this.filledTo = checkpoint;
  }

  async checkpoint(): Promise<string> {
    await this.given.meanwhile('checkpoint', this.definition.name);
    return this.filledTo;
  }

  async clear(): Promise<void> {
    this.rows.clear();
    this.filledTo = START;
  }

  async purge(): Promise<void> {}

  async *dump(): AsyncIterable<never> {}

  private stored(environment: string, id: string): StoredRow | null {
    const found = this.rows.get(environment)?.get(id);
    return found?.isThere === true ? found.stored : null;
  }
}
