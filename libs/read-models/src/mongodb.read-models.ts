import { createHash } from 'node:crypto';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import type { AnyBulkWriteOperation, Collection, Filter, UpdateFilter } from 'mongodb';
import { isDuplicate, isIndexMissing, isTooLarge, type MongodbStorage, WHILE_WAITED_FOR } from '#libs/platform/src/storage/mongodb-storage';
import {
  type DumpedRow,
  Fenced,
  type LogPlace,
  type PageRequest,
  placeOf,
  ReadModels,
  refuseTooLargeRows,
  type RowPage,
  RowTooLarge,
  type StoredRow,
  Table,
  type TableDefinition,
  type TableWrite,
  UnknownCursor,
  type Write,
} from './read-models.ts';

const ROWS = 'rows.';
const SEPARATOR = '\0';
/** Longer values are found by their beginning and a hash: an index entry is small. */
const LONGEST_VALUE = 500;
/** Rows that are written in one round trip; each has to be answered in time. */
const BULK = 1_000;
/** Rows that one query goes through while a table is dumped, and how many of them travel at a time. */
const DUMP_SLICE = 10_000;
const DUMP_BATCH = 500;
/** Values whose ranges MongoDB merges in one query. What more of them find it would sort in memory, all of it for each page. */
const MERGED_VALUES = 200;
const SHOWN = { 'row.position': 1, 'row.revision': 1, 'row.text': 1 } as const;

/** A row as it is stored. */
interface RowDocument {
  /** Environment and id. */
  readonly _id: string;
  /** Sort key and id; absent where the id alone orders the pages. Never changes. */
  readonly rank?: string;
  /** Everything that a write replaces, the position first: see `updateOf`. */
  readonly row: {
    readonly position: string;
    readonly turn: number;
    readonly revision: number;
    /** Null: deleted. */
    readonly text: string | null;
    /** Absent in a deleted row: no list has it. */
    readonly environment?: string;
    /** By the name of the index, each with its environment. */
    readonly keys: Readonly<Record<string, readonly string[]>>;
  };
}

/** `rank` is asked for only where pages are merged. */
type ShownRow = Pick<RowDocument, '_id' | 'rank'> & { readonly row: Pick<RowDocument['row'], 'position' | 'revision' | 'text'> };

/** What the rows of a list have in common, and the index that has them in the order of their places. */
interface ListQuery {
  readonly filter: Filter<RowDocument>;
  readonly hint: Readonly<Record<string, 1>>;
}

interface Query extends Partial<ListQuery> {
  readonly filter: Filter<RowDocument>;
  readonly limit: number;
  readonly sort?: Readonly<Record<string, 1 | -1>>;
  readonly projection?: Readonly<Record<string, 1>>;
}

interface CheckpointDocument {
  /** Name of the table. */
  readonly _id: string;
  readonly position: string;
  /** The latest token under which it was stored. */
  readonly fence: number;
  /** What was seen at a position: earlier releases store another one and leave this as it was. */
  readonly record?: { readonly position: string; readonly id: string } | null;
}

interface CheckpointUpdate {
  readonly filter: Filter<CheckpointDocument>;
  readonly update: UpdateFilter<CheckpointDocument>;
  readonly upsert: true;
}

/**
 * Tables in MongoDB: a collection each, and one for all checkpoints.
 *
 * - Every list is an index of (environment and value, place), and every page a range of it.
 * - Rows are stored before the checkpoint that covers them, so that a crash in between costs writing them again.
 */
export class MongodbReadModels extends ReadModels {
  private readonly tables = new Map<string, MongodbTable<never>>();
  private readonly checkpoints: Checkpoints;

  constructor(private readonly storage: MongodbStorage) {
    super();
    this.checkpoints = new Checkpoints(storage);
  }

  table<Row>(definition: TableDefinition<Row>): MongodbTable<Row> {
    const known = this.tables.get(definition.name) as MongodbTable<Row> | undefined;
    if (known) return known;
    const table = new MongodbTable(definition, this.storage, this.checkpoints);
    this.tables.set(definition.name, table);
    return table;
  }

