import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Arena } from '#libs/platform/src/storage/arena';
import type { LmdbEnvironment, Tree } from '#libs/platform/src/storage/lmdb-environment';
import { bytesAsText, byteText, byteTextKeys, NUMBER_BYTES, readNumber, textOfBytes, writeNumber } from '#libs/platform/src/storage/lmdb-keys';
import type { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LastIds } from './last-ids.ts';
import { Postings, type Window } from './lmdb-postings.ts';
import { ALL_ROWS, BETWEEN_LISTS, listsIn, Memtable, type MemoryRow, type StoredLists } from './memtable.ts';
import {
  type DumpedRow,
  Fenced,
  type LogPlace,
  type IdPage,
  type IdPageRequest,
  type PageRequest,
  placeOf,
  ReadModels,
  refuseTooLargeRows,
  type RowPage,
  type StoredRow,
  Table,
  type TableDefinition,
  UnknownCursor,
  type Write,
} from './read-models.ts';

/** How long the rows that the log can refill are in memory only. */
const SAVE_EVERY_MS = 100;
/** When rows in memory are brought into their lists: the more at once, the more of them share a page or a chunk. */
const COMPACT_EVERY_MS = 5_000;
const COMPACT_ROWS = 8_000;
/** How long bringing rows into lists may hold up everything else. */
const SLICE_MS = 3;
/** Looking at the clock costs as much as a step. */
const STEPS_PER_LOOK = 16;
const ENVIRONMENT_BYTES = 3;
/** Longer values are found by their beginning and a hash; LMDB's keys end at 1,978 bytes. */
const LONGEST_VALUE = 500;
const DUMP_SLICE = 500;
/** Lists whose ranks are held at a time while a page of many is put together. */
const MERGED_LISTS = 200;
const NOWHERE: StoredLists = { lists: '', rank: '', isSure: true };
/** UTF-8 has none of these bytes. */
const HIGHEST_RANK = '\xff';
const BETWEEN_ROWS = '\xfe';
const BETWEEN_FIELDS = '\xfd';

/**
 * Tables in LMDB, behind a table in memory that takes the writes.
 *
 * A row has a dozen or more index entries (one per prefix of each word for `search`). Measured on two cores with 300,000 rows and 17 entries a row: putting
 * each entry by itself, 8,000 rows/s cost 93 % of a core and 7.5 ms a commit, nearly all of it for copying pages that are touched once. This way it is 27 %, a
 * little over half of it on the main thread:
 *
 * - A write is visible at once, from memory (`Memtable`).
 * - Every 100 ms rows and checkpoint are saved, together with a note of the lists that the rows belong to (a run). After a crash the runs are read back.
 * - What a row says is encoded when it is written, beside the heap, and read from its tree once that is committed: as text, held until the row was brought into
 *   its lists, it was copied twice by the collector of garbage.
 * - Every few seconds the rows are brought into their lists (`Postings`), all of a list at once, in slices of 3 ms; then their runs go.
 * - A table without any lists is saved and no more: its rows leave memory with the commit.
 *
 * Tables that the log can refill lie in an environment of their own that is never flushed; what a crash takes of them it takes together with the checkpoint,
 * and the projector writes it again. Tables that nothing can refill lie in the log's environment, and are saved before a write resolves.
 */
export class LmdbReadModels extends ReadModels {
  private readonly tables = new Map<string, LmdbTable<never>>();
  private readonly stores: Readonly<Record<'refillable' | 'kept', Store>>;

  constructor(private readonly storage: LmdbStorage) {
    super();
    this.stores = { refillable: new Store(storage.views), kept: new Store(storage.log) };
    storage.beforeClose(async () => {
      for (const table of this.tables.values()) await table.settle();
    });
  }

  table<Row>(definition: TableDefinition<Row>): LmdbTable<Row> {
    const known = this.tables.get(definition.name) as LmdbTable<Row> | undefined;
    if (known) return known;
    const table = new LmdbTable(definition, definition.rebuildable ? this.stores.refillable : this.stores.kept, this.storage);
    this.tables.set(definition.name, table);
    return table;
  }

  async drop(table: string): Promise<void> {
    // What it still had to write would go to trees that are gone, and count as a failure of the disk.
    await this.tables.get(table)?.clear();
    this.tables.delete(table);
    for (const store of Object.values(this.stores)) {
      if (!store.has(table)) continue;
      // Nobody forgot in them what was erased.
      if (store === this.stores.refillable) this.storage.owesCompaction();
      await store.drop(table);
    }
  }

  /** What a process before this one left behind. */
  async dropWhere(isLeft: (table: string) => boolean): Promise<void> {
    for (const table of this.stores.refillable.tableNames().filter(isLeft)) await this.drop(table);
  }
}

/** One LMDB environment: which tables are in it, and the numbers that stand for environments in its keys. */
class Store {
  readonly arena = new Arena();
  private readonly tables: Tree;
  private readonly environments: Tree;
  private readonly prefixes = new Map<string, string>();
  private lastRun = Date.now() * 64;

