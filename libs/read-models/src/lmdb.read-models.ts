import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from 'lmdb';
import { Arena } from '#libs/platform/src/storage/arena';
import type { LmdbEnvironment } from '#libs/platform/src/storage/lmdb-environment';
import { byteText, byteTextKeys, NUMBER_BYTES, readNumber, textOfBytes, writeNumber } from '#libs/platform/src/storage/lmdb-keys';
import type { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Postings, type Window } from './lmdb-postings.ts';
import { ALL_ROWS, Memtable, type MemoryRow, type StoredState } from './memtable.ts';
import { type PageRequest, ReadModels, type RowPage, type StoredRow, Table, type TableDefinition, UnknownCursor, type Write } from './read-models.ts';

/** How long rows that the log can refill stay in memory before they are stored together: long enough to share pages and chunks, short enough that storing them does not hold anybody up. */
const STORE_EVERY_MS = 100;
/** Rows in memory at which writers wait for the disk. */
const MEMORY_ROWS = 20_000;
const ENVIRONMENT_BYTES = 3;
/** Longer values are found by their beginning and a hash; LMDB's keys end at 1,978 bytes. */
const LONGEST_VALUE = 500;
const DUMP_SLICE = 500;
const ABSENT: StoredState = { kind: 'absent', lists: [], rank: '' };
/** Behind every rank: UTF-8 has no such byte. */
const HIGHEST_RANK = '\xff';

/**
 * Tables in LMDB, behind a table in memory that takes the writes.
 *
 * A row has a dozen or more index entries (one per prefix of each word for `search`). Measured on two cores with 300,000 rows and 17 entries a row: putting each entry by
 * itself, 8,000 rows/s cost 93 % of a core and 7.5 ms a commit, nearly all of it for copying pages that are touched once. So rows are visible at once from
 * memory, and are stored every 100 ms, entries of one value together (`Postings`). Tables that the log can refill lie in an environment of their own that is
 * never flushed; whatever a crash takes, it takes together with the checkpoint, and the projector writes it again. Tables that nothing can refill are stored
 * in the log's environment, at once.
 */
export class LmdbReadModels extends ReadModels {
  private readonly tables = new Map<string, LmdbTable<never>>();
  private readonly stores: Readonly<Record<'refillable' | 'kept', Store>>;

  constructor(private readonly storage: LmdbStorage) {
    super();
    this.stores = { refillable: new Store(storage.views), kept: new Store(storage.log) };
    storage.beforeClose(async () => {
      for (const table of this.tables.values()) await table.store();
    });
  }

  table<Row>(definition: TableDefinition<Row>): LmdbTable<Row> {
    const known = this.tables.get(definition.name) as LmdbTable<Row> | undefined;
    if (known) return known;
    const table = new LmdbTable(definition, definition.rebuildable ? this.stores.refillable : this.stores.kept, this.storage);
    this.tables.set(definition.name, table as unknown as LmdbTable<never>);
    return table;
  }

  async dropOthers(prefix: string, keep: readonly string[]): Promise<void> {
    for (const store of Object.values(this.stores)) {
      for (const name of store.tableNames()) if (name.startsWith(prefix) && !keep.includes(name)) await store.drop(name);
    }
  }
}

/** One LMDB environment: which tables are in it, and the numbers that stand for environments in its keys. */
class Store {
  readonly arena = new Arena();
  private readonly tables: Database<Buffer, string>;
  private readonly environments: Database<Buffer, string>;
  private readonly prefixes = new Map<string, string>();

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
    void this.environments.put(byteText(environment), number);
    return prefix;
  }

  tableNames(): string[] {
    return [...this.tables.getKeys({ start: '\0', end: HIGHEST_RANK })].map(textOfBytes);
  }

  /** '' for a table that was never filled. */
  checkpointOf(table: string): string {
    return this.tables.get(byteText(table))?.toString() ?? '';
  }

  putCheckpoint(table: string, checkpoint: string): void {
    void this.tables.put(byteText(table), this.arena.text(0, checkpoint));
  }

  open(table: string): { rows: Database<Buffer, string>; tombstones: Database<Buffer, string>; postings: Database<Buffer, string> } {
    const db = (kind: string): Database<Buffer, string> => this.lmdb.db(`${table}/${kind}`, byteTextKeys);
    return { rows: db('rows'), tombstones: db('tombstones'), postings: db('index') };
  }

  async drop(table: string): Promise<void> {
    for (const db of Object.values(this.open(table))) void db.drop();
    void this.tables.remove(byteText(table));
    await this.lmdb.committed();
  }
}