  /** A bulk for each collection, then one of checkpoints for those whose rows are there. */
  override async writeAll(given: readonly TableWrite[]): Promise<readonly PromiseSettledResult<void>[]> {
    const outcomes = await Promise.allSettled(given.map(({ table, writes }) => table.write(writes)));
    const updates = given.flatMap(({ table, checkpoint, fence }, index) =>
      outcomes[index]!.status === 'rejected' || checkpoint === undefined ? [] : [{ index, table: table.definition.name, ...placeOf(checkpoint), fence }],
    );
    const stored = await this.checkpoints.putAll(updates);
    for (const [place, { index }] of updates.entries()) outcomes[index] = stored[place]!;
    return outcomes;
  }

  async drop(table: string, fence?: number): Promise<void> {
    this.tables.delete(table);
    // First the checkpoint: rows without one are filled again, a checkpoint without its rows would leave them out.
    await (fence === undefined ? this.checkpoints.remove(table) : this.checkpoints.put(table, '', fence));
    const collection = collectionOf(table);
    if ((await this.storage.collectionNames()).includes(collection)) await this.storage.drop(collection);
    // Whoever has taken it since may have lost rows with it.
    if (fence !== undefined) await this.checkpoints.put(table, '', fence);
  }
}

interface Checkpoint extends LogPlace {
  readonly table: string;
  readonly fence: number | undefined;
}

/** How far every table is filled, and under which lease. */
class Checkpoints {
  private gathered: { readonly tables: Set<string>; readonly positions: Promise<ReadonlyMap<string, string>> } | null = null;

  constructor(private readonly storage: MongodbStorage) {}

  /** Those that are asked for in one event turn come by one query. */
  async get(table: string): Promise<string> {
    this.gathered ??= this.gather();
    const { tables, positions } = this.gathered;
    tables.add(table);
    return (await positions).get(table) ?? '';
  }

  async recordAt(table: string, position: string): Promise<string | null> {
    const found = await this.storage.answer((inSession) => this.stored.findOne({ _id: table, position }, { ...inSession, ...WHILE_WAITED_FOR }));
    return found?.record?.position === position ? found.record.id : null;
  }

  /** @throws Fenced */
  async put(table: string, checkpoint: string | LogPlace, fence: number | undefined): Promise<void> {
    const update = checkpointUpdate({ table, ...placeOf(checkpoint), fence });
    // At the first failure it may be that another was faster to store the very first one.
    if (!(await this.store([update])) && !(await this.store([update]))) throw new Fenced(table, fence ?? 0);
  }

  /** Each as `put` does. */
  async putAll(given: readonly Checkpoint[]): Promise<readonly PromiseSettledResult<void>[]> {
    if (given.length === 0) return [];
    try {
      if (await this.store(given.map(checkpointUpdate))) return given.map(() => ({ status: 'fulfilled', value: undefined }));
    } catch (reason) {
      return given.map(() => ({ status: 'rejected', reason }));
    }
    // One of several that could not be stored says nothing of the others.
    return Promise.allSettled(given.map(({ table, fence, ...place }) => this.put(table, place, fence)));
  }

  private gather(): NonNullable<Checkpoints['gathered']> {
    const tables = new Set<string>();
    const positions = endOfTurn().then(async () => {
      this.gathered = null;
      const ids = [...tables];
      const found = await this.storage.answer((inSession) =>
        this.stored.find({ _id: ids.length === 1 ? ids[0]! : { $in: ids } }, { limit: ids.length, ...inSession, ...WHILE_WAITED_FOR }).toArray(),
      );
      return new Map(found.map(({ _id, position }) => [_id, position]));
    });
    return { tables, positions };
  }

  private async store(updates: readonly CheckpointUpdate[]): Promise<boolean> {
    try {
      await this.storage.answer((inSession) =>
        this.stored.bulkWrite(
          updates.map((updateOne) => ({ updateOne })),
          { ordered: false, ...inSession },
        ),
      );
      return true;
    } catch (error) {
      // There is one that the filter passes over.
      if (isDuplicate(error)) return false;
      throw error;
    }
  }

  async remove(table: string): Promise<void> {
    await this.storage.answer((inSession) => this.stored.deleteOne({ _id: table }, inSession));
  }

  private get stored(): Collection<CheckpointDocument> {
    return this.storage.collection('checkpoints');
  }
}

function checkpointUpdate({ table, position, record: id, fence }: Checkpoint): CheckpointUpdate {
  const place = { position, record: id === null ? null : { position, id } };
  if (fence === undefined) return { filter: { _id: table }, update: { $set: place, $setOnInsert: { fence: 0 } }, upsert: true };
  return { filter: { _id: table, fence: { $lte: fence } }, update: { $set: { ...place, fence } }, upsert: true };
}