  constructor(readonly lmdb: LmdbEnvironment) {
    this.tables = lmdb.db('tables', byteTextKeys);
    this.environments = lmdb.db('environments', byteTextKeys);
    for (const { key, value } of this.environments.getRange({ start: '\0', end: HIGHEST_RANK })) this.prefixes.set(textOfBytes(key), value.toString('latin1'));
  }

  environmentNames(): string[] {
    return [...this.prefixes.keys()].sort();
  }

  prefixOf(environment: string): string {
    const known = this.prefixes.get(environment);
    if (known !== undefined) return known;
    const number = Buffer.alloc(ENVIRONMENT_BYTES);
    number.writeUIntBE(this.prefixes.size + 1, 0, ENVIRONMENT_BYTES);
    const prefix = number.toString('latin1');
    this.prefixes.set(environment, prefix);
    this.environments.put(byteText(environment), number);
    return prefix;
  }

  /** A key behind those of all earlier runs. */
  nextRun(): string {
    const bytes = Buffer.allocUnsafe(NUMBER_BYTES);
    writeNumber(++this.lastRun, bytes, 0);
    return bytes.toString('latin1');
  }

  has(table: string): boolean {
    return this.tables.get(byteText(table)) !== undefined;
  }

  tableNames(): string[] {
    return [...this.tables.getKeys({ start: '\0', end: HIGHEST_RANK })].map(textOfBytes);
  }

  /** The position is '' for a table that was never filled. */
  checkpointOf(table: string): Checkpoint {
    const [position = '', fence = '0', record = ''] = this.tables.get(byteText(table))?.toString().split('\0') ?? [];
    return { position, fence: Number(fence), record: record === '' ? null : record };
  }

  /** Earlier releases look at the first two parts, and leave out the third. */
  putCheckpoint(table: string, { position, fence, record }: Checkpoint): void {
    this.tables.put(byteText(table), this.arena.text(0, record === null ? `${position}\0${fence}` : `${position}\0${fence}\0${record}`));
  }

  open(table: string): Trees {
    const texts = (name: string): Tree<string, string> => this.lmdb.db(`${table}/${name}`, byteTextKeys, bytesAsText);
    return { rows: this.lmdb.db(`${table}/rows`, byteTextKeys, decode), tombstones: texts('tombstones'), lists: texts('lists'), runs: texts('runs') };
  }

  async drop(table: string): Promise<void> {
    for (const tree of treesOf(this.open(table))) tree.drop();
    this.tables.remove(byteText(table));
    await this.lmdb.committed();
  }
}

/** How far a table is filled, and the latest token under which that was stored. */
interface Checkpoint extends LogPlace {
  readonly fence: number;
}

interface Trees {
  readonly rows: Tree<string, RowBody>;
  readonly tombstones: Tree<string, string>;
  readonly lists: Tree<string, string>;
  readonly runs: Tree<string, string>;
}

const treesOf = ({ rows, tombstones, lists, runs }: Trees): readonly Tree<string, unknown>[] => [rows, tombstones, lists, runs];

/** The rows of one environment in one table. */
interface Shard {
  /** First characters of its keys. */
  readonly prefix: string;
  /** No list in LMDB holds a rank behind this one. */
  highest: string;
  /** As bytes: of rows and tombstones, in the trees and in memory. */
  readonly lastIds: LastIds;
  active: Memtable;
  /** On its way into the lists. */
  compacting: Memtable | null;
  /** Of a table without lists: what the tree of rows lacks, by id. */
  readonly lacking: Map<string, MemoryRow>;
  /** What the tree of rows lacks, also what was written again since: not given to it yet, or given and not committed. */
  unsaved: MemoryRow[];
  readonly saving: Set<readonly MemoryRow[]>;
  /** Keys of the runs of `active`. */
  runs: string[];
}

interface Found {
  readonly rank: string;
  readonly row: StoredRow;
}

/** LMDB's side of one table. Rows lie by id; without a sort key that is the order of the pages, and a page of all rows is one scan. */
export class LmdbTable<Row> extends Table<Row> {
  /** Rows read from LMDB or memory, for tests that hold queries to their limit. */
  rowsRead = 0;
  private readonly trees: Trees;
  private readonly postings: Postings;
  private readonly shards = new Map<string, Shard>();
  private readonly indexNumbers: ReadonlyMap<string, string>;
  /** Without an index, and in the order of ids: the tree of rows is all there is. */
  private readonly hasLists: boolean;
  private filledTo: Checkpoint;
  private savedTo: Checkpoint;
  private hasTombstones: boolean;
  /** Not counting those that are being brought into lists. */
  private rowsInMemory = 0;
  private readonly unsaved = new Set<Shard>();
  private saveTimer: NodeJS.Timeout | null = null;
  private compactTimer: NodeJS.Timeout | null = null;
  private compaction: Promise<void> | null = null;