/** The rows of one environment in one table. */
interface Shard {
  /** First characters of its keys. */
  readonly prefix: string;
  /** No list in LMDB holds a rank behind this one. */
  highest: string;
  active: Memtable;
  /** On its way to LMDB. */
  storing: Memtable | null;
}

interface Found {
  readonly rank: string;
  readonly row: StoredRow;
}

/** LMDB's side of one table. Rows lie by id; without a sort key that is the order of the pages, and a page of all rows is one scan. */
export class LmdbTable<Row> extends Table<Row> {
  /** Rows read from LMDB or memory, for tests that hold queries to their limit. */
  rowsRead = 0;
  private readonly rows: Database<Buffer, string>;
  private readonly tombstones: Database<Buffer, string>;
  private readonly postings: Postings;
  private readonly postingsDb: Database<Buffer, string>;
  private readonly shards = new Map<string, Shard>();
  private readonly indexNumbers: ReadonlyMap<string, string>;
  private filledTo: string;
  private storedTo: string;
  private rowsInMemory = 0;
  private hasTombstones: boolean;
  private timer: NodeJS.Timeout | null = null;
  private running: Promise<void> | null = null;
  private queued: Promise<void> | null = null;

  constructor(
    readonly definition: TableDefinition<Row>,
    private readonly home: Store,
    private readonly storage: LmdbStorage,
  ) {
    super();
    const { rows, tombstones, postings } = home.open(definition.name);
    this.rows = rows;
    this.tombstones = tombstones;
    this.postingsDb = postings;
    this.postings = new Postings(postings, home.arena);
    this.indexNumbers = new Map(definition.indexes.map(({ name }, index) => [name, String.fromCharCode(index + 1)]));
    this.filledTo = this.storedTo = home.checkpointOf(definition.name);
    home.putCheckpoint(definition.name, this.storedTo);
    this.hasTombstones = tombstones.getKeysCount({ start: '\0', end: HIGHEST_RANK, limit: 1 }) > 0;
  }

  async get(environment: string, id: string): Promise<StoredRow | null> {
    return this.find(this.shard(environment), id);
  }

  async getMany(environment: string, ids: readonly string[]): Promise<readonly (StoredRow | null)[]> {
    const shard = this.shard(environment);
    return ids.map((id) => this.find(shard, id));
  }