/** MongoDB's side of one table. */
export class MongodbTable<Row> extends Table<Row> {
  /** Rows read from MongoDB, for tests that hold queries to their limit. */
  rowsRead = 0;
  private readonly collection: string;
  /** What orders the pages. */
  private readonly place: '_id' | 'rank';
  private preparing: Promise<unknown> | null = null;
  private gathered: Gathered | null = null;

  constructor(
    readonly definition: TableDefinition<Row>,
    private readonly storage: MongodbStorage,
    private readonly checkpoints: Checkpoints,
  ) {
    super();
    this.collection = collectionOf(definition.name);
    this.place = definition.sortKey ? 'rank' : '_id';
  }

  async get(environment: string, id: string): Promise<StoredRow<Row> | null> {
    this.gathered ??= this.gather();
    const { keys, rows } = this.gathered;
    const _id = key(environment, id);
    keys.add(_id);
    return (await rows).get(_id) ?? null;
  }

  async getMany(environment: string, ids: readonly string[]): Promise<readonly (StoredRow<Row> | null)[]> {
    if (ids.length === 0) return [];
    const keys = ids.map((id) => key(environment, id));
    const rows = await this.fetch(new Set(keys));
    return keys.map((_id) => rows.get(_id) ?? null);
  }

  override get mayShowOlder(): boolean {
    return true;
  }

  override async isAsLateAs(environment: string, id: string, position: string): Promise<boolean> {
    const [held] = await this.shown({ filter: { _id: key(environment, id) }, limit: 1 });
    return held !== undefined && held.row.position >= position;
  }

  async page(environment: string, { where, order, limit, after, before, from, to }: PageRequest): Promise<RowPage<Row>> {
    await this.prepared();
    const lists = this.listsOf(environment, where);
    const bounds = this.boundsOf(environment, from, to);
    // Backwards from a cursor, the rows next to it come first.
    const ascending = (order === 'asc') === (before === undefined);
    const scan = (range: readonly Range[]): Promise<readonly ShownRow[]> => this.scan(lists, [...bounds, ...range], ascending, limit + 1);
    const cursor = after ?? before;
    if (cursor === undefined) {
      const found = await scan([]);
      return { rows: rowsOf(found.slice(0, limit)), hasBefore: false, hasAfter: found.length > limit };
    }
    const known = this.placeOf(environment, cursor);
    // Where the id is the place, nothing waits to learn whether there is such a row.
    const place = this.place === '_id' ? key(environment, cursor) : await known;
    const unknown = new UnknownCursor(after === undefined ? 'before' : 'after');
    if (place === null) throw unknown;
    const [held, found, precedes] = await Promise.all([
      known,
      scan([ascending ? { $gt: place } : { $lt: place }]),
      this.hasAny(lists, [...bounds, ascending ? { $lte: place } : { $gte: place }], !ascending),
    ]);
    if (held === null) throw unknown;
    const rows = rowsOf(found.slice(0, limit));
    const further = found.length > limit;
    return before === undefined ? { rows, hasBefore: precedes, hasAfter: further } : { rows: rows.reverse(), hasBefore: further, hasAfter: precedes };
  }

  async write(writes: readonly Write[], checkpoint?: string | LogPlace, fence?: number): Promise<void> {
    refuseTooLargeRows(this.definition.name, writes);
    if (writes.length > 0) await this.prepared();
    for (let start = 0; start < writes.length; start += BULK) await this.storeAtOnce(writes.slice(start, start + BULK));
    if (checkpoint !== undefined) await this.checkpoints.put(this.definition.name, checkpoint, fence);
  }

  async replace(environment: string, { id, text: seen, position, revision }: StoredRow, text: string, at: string): Promise<boolean> {
    refuseTooLargeRows(this.definition.name, [{ environment, id, position, revision, text }]);
    const row: RowDocument['row'] = {
      position: position > at ? position : at,
      // A write of the same position may still be on its way.
      turn: Number.MAX_SAFE_INTEGER,
      revision,
      text,
      environment,
      keys: this.keysOf(environment, JSON.parse(text) as Row),
    };
    const asSeen = { _id: key(environment, id), 'row.position': position, 'row.text': seen };
    return (await this.storage.answer((inSession) => this.rows.updateOne(asSeen, { $set: { row } }, inSession))).matchedCount > 0;
  }

  checkpoint(): Promise<string> {
    return this.checkpoints.get(this.definition.name);
  }