  constructor(
    readonly definition: TableDefinition<Row>,
    private readonly home: Store,
    private readonly storage: LmdbStorage,
  ) {
    super();
    this.trees = home.open(definition.name);
    this.postings = new Postings(this.trees.lists, home.arena);
    this.indexNumbers = new Map(definition.indexes.map(({ name }, index) => [name, String.fromCharCode(index + 1)]));
    this.hasLists = definition.indexes.length > 0 || definition.sortKey !== undefined;
    this.filledTo = this.savedTo = home.checkpointOf(definition.name);
    home.putCheckpoint(definition.name, this.savedTo);
    this.hasTombstones = this.trees.tombstones.getKeysCount({ start: '\0', end: HIGHEST_RANK, limit: 1 }) > 0;
  }

  async get(environment: string, id: string): Promise<StoredRow<Row> | null> {
    return this.rowAt(this.shard(environment), id);
  }

  async getMany(environment: string, ids: readonly string[]): Promise<readonly (StoredRow<Row> | null)[]> {
    const shard = this.shard(environment);
    return ids.map((id) => this.rowAt(shard, id));
  }

  override async presentAmong(environment: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const shard = this.shard(environment);
    return new Set(ids.filter((id) => this.isThere(shard, id)));
  }

  /** Lists hold ids: no row is read. */
  override async idPage(environment: string, { where, limit, after }: IdPageRequest): Promise<IdPage> {
    const shard = this.shard(environment);
    const rank = after === undefined ? '' : this.rankOfCursor(shard, after);
    if (rank === null) throw new UnknownCursor('after');
    const window = { lower: after === undefined ? '' : `${rank}\0`, upper: HIGHEST_RANK };
    const found = this.ranks(shard, this.listsFor(where), window, true, limit + 1);
    return { ids: found.slice(0, limit).map(idOfRank), hasAfter: found.length > limit };
  }

  async page(environment: string, { where, order, limit, after, before, from, to }: PageRequest): Promise<RowPage<Row>> {
    const shard = this.shard(environment);
    if (where === undefined && this.definition.isReadByIndexes) throw new Error(`The table ${this.definition.name} is read by its indexes alone.`);
    const lists = where ? this.listsFor(where) : [ALL_ROWS];
    const all: Window = { lower: from === undefined ? '' : byteText(from), upper: to === undefined ? HIGHEST_RANK : this.behind(byteText(to)) };
    // Backwards from a cursor, the rows next to it come first.
    const ascending = (order === 'asc') === (before === undefined);
    const cursor = after ?? before;
    if (cursor === undefined) {
      const found = this.scan(shard, lists, all, ascending, limit + 1);
      return { rows: found.slice(0, limit).map(({ row }) => row), hasBefore: false, hasAfter: found.length > limit };
    }
    const rank = this.rankOfCursor(shard, cursor);
    if (rank === null) throw new UnknownCursor(after === undefined ? 'before' : 'after');
    const above = { lower: higher(all.lower, rank + '\0'), upper: all.upper };
    const below = { lower: all.lower, upper: lower(all.upper, rank) };
    const upToCursor = { lower: all.lower, upper: lower(all.upper, rank + '\0') };
    const fromCursor = { lower: higher(all.lower, rank), upper: all.upper };
    const found = this.scan(shard, lists, ascending ? above : below, ascending, limit + 1);
    const rows = found.slice(0, limit).map(({ row }) => row);
    const further = found.length > limit;
    const behind = this.scan(shard, lists, ascending ? upToCursor : fromCursor, !ascending, 1).length > 0;
    return before === undefined ? { rows, hasBefore: behind, hasAfter: further } : { rows: rows.reverse(), hasBefore: further, hasAfter: behind };
  }

  async write(writes: readonly Write[], checkpoint?: string | LogPlace, fence = this.filledTo.fence): Promise<void> {
    this.storage.assertAlive();
    if (fence < this.filledTo.fence) throw new Fenced(this.definition.name, fence);
    refuseTooLargeRows(this.definition.name, writes);
    for (const write of writes) this.apply(write);
    if (checkpoint !== undefined) this.filledTo = { ...placeOf(checkpoint), fence };
    await this.changed();
  }

  async replace(environment: string, { id, text: seen, position, revision }: StoredRow, text: string, at: string): Promise<boolean> {
    this.storage.assertAlive();
    const shard = this.shard(environment);
    const row = this.rowAt(shard, id);
    if (row?.position !== position || row.text !== seen) return false;
    this.set(shard, { environment, id, text, position: higher(position, at), revision }, this.before(shard, id));
    await this.changed();
    return true;
  }

  override rewrite(...[environment, rows, position, change]: Parameters<Table<Row>['rewrite']>): Promise<void> {
    if (this.definition.rebuildable) this.storage.owesCompaction();
    return super.rewrite(environment, rows, position, change);
  }

  async checkpoint(): Promise<string> {
    return this.filledTo.position;
  }

  override async recordAt(position: string): Promise<string | null> {
    return this.filledTo.position === position ? this.filledTo.record : null;
  }

  async purge(environment: string, ids: readonly string[]): Promise<void> {
    this.storage.assertAlive();
    const shard = this.shard(environment);
    for (const id of ids) {
      const { stored, position } = this.before(shard, id);
      if (position !== null)
        this.put(shard, { id, rank: stored.rank, bytes: null, gone: 'purged', isStored: false, position: '', revision: 0, lists: '', stored });
    }
    await this.changed();
  }

