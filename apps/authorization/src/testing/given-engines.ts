import { setImmediate as nextTurn } from 'node:timers/promises';
import { EventStore, START, type Appended, type NewEvent, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf, type View } from '#libs/event-sourcing/src/views/view';
import { ViewFold } from '#libs/event-sourcing/src/views/view-fold';
import {
  type LogPlace,
  placeOf as placeInLog,
  ReadModels,
  Table,
  type PageRequest,
  type RowPage,
  type StoredRow,
  type TableDefinition,
  type Write,
} from '#libs/read-models/src/read-models';
import {
  absentPeopleView,
  endedDirectoriesView,
  endedUsersView,
  groupMembersView,
  groupsView,
  membershipsView,
  successorsView,
} from '../views/access.views.ts';
import { directoriesView, directoryGroupMembersView, directoryGroupsView } from '../views/directories.views.ts';
import { groupRoleAssignmentsView } from '../views/group-role-assignments.view.ts';
import { resourcesView } from '../views/resources.view.ts';
import { roleAssignmentsView } from '../views/role-assignments.view.ts';

/** What an index is loaded from. */
export const VIEWS = [
  resourcesView,
  membershipsView,
  groupsView,
  groupMembersView,
  endedUsersView,
  absentPeopleView,
  endedDirectoriesView,
  successorsView,
  roleAssignmentsView,
  groupRoleAssignmentsView,
  directoriesView,
  directoryGroupsView,
  directoryGroupMembersView,
] as unknown as readonly View<object>[];

/** A log in memory, as one replica meets it. A spec says how much of it is heard, and what happens while it is asked. */
export class GivenLog extends EventStore {
  readonly all: RecordedEvent[];
  /** How many records those hear who follow it. */
  heard = Infinity;
  /** How many come at once, at the most. */
  together = Infinity;
  /** From where on everything comes once more. */
  again: number | null = null;
  /** Before anything is answered. */
  meanwhile: (asked: 'read' | 'head' | 'subscribe') => Promise<void> | void = () => {};

  /** `other`: the same log, as another replica meets it. */
  constructor(other: GivenLog | null = null) {
    super();
    this.all = other?.all ?? [];
  }

  async read(stream: string, from = 1): Promise<readonly RecordedEvent[]> {
    await this.meanwhile('read');
    return this.all.filter((record) => record.stream === stream && record.version >= from);
  }

  async readBackwards(stream: string, count: number, from = Infinity): Promise<readonly RecordedEvent[]> {
    return (await this.read(stream))
      .filter(({ version }) => version <= from)
      .reverse()
      .slice(0, count);
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
      place = this.again ?? place;
      this.again = null;
      const batch = this.all.slice(place, Math.min(this.heard, place + this.together));
      place += batch.length;
      if (batch.length > 0) yield batch;
      else await nextTurn();
    }
  }
}

/** Rows in memory, which follow the log as far as a spec brings them. */
export class GivenRows extends ReadModels {
  /** How many rows are on a page, at the most. */
  most = Infinity;
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

  async drop(): Promise<void> {}

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

  awaited(): ReadYourWrites {
    return Object.assign(Object.create(ReadYourWrites.prototype) as ReadYourWrites, { waitForHead: () => this.follow() });
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

interface Given {
  readonly stored: StoredRow<never>;
  readonly isThere: boolean;
  /** By the names of indexes. */
  readonly keys: Readonly<Record<string, readonly string[]>>;
}

class GivenTable<Row> extends Table<Row> {
  /** By environment, each in the order of ids. */
  private readonly rows = new Map<string, Given[]>();
  private filledTo: Position = START;

  constructor(
    readonly definition: TableDefinition<Row>,
    private readonly given: GivenRows,
  ) {
    super();
  }

  async get(environment: string, id: string): Promise<StoredRow<Row> | null> {
    await this.given.meanwhile('get', this.definition.name);
    return this.stored(environment, id);
  }

  async getMany(environment: string, ids: readonly string[]): Promise<readonly (StoredRow<Row> | null)[]> {
    await this.given.meanwhile('get', this.definition.name);
    return ids.map((id) => this.stored(environment, id));
  }

  async page(environment: string, { where, limit, after = '' }: PageRequest): Promise<RowPage<Row>> {
    await this.given.meanwhile('page', this.definition.name);
    const all = this.rows.get(environment) ?? [];
    const most = Math.min(limit, this.given.most);
    const rows: StoredRow<Row>[] = [];
    for (let place = placeOf(all, after); place < all.length && rows.length <= most; place++) {
      const { stored, isThere, keys } = all[place]!;
      if (isThere && stored.id !== after && keys[where!.index]!.some((key) => where!.values.includes(key))) rows.push(stored);
    }
    return { rows: rows.slice(0, most), hasBefore: after !== '', hasAfter: rows.length > most };
  }

  async write(writes: readonly Write[], checkpoint?: string | LogPlace): Promise<void> {
    for (const { environment, id, position, revision, text } of writes) {
      await this.given.meanwhile('write', this.definition.name);
      const all = this.rows.get(environment) ?? [];
      this.rows.set(environment, all);
      const place = placeOf(all, id);
      const isKnown = all[place]?.stored.id === id;
      if (isKnown && all[place]!.stored.position >= position) continue;
      const keys = text === null ? [] : this.definition.indexes.map((index) => [index.name, index.keys(JSON.parse(text) as Row)] as const);
      all.splice(place, isKnown ? 1 : 0, {
        stored: { id, position, revision, text: text ?? '' },
        isThere: text !== null,
        keys: Object.fromEntries(keys),
      });
    }
    const position = checkpoint === undefined ? '' : placeInLog(checkpoint).position;
    if (position > this.filledTo) this.filledTo = position;
  }

  /** No row here is of a person. */
  async replace(): Promise<boolean> {
    return false;
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

  private stored(environment: string, id: string): StoredRow<Row> | null {
    const all = this.rows.get(environment) ?? [];
    const found = all[placeOf(all, id)];
    return found?.stored.id === id && found.isThere ? found.stored : null;
  }
}

/** Where an id stands, or would stand. */
function placeOf(rows: readonly Given[], id: string): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rows[middle]!.stored.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}