  override recordAt(position: string): Promise<string | null> {
    return this.checkpoints.recordAt(this.definition.name, position);
  }

  override async prepare(): Promise<void> {
    this.preparing = null;
    await this.prepared();
  }

  async clear(fence?: number): Promise<void> {
    // First the checkpoint: whatever happens from here on, the table is filled anew.
    await this.checkpoints.put(this.definition.name, '', fence);
    // From the last one on: MongoDB goes through what was just removed as if it were there.
    let last = '';
    for (let removed = DUMP_SLICE; removed === DUMP_SLICE;) {
      const behind = { _id: { $gt: last } };
      const slice = await this.storage.answer((inSession) =>
        this.rows
          .find(behind, { sort: { _id: 1 }, projection: { _id: 1 }, limit: DUMP_SLICE, batchSize: DUMP_SLICE, ...inSession, ...WHILE_WAITED_FOR })
          .toArray(),
      );
      removed = slice.length;
      last = slice.at(-1)?._id ?? last;
      await this.remove(slice.map(({ _id }) => _id));
    }
    await this.prepare();
  }

  purge(environment: string, ids: readonly string[]): Promise<void> {
    return this.remove(ids.map((id) => key(environment, id)));
  }

  async *dump(): AsyncIterable<DumpedRow> {
    let last = '';
    for (let count = DUMP_SLICE; count === DUMP_SLICE;) {
      count = 0;
      const behind = { _id: { $gt: last } };
      const slice = this.storage.answers((inSession) =>
        this.rows.find<ShownRow>(behind, { sort: { _id: 1 }, limit: DUMP_SLICE, batchSize: DUMP_BATCH, projection: SHOWN, ...inSession }),
      );
      for await (const { _id, row } of slice) {
        const { position, revision, text } = row;
        yield { environment: _id.slice(0, _id.indexOf(SEPARATOR)), id: idOf(_id), position, revision, text };
        last = _id;
        count++;
      }
    }
  }

  private get rows(): Collection<RowDocument> {
    return this.storage.collection(this.collection);
  }

  /** Rows that are asked for in one event turn come by one query, since each query costs this process more than ten rows do. */
  private gather(): Gathered {
    const keys = new Set<string>();
    const rows = endOfTurn().then(() => {
      this.gathered = null;
      return this.fetch(keys);
    });
    return { keys, rows };
  }

  private async fetch(keys: ReadonlySet<string>): Promise<ReadonlyMap<string, StoredRow>> {
    const rows = new Map<string, StoredRow>();
    const filter = { _id: keys.size === 1 ? [...keys][0]! : { $in: [...keys] } };
    for (const document of await this.shown({ filter, limit: keys.size })) {
      const row = storedRow(document);
      if (row !== null) rows.set(document._id, row);
    }
    return rows;
  }

  private async remove(keys: readonly string[]): Promise<void> {
    for (let start = 0; start < keys.length; start += BULK)
      await this.storage.answer((inSession) => this.rows.deleteMany({ _id: { $in: keys.slice(start, start + BULK) } }, inSession));
  }

  private async storeAtOnce(writes: readonly Write[]): Promise<void> {
    try {
      await this.store(writes.map((write) => this.updateOf(write)));
    } catch (error) {
      if (!isTooLarge(error)) throw error;
      // Neither the driver nor the server says which: with its index keys it is more than its text.
      const longest = writes.reduce((one, other) => ((other.text?.length ?? 0) > (one.text?.length ?? 0) ? other : one));
      throw new RowTooLarge(this.definition.name, longest.id, error);
    }
  }

  private async store(updates: readonly RowUpdate[]): Promise<void> {
    const [first] = updates;
    const attempt = (): Promise<unknown> =>
      this.storage.answer<unknown>((inSession) =>
        updates.length === 1 && first
          ? this.rows.updateOne(first.filter, first.update, { upsert: true, ...inSession })
          : this.rows.bulkWrite(
              updates.map((update): AnyBulkWriteOperation<RowDocument> => ({ updateOne: { ...update, upsert: true } })),
              { ordered: false, ...inSession },
            ),
      );
    try {
      await attempt();
    } catch (error) {
      // Two stored a row for the first time, and this may be the later one: now that it is there, positions decide.
      if (!isDuplicate(error)) throw error;
      await attempt();
    }
  }