  async clear(fence = this.filledTo.fence): Promise<void> {
    if (fence < this.filledTo.fence) throw new Fenced(this.definition.name, fence);
    await this.settle();
    for (const tree of treesOf(this.trees)) tree.clear();
    this.filledTo = this.savedTo = { ...placeOf(''), fence };
    this.home.putCheckpoint(this.definition.name, this.savedTo);
    this.shards.clear();
    this.unsaved.clear();
    this.rowsInMemory = 0;
    this.hasTombstones = false;
    await this.home.lmdb.committed();
  }

  async *dump(): AsyncIterable<DumpedRow> {
    await this.save();
    for (const environment of this.home.environmentNames()) {
      const prefix = this.home.prefixOf(environment);
      const entries = merged(slices(this.trees.rows, prefix), slices(this.trees.tombstones, prefix));
      for await (const { key, value, isFirst } of entries)
        yield { environment, id: textOfBytes(key.slice(prefix.length)), ...(isFirst ? (value as RowBody) : deleted(value as string)) };
    }
  }

  /** Brings rows and checkpoint to LMDB; resolves when they are committed. */
  async save(): Promise<void> {
    if (this.saveTimer) clearTimeout(this.saveTimer);
    this.saveTimer = null;
    // One event turn, hence one transaction.
    for (const shard of this.unsaved) this.saveShard(shard);
    this.unsaved.clear();
    if (this.filledTo !== this.savedTo) this.home.putCheckpoint(this.definition.name, (this.savedTo = this.filledTo));
    await this.home.lmdb.committed();
  }

  /** Brings the rows in memory into their lists. Whoever comes while it runs waits for what runs. */
  compact(): Promise<void> {
    return (this.compaction ??= this.compactShards().finally(() => (this.compaction = null)));
  }

  /** Nothing is left in memory that was written before the call. */
  async settle(): Promise<void> {
    await this.compaction;
    // What a crash left in environments that nobody has asked for since.
    for (const environment of this.home.environmentNames())
      if (this.trees.runs.getKeysCount({ start: this.home.prefixOf(environment), end: this.home.prefixOf(environment) + HIGHEST_RANK, limit: 1 }) > 0)
        this.shard(environment);
    await this.compact();
  }

  private saveShard(shard: Shard): void {
    // In the order of the tree, whose pages fill where one row is put behind the other.
    const rows = shard.unsaved.filter((row) => this.inMemory(shard, row.id) === row).sort((one, other) => (one.id < other.id ? -1 : 1));
    shard.unsaved = [];
    for (const row of rows) this.saveRow(shard.prefix + byteText(row.id), row);
    shard.saving.add(rows);
    if (this.hasLists) {
      const run = shard.prefix + this.home.nextRun();
      shard.runs.push(run);
      this.trees.runs.put(run, this.home.arena.latin1(runOf(rows)));
    }
    const forget = (): void => {
      shard.saving.delete(rows);
      for (const row of rows) {
        row.isStored = true;
        row.bytes = null;
        if (!this.hasLists && shard.lacking.get(row.id) === row) shard.lacking.delete(row.id);
      }
    };
    this.home.lmdb.committed().then(forget, () => undefined);
  }

  private saveRow(key: string, row: MemoryRow): void {
    const { rows, tombstones } = this.trees;
    if (row.bytes !== null) rows.put(key, row.bytes);
    else rows.remove(key);
    if (row.gone === 'deleted') tombstones.put(key, this.home.arena.latin1(`${byteText(row.position)}\0${row.rank}`));
    else if (this.hasTombstones) tombstones.remove(key);
  }

  private async compactShards(): Promise<void> {
    if (this.compactTimer) clearTimeout(this.compactTimer);
    this.compactTimer = null;
    await this.save();
    for (const shard of this.shards.values()) if (shard.active.rows.size > 0) await this.compactShard(shard);
  }

  private async compactShard(shard: Shard): Promise<void> {
    const { active, runs } = shard;
    shard.compacting = active;
    this.rowsInMemory -= active.rows.size;
    shard.active = new Memtable();
    shard.runs = [];
    // What was written since `save` belongs to the memtable that now goes, and so does its run.
    if (this.unsaved.delete(shard)) this.saveShard(shard);
    runs.push(...shard.runs.splice(0));
    const slice = new Slice();
    const changes = new ListChanges();
    let { highest } = shard;
    for (const row of active.rows.values()) {
      changes.collect(row);
      if (row.rank > highest) highest = row.rank;
      if (slice.isOver()) await slice.next();
    }
    for (const [list, { adds, removes }] of changes.inOrder()) {
      this.postings.change(shard.prefix + list + '\0', adds, removes, adds.length > 0 && adds[0]! > shard.highest);
      if (slice.isOver()) await slice.next();
    }
    if (this.definition.isReadByIndexes) this.trees.lists.put(shard.prefix + ALL_ROWS, this.home.arena.latin1(highest));
    for (const run of runs) this.trees.runs.remove(run);
    await this.home.lmdb.committed();
    shard.highest = highest;
    shard.compacting = null;
  }