  async page(environment: string, { where, order, limit, after, before, from, to }: PageRequest): Promise<RowPage> {
    const shard = this.shard(environment);
    const lists = where ? [...new Set(where.values.map((value) => this.listOf(where.index, value)))] : [ALL_ROWS];
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

  async write(writes: readonly Write[], checkpoint?: string): Promise<void> {
    this.storage.assertAlive();
    for (const write of writes) this.apply(write);
    if (checkpoint !== undefined) this.filledTo = checkpoint;
    await this.changed();
  }

  async checkpoint(): Promise<string> {
    return this.filledTo;
  }

  async purge(environment: string, ids: readonly string[]): Promise<void> {
    this.storage.assertAlive();
    const shard = this.shard(environment);
    for (const id of ids) {
      const { stored, position } = this.before(shard, id);
      if (position !== null) this.put(shard, { id, rank: '', text: null, isPurged: true, position: '', revision: 0, lists: [], stored });
    }
    await this.changed();
  }

  async clear(): Promise<void> {
    await this.store();
    for (const db of [this.rows, this.tombstones, this.postingsDb]) void db.clearAsync();
    this.filledTo = this.storedTo = '';
    this.home.putCheckpoint(this.definition.name, '');
    this.shards.clear();
    this.hasTombstones = false;
    await this.home.lmdb.committed();
  }

  async *dump(): AsyncIterable<{ readonly environment: string; readonly id: string; readonly text: string | null }> {
    await this.store();
    for (const environment of this.home.environmentNames()) {
      const prefix = this.home.prefixOf(environment);
      const entries = merged(slices(this.rows, prefix), slices(this.tombstones, prefix));
      for await (const { key, value, isFirst } of entries) yield { environment, id: textOfBytes(key.slice(prefix.length)), text: isFirst ? decode('', value).text : null };
    }
  }

  /** Brings what is in memory to LMDB; resolves when it is committed. One at a time; whoever comes during one waits for the next. */
  async store(): Promise<void> {
    if (this.running) return (this.queued ??= this.running.then(() => this.store()));
    this.queued = null;
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    if (this.rowsInMemory === 0 && this.filledTo === this.storedTo) return;
    this.running = this.storeNow().finally(() => (this.running = null));
    return this.running;
  }

  private async storeNow(): Promise<void> {
    const shards = [...this.shards.values()].filter(({ active }) => active.rows.size > 0);
    for (const shard of shards) {
      shard.storing = shard.active;
      shard.active = new Memtable();
      this.storeShard(shard, shard.storing);
    }
    this.rowsInMemory = 0;
    if (this.filledTo !== this.storedTo) this.home.putCheckpoint(this.definition.name, (this.storedTo = this.filledTo));
    await this.home.lmdb.committed();
    for (const shard of shards) shard.storing = null;
  }

  /** In one event turn, hence in one transaction. */
  private storeShard(shard: Shard, { rows }: Memtable): void {
    const changes = new Map<string, { readonly adds: string[]; readonly removes: string[] }>();
    const changesOf = (list: string): { readonly adds: string[]; readonly removes: string[] } => {
      const known = changes.get(list);
      if (known) return known;
      const fresh = { adds: [], removes: [] };
      changes.set(list, fresh);
      return fresh;
    };
    let { highest } = shard;
    for (const row of rows.values()) {
      const { rank, lists, stored } = row;
      this.storeRow(shard.prefix + byteText(row.id), row);
      for (const list of lists) if (!stored.lists.includes(list)) changesOf(list).adds.push(rank);
      for (const list of stored.lists) if (!lists.includes(list)) changesOf(list).removes.push(row.isPurged ? stored.rank : rank);
      if (rank > highest) highest = rank;
    }
    for (const [list, { adds, removes }] of changes) {
      if (adds.length > 1) adds.sort();
      this.postings.change(shard.prefix + list + '\0', adds, removes, adds.length > 0 && adds[0]! > shard.highest);
    }
    shard.highest = highest;
  }

  private storeRow(key: string, row: MemoryRow): void {
    const { text, isPurged, position, rank, stored } = row;
    if (text !== null) void this.rows.put(key, this.encode(row));
    else if (stored.kind === 'row') void this.rows.remove(key);
    if (stored.kind === 'tombstone' && (text !== null || isPurged)) void this.tombstones.remove(key);
    if (text === null && !isPurged) void this.tombstones.put(key, this.home.arena.latin1(byteText(position) + '\0' + rank));
  }

  private changed(): Promise<void> | void {
    if (!this.definition.rebuildable) return this.store();
    if (this.rowsInMemory > MEMORY_ROWS) return this.store();
    this.timer ??= setTimeout(() => this.store().catch((error: Error) => this.storage.fail(`${this.definition.name} cannot be stored: ${error.message}`)), STORE_EVERY_MS);
  }

  private apply({ environment, id, position, revision, text, row }: Write): void {
    const shard = this.shard(environment);
    const before = this.before(shard, id);
    if (before.position !== null && before.position >= position) return;
    const { stored } = before;
    if (text === null) this.put(shard, { id, rank: before.rank ?? byteText(id), text, isPurged: false, position, revision, lists: [], stored });
    else {
      const parsed = (row ?? JSON.parse(text)) as Row;
      this.put(shard, { id, rank: this.rankOf(id, parsed), text, isPurged: false, position, revision, lists: this.listsOf(parsed), stored });
    }
  }

  private put(shard: Shard, row: MemoryRow): void {
    if (!shard.active.rows.has(row.id)) this.rowsInMemory++;
    if (row.text === null) this.hasTombstones = true;
    shard.active.set(row);
  }

  /** What a write of the row meets: the position and rank of its latest version, and the state that LMDB will have when the write is stored. */
  private before(shard: Shard, id: string): { readonly position: string | null; readonly rank: string | null; readonly stored: StoredState } {
    const active = shard.active.rows.get(id);
    if (active) return { position: active.isPurged ? null : active.position, rank: active.rank, stored: active.stored };
    const storing = shard.storing?.rows.get(id);
    if (storing) {
      const kind = storing.isPurged ? 'absent' : storing.text === null ? 'tombstone' : 'row';
      return { position: storing.isPurged ? null : storing.position, rank: storing.rank, stored: { kind, lists: storing.lists, rank: storing.rank } };
    }
    const key = shard.prefix + byteText(id);
    const value = this.rows.get(key);
    if (value) {
      const { position, text } = decode(id, value);
      const row = JSON.parse(text) as Row;
      const rank = this.rankOf(id, row);
      return { position, rank, stored: { kind: 'row', lists: this.listsOf(row), rank } };
    }
    const tombstone = this.tombstone(key);
    return tombstone ? { ...tombstone, stored: { kind: 'tombstone', lists: [], rank: tombstone.rank } } : { position: null, rank: null, stored: ABSENT };
  }

  private tombstone(key: string): { readonly position: string; readonly rank: string } | null {
    const value = this.hasTombstones ? this.tombstones.get(key)?.toString('latin1') : undefined;
    if (value === undefined) return null;
    const end = value.indexOf('\0');
    return { position: textOfBytes(value.slice(0, end)), rank: value.slice(end + 1) };
  }

  private find(shard: Shard, id: string): StoredRow | null {
    this.rowsRead++;
    const memory = shard.active.rows.get(id) ?? shard.storing?.rows.get(id);
    if (memory) return storedRow(memory);
    const value = this.rows.get(shard.prefix + byteText(id));
    return value ? decode(id, value) : null;
  }

  private rankOfCursor(shard: Shard, id: string): string | null {
    const memory = shard.active.rows.get(id) ?? shard.storing?.rows.get(id);
    if (memory) return memory.isPurged ? null : memory.rank;
    const key = shard.prefix + byteText(id);
    const value = this.rows.get(key);
    if (!value) return this.tombstone(key)?.rank ?? null;
    return this.definition.sortKey ? this.rankOf(id, JSON.parse(decode(id, value).text) as Row) : byteText(id);
  }

  /** At most `limit` rows that are in any of the lists, each once, from the window's beginning or, descending, from its end. */
  private scan(shard: Shard, lists: readonly string[], window: Window, ascending: boolean, limit: number): readonly Found[] {
    if (lists[0] === ALL_ROWS && !this.definition.sortKey) return this.scanRows(shard, window, ascending, limit);
    const inMemory = this.memoryRanks(shard, lists, window, ascending, limit);
    const isStored = (rank: string): boolean => !this.isInMemory(shard, idOfRank(rank));
    const stored = lists.flatMap((list) => this.postings.ranks(shard.prefix + list + '\0', window, ascending, limit, isStored));
    const ranks = lists.length === 1 && inMemory.length === 0 ? stored : [...new Set([...stored, ...inMemory])].sort();
    if (!ascending && ranks !== stored) ranks.reverse();
    return ranks.slice(0, limit).flatMap((rank) => {
      const row = this.find(shard, idOfRank(rank));
      return row ? [{ rank, row }] : [];
    });
  }

  private scanRows(shard: Shard, window: Window, ascending: boolean, limit: number): readonly Found[] {
    const { prefix } = shard;
    const found: Found[] = [];
    const range = ascending ? { start: prefix + window.lower, end: prefix + window.upper } : { start: prefix + window.upper, end: prefix, reverse: true };
    for (const { key, value } of this.rows.getRange(range)) {
      const rank = key.slice(ENVIRONMENT_BYTES);
      if (rank >= window.upper) continue;
      if (rank < window.lower) break;
      const id = textOfBytes(rank);
      if (this.isInMemory(shard, id)) continue;
      found.push({ rank, row: decode(id, value) });
      if (found.length === limit) break;
    }
    this.rowsRead += found.length;
    const ranks = this.memoryRanks(shard, [ALL_ROWS], window, ascending, limit);
    if (ranks.length === 0) return found;
    for (const rank of ranks) found.push({ rank, row: this.find(shard, textOfBytes(rank))! });
    found.sort((one, other) => (one.rank < other.rank === ascending ? -1 : 1));
    return found.slice(0, limit);
  }

  private memoryRanks(shard: Shard, lists: readonly string[], window: Window, ascending: boolean, limit: number): readonly string[] {
    const { active, storing } = shard;
    if (active.rows.size === 0 && !storing) return [];
    return lists.flatMap((list) => [
      ...active.find(list, window, ascending, limit, () => true),
      ...(storing?.find(list, window, ascending, limit, (id) => !active.rows.has(id)) ?? []),
    ]).map(({ rank }) => rank);
  }

  private isInMemory({ active, storing }: Shard, id: string): boolean {
    return active.rows.has(id) || storing?.rows.has(id) === true;
  }

  private shard(environment: string): Shard {
    const known = this.shards.get(environment);
    if (known) return known;
    const prefix = this.home.prefixOf(environment);
    const shard: Shard = { prefix, highest: this.highestRank(prefix), active: new Memtable(), storing: null };
    this.shards.set(environment, shard);
    return shard;
  }

  private highestRank(prefix: string): string {
    if (this.definition.sortKey) return this.postings.last(prefix + ALL_ROWS + '\0');
    for (const key of this.rows.getKeys({ start: prefix + HIGHEST_RANK, end: prefix, reverse: true, limit: 1 })) return key.slice(ENVIRONMENT_BYTES);
    return '';
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

  private listsOf(row: Row): readonly string[] {
    const lists = new Set<string>(this.definition.sortKey ? [ALL_ROWS] : []);
    for (const { name, keys } of this.definition.indexes) for (const key of keys(row)) lists.add(this.listOf(name, key));
    return [...lists];
  }

  private listOf(index: string, value: string): string {
    const number = this.indexNumbers.get(index);
    if (number === undefined) throw new Error(`The table ${this.definition.name} has no index '${index}'.`);
    const bytes = plain(byteText(value));
    return number + (bytes.length <= LONGEST_VALUE ? bytes : bytes.slice(0, LONGEST_VALUE) + createHash('sha256').update(bytes).digest('base64'));
  }

  private encode({ position, revision, text }: MemoryRow): Buffer {
    const value = this.home.arena.text(HEADER_BYTES + position.length, text!);
    value[0] = position.length;
    writeNumber(revision, value, 1);
    value.write(position, HEADER_BYTES, 'latin1');
    return value;
  }
}

/** Length of the position and the revision; the position and the text follow. */
const HEADER_BYTES = 1 + NUMBER_BYTES;

function decode(id: string, value: Buffer): StoredRow {
  const start = HEADER_BYTES + value[0]!;
  return { id, position: value.toString('latin1', HEADER_BYTES, start), revision: readNumber(value, 1), text: value.toString('utf8', start) };
}

function storedRow({ id, text, position, revision }: MemoryRow): StoredRow | null {
  return text === null ? null : { id, text, position, revision };
}

function idOfRank(rank: string): string {
  return textOfBytes(rank.slice(rank.indexOf('\0') + 1));
}

const SEPARATORS = /[\0-\x03]/;

/** Without the characters that separate the parts of keys and ranks. */
function plain(bytes: string): string {
  return SEPARATORS.test(bytes) ? bytes.replace(/[\0-\x03]/g, (character) => `\x03${String.fromCharCode(character.charCodeAt(0) + 4)}`) : bytes;
}

function higher(one: string, other: string): string {
  return one > other ? one : other;
}

function lower(one: string, other: string): string {
  return one < other ? one : other;
}

interface Entry {
  readonly key: string;
  readonly value: Buffer;
}

/** All entries that begin with `prefix`, read in slices, so that no read stays open. */
async function* slices(db: Database<Buffer, string>, prefix: string): AsyncGenerator<Entry> {
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