  /**
   * The whole row is replaced, where it is greater than the stored one: MongoDB compares field by field, and the position stands first. The turn that follows
   * it makes the earlier of two writes of one position the greater. That way the id alone finds the row, and nothing is read before it is written. Without a
   * guard nothing is compared.
   */
  private updateOf({ environment, id, position, revision, text, row }: Write): RowUpdate {
    const filter = { _id: key(environment, id) };
    const versioned = { position, turn: nextTurn(), revision, text };
    const { sortKey, guard } = this.definition;
    const put = (stored: RowDocument['row'], place?: string) =>
      guard === 'none'
        ? { $set: { row: stored, ...(place !== undefined && { rank: place }) } }
        : { $max: { row: stored }, ...(place !== undefined && { $set: { rank: place } }) };
    if (text === null) {
      // The place of a row outlives it; one that never was takes any.
      const update = put({ ...versioned, keys: {} });
      return { filter, update: sortKey ? { ...update, $setOnInsert: { rank: id } } : update };
    }
    const parsed = (row ?? JSON.parse(text)) as Row;
    const stored = { ...versioned, environment, keys: this.keysOf(environment, parsed) };
    return { filter, update: put(stored, sortKey && plain(sortKey(parsed)) + SEPARATOR + id) };
  }

  private keysOf(environment: string, row: Row): RowDocument['row']['keys'] {
    const keys: Record<string, readonly string[]> = {};
    for (const index of this.definition.indexes) {
      const values = index.keys(row);
      if (values.length > 0) keys[index.name] = [...new Set(values)].map((value) => key(environment, short(value)));
    }
    return keys;
  }

  /** Every row of the list is in one of these, and may be in several. */
  private listsOf(environment: string, where: PageRequest['where']): readonly ListQuery[] {
    const list = (field: string, value: string | { readonly $in: readonly string[] }): ListQuery => ({ filter: { [field]: value }, hint: this.indexOf(field) });
    if (where === undefined) return [list('row.environment', environment)];
    if (!this.definition.indexes.some(({ name }) => name === where.index)) throw new Error(`The table ${this.definition.name} has no index '${where.index}'.`);
    const values = [...new Set(where.values)].map((value) => key(environment, short(value)));
    const lists: ListQuery[] = [];
    for (let start = 0; start < values.length; start += MERGED_VALUES) {
      const some = values.slice(start, start + MERGED_VALUES);
      lists.push(list(`row.keys.${where.index}`, some.length === 1 ? some[0]! : { $in: some }));
    }
    return lists;
  }

  /** The index of a list. */
  private indexOf(field: string): Readonly<Record<string, 1>> {
    return { [field]: 1, [this.place]: 1 };
  }

  /** The first rows of all lists, each once, in the order of their places. Never more than two pages of them are held. */
  private async scan(lists: readonly ListQuery[], ranges: readonly Range[], ascending: boolean, limit: number): Promise<readonly ShownRow[]> {
    const isOne = lists.length === 1;
    let found: readonly ShownRow[] = [];
    for (const { filter, hint } of lists) {
      // What lies behind a page that is full already is on none.
      const last = found.length < limit ? null : this.placeIn(found.at(-1)!);
      const within = last === null ? ranges : [...ranges, ascending ? { $lt: last } : { $gt: last }];
      const rows = await this.shown({
        filter: { ...filter, ...this.inRanges(within) },
        hint,
        limit,
        sort: { [this.place]: ascending ? 1 : -1 },
        projection: isOne ? SHOWN : { ...SHOWN, [this.place]: 1 },
      });
      found = isOne ? rows : this.merged(found, rows, ascending).slice(0, limit);
    }
    return found;
  }

  private async hasAny(lists: readonly ListQuery[], ranges: readonly Range[], ascending: boolean): Promise<boolean> {
    for (const list of lists) if ((await this.scan([list], ranges, ascending, 1)).length > 0) return true;
    return false;
  }

  /** Two lists that are in order, as one that is; what is in both is in it once. */
  private merged(some: readonly ShownRow[], others: readonly ShownRow[], ascending: boolean): readonly ShownRow[] {
    const merged: ShownRow[] = [];
    for (let [left, right] = [0, 0]; left < some.length || right < others.length;) {
      const [one, other] = [some[left], others[right]];
      const order = one === undefined ? 1 : other === undefined ? -1 : compareAsStored(this.placeIn(one), this.placeIn(other)) * (ascending ? 1 : -1);
      merged.push((order <= 0 ? one : other)!);
      if (order <= 0) left++;
      if (order >= 0) right++;
    }
    return merged;
  }