  private changed(): Promise<void> | void {
    if (this.rowsInMemory > COMPACT_ROWS) {
      const compaction = this.compact().catch((error: Error) => this.cannotStore(error));
      if (this.rowsInMemory > 2 * COMPACT_ROWS) return compaction;
    } else if (this.hasLists)
      this.compactTimer ??= setTimeout(() => void this.compact().catch((error: Error) => this.cannotStore(error)), COMPACT_EVERY_MS).unref();
    if (!this.definition.rebuildable) return this.save();
    this.saveTimer ??= setTimeout(() => void this.save().catch((error: Error) => this.cannotStore(error)), SAVE_EVERY_MS);
  }

  private cannotStore(error: Error): void {
    this.storage.fail(`the table ${this.definition.name} cannot be stored: ${error.message}`);
  }

  private apply(write: Write): void {
    const shard = this.shard(write.environment);
    const before = this.before(shard, write.id);
    if (before.position !== null && before.position >= write.position && this.definition.guard !== 'none') return;
    this.set(shard, write, before);
  }

  private set(shard: Shard, { id, position, revision, text, row }: Write, { rank, stored }: ReturnType<LmdbTable<Row>['before']>): void {
    if (text === null)
      return this.put(shard, { id, rank: rank ?? byteText(id), bytes: null, gone: 'deleted', isStored: false, position, revision, lists: '', stored });
    const bytes = this.encode(text, position, revision);
    const content = this.hasLists ? ((row ?? JSON.parse(text)) as Row) : null;
    const place = content === null ? byteText(id) : this.rankOf(id, content);
    const lists = content === null ? NOWHERE.lists : this.listsOf(content);
    this.put(shard, { id, rank: place, bytes, gone: null, isStored: false, position, revision, lists, stored });
  }

  private put(shard: Shard, row: MemoryRow): void {
    shard.lastIds.add(byteText(row.id));
    if (row.gone !== null) this.hasTombstones = true;
    if (this.hasLists) {
      if (!shard.active.rows.has(row.id)) this.rowsInMemory++;
      shard.active.set(row);
    } else shard.lacking.set(row.id, row);
    shard.unsaved.push(row);
    this.unsaved.add(shard);
  }

  /** What a write of the row meets: position and rank of its latest version, and the lists that will hold it when the write is brought into its own. */
  private before(shard: Shard, id: string): { readonly position: string | null; readonly rank: string | null; readonly stored: StoredLists } {
    if (!this.hasLists) return this.beforeWithoutLists(shard, id);
    const active = shard.active.rows.get(id);
    if (active) return { position: active.gone === 'purged' ? null : active.position, rank: active.rank, stored: active.stored };
    const compacting = shard.compacting?.rows.get(id);
    if (compacting) {
      const { gone, position, rank, lists } = compacting;
      return { position: gone === 'purged' ? null : position, rank, stored: { lists, rank, isSure: true } };
    }
    const bytes = byteText(id);
    if (shard.lastIds.isNew(bytes)) return { position: null, rank: null, stored: NOWHERE };
    const key = shard.prefix + bytes;
    const stored = this.trees.rows.get(key);
    if (stored) {
      const { position, text } = stored;
      const row = JSON.parse(text) as Row;
      const rank = this.rankOf(id, row);
      return { position, rank, stored: { lists: this.listsOf(row), rank, isSure: true } };
    }
    return { position: null, rank: null, ...this.tombstone(key), stored: NOWHERE };
  }

  private beforeWithoutLists(shard: Shard, id: string): ReturnType<LmdbTable<Row>['before']> {
    const rank = byteText(id);
    const memory = this.inMemory(shard, id);
    if (memory) return { position: memory.gone === 'purged' ? null : memory.position, rank, stored: NOWHERE };
    if (shard.lastIds.isNew(rank)) return { position: null, rank, stored: NOWHERE };
    const key = shard.prefix + rank;
    const stored = this.trees.rows.get(key) ?? this.tombstone(key);
    return { position: stored?.position ?? null, rank, stored: NOWHERE };
  }

  /** The latest version of a row that the tree may lack, or, where there are lists, that these lack. */
  private inMemory({ active, compacting, lacking }: Shard, id: string): MemoryRow | undefined {
    return this.hasLists ? (active.rows.get(id) ?? compacting?.rows.get(id)) : lacking.get(id);
  }

  private tombstone(key: string): { readonly position: string; readonly rank: string } | null {
    const value = this.hasTombstones ? this.trees.tombstones.get(key) : undefined;
    return value === undefined ? null : tombstoneOf(value);
  }

  private rowAt(shard: Shard, id: string): StoredRow | null {
    this.rowsRead++;
    const memory = this.inMemory(shard, id);
    if (memory && memory.gone !== null) return null;
    if (memory?.bytes) return storedRow(memory, memory.bytes);
    const bytes = byteText(id);
    const row = !memory && shard.lastIds.isNew(bytes) ? undefined : this.trees.rows.get(shard.prefix + bytes);
    return row ? { id, ...row } : null;
  }