  private placeIn(row: ShownRow): string {
    return row[this.place]!;
  }

  private boundsOf(environment: string, from: string | undefined, to: string | undefined): readonly Range[] {
    const lowest = (text: string): string => (this.place === 'rank' ? plain(text) : key(environment, text));
    const behind = this.place === 'rank' ? '\x01' : '\0';
    return [...(from === undefined ? [] : [{ $gte: lowest(from) }]), ...(to === undefined ? [] : [{ $lt: lowest(to) + behind }])];
  }

  private inRanges(ranges: readonly Range[]): Filter<RowDocument> {
    return ranges.length === 0 ? {} : { $and: ranges.map((range) => ({ [this.place]: range })) };
  }

  /** Where a row stands that is there, or was; null where none ever was. */
  private async placeOf(environment: string, id: string): Promise<string | null> {
    this.rowsRead++;
    const _id = key(environment, id);
    const found = await this.storage.answer((inSession) => this.rows.findOne({ _id }, { projection: { [this.place]: 1 }, ...inSession, ...WHILE_WAITED_FOR }));
    return found === null ? null : (found[this.place] ?? null);
  }

  private async shown({ filter, limit, hint, sort, projection = SHOWN }: Query): Promise<readonly ShownRow[]> {
    const ask = (): Promise<readonly ShownRow[]> =>
      this.storage.answer((inSession) =>
        this.rows.find<ShownRow>(filter, { hint, sort, limit, batchSize: limit, projection, ...inSession, ...WHILE_WAITED_FOR }).toArray(),
      );
    const found = await ask().catch(async (error: unknown) => {
      if (!isIndexMissing(error)) throw error;
      // The table was dropped or restored since this process made its indexes.
      await this.prepare();
      return ask();
    });
    this.rowsRead += found.length;
    return found;
  }

  /** The declared indexes, made before the first page and the first row. Replicas that make them at once make the same. */
  private prepared(): Promise<unknown> {
    if (this.preparing !== null) return this.preparing;
    const fields = ['row.environment', ...this.definition.indexes.map(({ name }) => `row.keys.${name}`)];
    const preparing = this.storage
      .answer((inSession) =>
        this.rows.createIndexes(
          fields.map((field) => ({ name: field, key: this.indexOf(field) })),
          inSession,
        ),
      )
      .catch((error: unknown) => {
        if (this.preparing === preparing) this.preparing = null;
        throw error;
      });
    return (this.preparing = preparing);
  }
}

/** The rows that are asked for in this event turn. */
interface Gathered {
  readonly keys: Set<string>;
  readonly rows: Promise<ReadonlyMap<string, StoredRow>>;
}

interface RowUpdate {
  readonly filter: { readonly _id: string };
  readonly update: object;
}

/** A bound on the place of a row. */
type Range = { readonly $gt: string } | { readonly $gte: string } | { readonly $lt: string } | { readonly $lte: string };

function collectionOf(table: string): string {
  return ROWS + encodeURIComponent(table);
}

/** What belongs to an environment: ids of rows, values of indexes. */
function key(environment: string, text: string): string {
  return environment + SEPARATOR + text;
}

/** MongoDB compares texts by their bytes, where JavaScript has characters beyond the first plane before some of it. */
function compareAsStored(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function idOf(_id: string): string {
  return _id.slice(_id.indexOf(SEPARATOR) + 1);
}

function storedRow({ _id, row: { text, position, revision } }: ShownRow): StoredRow | null {
  return text === null ? null : { id: idOf(_id), text, position, revision };
}

function rowsOf(found: readonly ShownRow[]): StoredRow[] {
  return found.map(storedRow).filter((row) => row !== null);
}

function short(value: string): string {
  return value.length <= LONGEST_VALUE ? value : value.slice(0, LONGEST_VALUE) + createHash('sha256').update(value).digest('base64');
}

/** Without the character that separates the sort key from the id, in the same order. */
function plain(sortKey: string): string {
  return sortKey.replaceAll('\x01', '\x01\x02').replaceAll(SEPARATOR, '\x01\x01');
}

let lastTurn = 0;

/** Smaller than every one before it, by the clock of this process, so that the first write of a position stays. */
function nextTurn(): number {
  lastTurn = Math.max(lastTurn + 1, Date.now() * 1_024);
  return -lastTurn;
}