  private isThere(shard: Shard, id: string): boolean {
    const memory = this.inMemory(shard, id);
    if (memory) return memory.gone === null;
    const bytes = byteText(id);
    return !shard.lastIds.isNew(bytes) && this.trees.rows.doesExist(shard.prefix + bytes);
  }

  private rankOfCursor(shard: Shard, id: string): string | null {
    const memory = this.inMemory(shard, id);
    if (memory) return memory.gone === 'purged' ? null : memory.rank;
    const key = shard.prefix + byteText(id);
    const row = this.trees.rows.get(key);
    if (!row) return this.tombstone(key)?.rank ?? null;
    return this.definition.sortKey ? this.rankOf(id, JSON.parse(row.text) as Row) : byteText(id);
  }

  /** At most `limit` rows that are in any of the lists, each once, from the window's beginning or, descending, from its end. */
  private scan(shard: Shard, lists: readonly string[], window: Window, ascending: boolean, limit: number): readonly Found[] {
    if (lists[0] === ALL_ROWS && !this.definition.sortKey) return this.scanRows(shard, window, ascending, limit);
    return this.ranks(shard, lists, window, ascending, limit).flatMap((rank) => {
      const row = this.rowAt(shard, idOfRank(rank));
      return row ? [{ rank, row }] : [];
    });
  }

  private ranks(shard: Shard, lists: readonly string[], window: Window, ascending: boolean, limit: number): readonly string[] {
    const isStored = (rank: string): boolean => !this.isInMemory(shard, idOfRank(rank));
    let ranks: string[] = [];
    for (let start = 0; start < lists.length; start += MERGED_LISTS) {
      const some = lists.slice(start, start + MERGED_LISTS);
      const within = ranks.length < limit ? window : ascending ? { ...window, upper: ranks.at(-1)! } : { ...window, lower: `${ranks.at(-1)!}\0` };
      const inMemory = this.memoryRanks(shard, some, within, ascending, limit);
      const stored = some.flatMap((list) => this.postings.ranks(`${shard.prefix}${list}\0`, within, ascending, limit, isStored));
      if (lists.length === 1 && inMemory.length === 0) ranks = stored;
      else {
        ranks = [...new Set([...ranks, ...stored, ...inMemory])].sort();
        if (!ascending) ranks.reverse();
        ranks = ranks.slice(0, limit);
      }
    }
    return ranks.slice(0, limit);
  }

  /** The tree of rows is in order itself, and lacks only what was written in the last moments: nothing else of what is in memory is looked at. */
  private scanRows(shard: Shard, window: Window, ascending: boolean, limit: number): readonly Found[] {
    const { prefix } = shard;
    const found: Found[] = [];
    const range = ascending ? { start: prefix + window.lower, end: prefix + window.upper } : { start: prefix + window.upper, end: prefix, reverse: true };
    for (const { key, value } of this.trees.rows.getRange(range)) {
      const rank = key.slice(ENVIRONMENT_BYTES);
      if (rank >= window.upper) continue;
      if (rank < window.lower) break;
      const id = textOfBytes(rank);
      if (this.inMemory(shard, id)?.isStored === false) continue;
      found.push({ rank, row: { id, text: value.text, position: value.position, revision: value.revision } });
      if (found.length === limit) break;
    }
    const stored = found.length;
    for (const rows of [shard.unsaved, ...shard.saving])
      for (const row of rows)
        if (row.bytes && isIn(window, row) && this.inMemory(shard, row.id) === row) found.push({ rank: row.rank, row: storedRow(row, row.bytes) });
    if (found.length > stored) found.sort((one, other) => (one.rank < other.rank === ascending ? -1 : 1));
    this.rowsRead += Math.min(found.length, limit);
    return found.slice(0, limit);
  }

  private memoryRanks(shard: Shard, lists: readonly string[], window: Window, ascending: boolean, limit: number): readonly string[] {
    const { active, compacting } = shard;
    if (active.rows.size === 0 && !compacting) return [];
    return lists
      .flatMap((list) => [
        ...active.find(list, window, ascending, limit, () => true),
        ...(compacting?.find(list, window, ascending, limit, (id) => !active.rows.has(id)) ?? []),
      ])
      .map(({ rank }) => rank);
  }

  private isInMemory({ active, compacting }: Shard, id: string): boolean {
    return active.rows.has(id) || compacting?.rows.has(id) === true;
  }

  private shard(environment: string): Shard {
    const known = this.shards.get(environment);
    if (known) return known;
    const prefix = this.home.prefixOf(environment);
    const shard: Shard = {
      prefix,
      highest: this.highestRank(prefix),
      lastIds: new LastIds((kind) => this.lastStored(prefix, kind)),
      active: new Memtable(),
      compacting: null,
      lacking: new Map(),
      unsaved: [],
      saving: new Set(),
      runs: [],
    };
    this.readRuns(shard);
    this.shards.set(environment, shard);
    return shard;
  }

  /** What a crash kept from being brought into lists, wholly or in part. */
  private readRuns(shard: Shard): void {
    for (const { key, value } of this.trees.runs.getRange({ start: shard.prefix, end: shard.prefix + HIGHEST_RANK })) {
      // Of an earlier release, which noted rows in none.
      if (!this.hasLists) {
        this.trees.runs.remove(key);
        continue;
      }
      shard.runs.push(key);
      for (const { id, rank, lists, stored } of rowsOfRun(value)) {
        // Lists that were reached before the crash hold ranks that the rows do not tell of.
        if (rank > shard.highest) shard.highest = rank;
        const known = shard.active.rows.get(id);
        const everywhere = textOfLists(new Set([lists, stored, known?.stored.lists ?? ''].flatMap(listsIn)));
        const row = this.trees.rows.get(shard.prefix + byteText(id));
        const tombstone = row ? null : this.tombstone(shard.prefix + byteText(id));
        const { position = tombstone?.position ?? '', revision = 0 } = row ?? {};
        const gone = row ? null : tombstone ? 'deleted' : 'purged';
        if (!known) this.rowsInMemory++;
        shard.active.set({ id, rank, bytes: null, gone, isStored: true, position, revision, lists, stored: { lists: everywhere, rank, isSure: false } });
      }
    }
  }

  private highestRank(prefix: string): string {
    if (this.definition.isReadByIndexes) return this.trees.lists.get(prefix + ALL_ROWS) ?? '';
    if (this.definition.sortKey) return this.postings.last(prefix + ALL_ROWS + '\0');
    for (const key of this.trees.rows.getKeys({ start: prefix + HIGHEST_RANK, end: prefix, reverse: true, limit: 1 })) return key.slice(ENVIRONMENT_BYTES);
    return '';
  }

  /** The last id, of rows and tombstones, that begins so. */
  private lastStored(prefix: string, kind: string): string {
    let last = '';
    for (const tree of [this.trees.rows, this.trees.tombstones])
      for (const key of tree.getKeys({ start: prefix + kind + HIGHEST_RANK, end: prefix + kind, reverse: true, limit: 1 }))
        last = higher(last, key.slice(ENVIRONMENT_BYTES));
    return last;
  }

  /** The place of a row in its order: its sort key, then its id; without a sort key the id. */
  private rankOf(id: string, row: Row): string {
    const { sortKey } = this.definition;
    return sortKey ? `${plain(byteText(sortKey(row)))}\0${byteText(id)}` : byteText(id);
  }

  /** Behind the rows whose sort key is `key`. */
  private behind(key: string): string {
    return key + (this.definition.sortKey ? '\x01' : '\0');
  }

  private listsOf(row: Row): string {
    const lists = new Set<string>(this.definition.sortKey && !this.definition.isReadByIndexes ? [ALL_ROWS] : []);
    for (const { name, keys } of this.definition.indexes) for (const key of keys(row)) lists.add(this.listOf(name, key));
    return textOfLists(lists);
  }

  private listsFor({ index, values }: NonNullable<PageRequest['where']>): readonly string[] {
    return [...new Set(values.map((value) => this.listOf(index, value)))];
  }

  private listOf(index: string, value: string): string {
    const number = this.indexNumbers.get(index);
    if (number === undefined) throw new Error(`The table ${this.definition.name} has no index '${index}'.`);
    const bytes = PLAIN.test(value) ? value : plain(byteText(value));
    return number + (bytes.length <= LONGEST_VALUE ? bytes : bytes.slice(0, LONGEST_VALUE) + createHash('sha256').update(bytes).digest('base64'));
  }

  private encode(text: string, position: string, revision: number): Buffer {
    const start = HEADER_BYTES + position.length;
    const value = this.home.arena.text(start, text);
    value[0] = value.length === start + text.length ? ASCII : 0;
    value[1] = position.length;
    writeNumber(revision, value, 2);
    value.write(position, HEADER_BYTES, 'latin1');
    return value;
  }
}

function isIn({ lower, upper }: Window, { rank }: MemoryRow): boolean {
  return rank >= lower && rank < upper;
}

type RowBody = Omit<StoredRow, 'id'>;

/** Whether the text is ASCII, which is read several times as fast; length of the position; revision. Position and text follow. */
const HEADER_BYTES = 2 + NUMBER_BYTES;
const ASCII = 1;

function tombstoneOf(value: string): { readonly position: string; readonly rank: string } {
  const end = value.indexOf('\0');
  return { position: textOfBytes(value.slice(0, end)), rank: value.slice(end + 1) };
}

/** Nobody asks for the revision of what is deleted, so it is not kept. */
function deleted(tombstone: string): Omit<DumpedRow, 'environment' | 'id'> {
  return { position: tombstoneOf(tombstone).position, revision: 0, text: null };
}

function decode(bytes: Buffer): RowBody {
  return { text: textIn(bytes), position: bytes.toString('latin1', HEADER_BYTES, HEADER_BYTES + bytes[1]!), revision: readNumber(bytes, 2) };
}

function textIn(bytes: Buffer): string {
  return bytes.toString(bytes[0] === ASCII ? 'latin1' : 'utf8', HEADER_BYTES + bytes[1]!, bytes.length);
}

/** Rows that a crash may have kept from their lists: id, rank, the lists they belong to, the lists that they may still be in. */
function runOf(rows: readonly MemoryRow[]): string {
  return rows.map(({ id, rank, lists, stored }) => [byteText(id), rank, lists, stored.lists].join(BETWEEN_FIELDS)).join(BETWEEN_ROWS);
}

function rowsOfRun(run: string): readonly { readonly id: string; readonly rank: string; readonly lists: string; readonly stored: string }[] {
  return run.split(BETWEEN_ROWS).map((row) => {
    const [id, rank, lists, stored] = row.split(BETWEEN_FIELDS) as [string, string, string, string];
    return { id: textOfBytes(id), rank, lists, stored };
  });
}

function textOfLists(lists: ReadonlySet<string>): string {
  return [...lists].join(BETWEEN_LISTS);
}

interface ListChange {
  readonly adds: readonly string[];
  readonly removes: readonly string[];
}

interface ManyChanges {
  readonly adds: string[];
  readonly removes: string[];
}

/** What rows change in lists. Most lists get one rank only, and then the rank stands for the change. */
class ListChanges {
  /** By the first two characters of their names, so that no sorting takes long. */
  private readonly groups: (Map<string, string | ManyChanges> | undefined)[] = [];

  collect({ rank, lists: inLists, stored }: MemoryRow): void {
    const [lists, before] = [listsIn(inLists), listsIn(stored.lists)];
    for (const list of lists) if (!stored.isSure || !before.includes(list)) this.add(list, rank);
    for (const list of before) if (!lists.includes(list)) this.both(list).removes.push(stored.rank);
  }

  /** By and by in the order of the tree, so that a page is touched in one slice only. */
  *inOrder(): Iterable<readonly [string, ListChange]> {
    for (const group of this.groups) {
      if (!group) continue;
      for (const list of [...group.keys()].sort()) {
        const change = group.get(list)!;
        if (typeof change === 'string') yield [list, { adds: [change], removes: [] }];
        else yield [list, { adds: change.adds.sort(), removes: change.removes }];
      }
    }
  }

  private add(list: string, rank: string): void {
    const group = this.groupOf(list);
    if (group.has(list)) this.both(list).adds.push(rank);
    else group.set(list, rank);
  }

  private both(list: string): ManyChanges {
    const group = this.groupOf(list);
    const known = group.get(list);
    if (typeof known === 'object') return known;
    const both = { adds: known === undefined ? [] : [known], removes: [] };
    group.set(list, both);
    return both;
  }

  private groupOf(list: string): Map<string, string | ManyChanges> {
    return (this.groups[list.charCodeAt(0) * 256 + (list.length > 1 ? list.charCodeAt(1) : 0)] ??= new Map<string, string | ManyChanges>());
  }
}

/** Work that gives way to other work every few milliseconds. */
class Slice {
  private end = performance.now() + SLICE_MS;
  private steps = 0;

  isOver(): boolean {
    return ++this.steps % STEPS_PER_LOOK === 0 && performance.now() > this.end;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.end = performance.now() + SLICE_MS;
  }
}

function storedRow({ id, position, revision }: MemoryRow, bytes: Buffer): StoredRow {
  return { id, text: textIn(bytes), position, revision };
}

function idOfRank(rank: string): string {
  return textOfBytes(rank.slice(rank.indexOf('\0') + 1));
}

/** Printable ASCII, which most values are, is plain already. */
const PLAIN = /^[ -~]*$/;
// oxlint-disable-next-line no-control-regex -- these are the ones that separate
const SEPARATORS = /[\0-\x03]/g;

/** Without the characters that separate the parts of keys and ranks. */
function plain(bytes: string): string {
  return bytes.search(SEPARATORS) >= 0 ? bytes.replace(SEPARATORS, (character) => `\x03${String.fromCharCode(character.charCodeAt(0) + 4)}`) : bytes;
}

function higher(one: string, other: string): string {
  return one > other ? one : other;
}

function lower(one: string, other: string): string {
  return one < other ? one : other;
}

interface Entry {
  readonly key: string;
  readonly value: unknown;
}

/** All entries that begin with `prefix`, read in slices, so that no read stays open. */
async function* slices<Value>(db: Tree<string, Value>, prefix: string): AsyncGenerator<Entry> {
  let start = prefix;
  for (let count = DUMP_SLICE; count === DUMP_SLICE; await nextTurn()) {
    const slice = [...db.getRange({ start, end: prefix + HIGHEST_RANK, limit: DUMP_SLICE })];
    yield* slice;
    count = slice.length;
    start = `${slice.at(-1)?.key}\0`;
  }
}

async function* merged(first: AsyncGenerator<Entry>, second: AsyncGenerator<Entry>): AsyncGenerator<Entry & { readonly isFirst: boolean }> {
  let [one, other] = [await first.next(), await second.next()];
  while (!one.done || !other.done) {
    const isFirst = !one.done && (other.done === true || one.value.key < other.value.key);
    yield { ...(isFirst ? one : other).value, isFirst };
    if (isFirst) one = await first.next();
    else other = await second.next();
  }
}
