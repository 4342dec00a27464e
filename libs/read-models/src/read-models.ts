import { notFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';

/** A declared index: a row's keys under it. Every filter, and every allowed combination, has one; no query scans. */
export interface Index<Row> {
  readonly name: string;
  /** The row's entries; text only. Several entries when a row is found under several values, none when under none. */
  readonly keys: (row: Row) => readonly string[];
}

/**
 * What decides between two writes of a row, in whatever order they come:
 *
 * - `position`: the later position of the log, or the higher number where writers count by themselves; of equals the first;
 * - `time`: the later time, as `atTime` writes it;
 * - `none`: nothing. Each write replaces what is there, a tombstone too; for rows that are written once, or always as the same.
 */
export type Guard = 'position' | 'time' | 'none';

/** Sorts after every position and every time: nothing replaces what is written here, where there is a guard. */
export const LAST = '~';

const TIME_DIGITS = 16;

/** A time (milliseconds since the epoch) as a guard compares it. */
export function atTime(time: number): string {
  return String(time).padStart(TIME_DIGITS, '0');
}

/** What is stored: the name carries the view's version, so that a new version is another table. */
export interface TableDefinition<Row> {
  readonly name: string;
  readonly indexes: readonly Index<Row>[];
  /** What callers call a row, in the answer that there is none: `Organization`. Absent: callers never name one. */
  readonly noun?: string;
  /** Orders the pages; absent: by id, which is by time of creation. Must never change for a row. */
  readonly sortKey?: (row: Row) => string;
  /** Nobody asks for a page of all rows of an environment: each page names an index, and no list of all rows is kept. */
  readonly isReadByIndexes?: true;
  /** What decides between two writes of a row, see `Guard`. Absent: a position. */
  readonly guard?: Guard;
  /** False for collections that a rebuild cannot give back (deliveries): `rebuild` leaves them alone. */
  readonly rebuildable: boolean;
  /** What it holds follows from other tables that no rebuild gives back, or is told anew: a backup whose tables are not of one moment leaves it out. */
  readonly isMadeAnew?: true;
}

export interface StoredRow<Row = unknown> {
  readonly id: string;
  /** The row as JSON text, exactly as written; `contentOf` parses it where more than the text is needed. */
  readonly text: string;
  /** What the guard compares: of most tables the log's position of the write. A write with an older one is ignored. */
  readonly position: string;
  /** Version of the row's stream at the write, where the row is the fold of one stream; else 0. */
  readonly revision: number;
  /** For the compiler alone, which learns from it what the text says: no row has this. */
  [CONTENT]?(content: Row): void;
}

declare const CONTENT: unique symbol;

/** What a stored row says, in the type of its table. */
export function contentOf<Row>({ text }: StoredRow<Row>): Row {
  return JSON.parse(text) as Row;
}

export interface Write {
  readonly environment: string;
  readonly id: string;
  /** What the guard compares; without a guard nothing does. */
  readonly position: string;
  readonly revision: number;
  /** The row's JSON text, or null to delete: a tombstone stays, so that a late write cannot revive the row and its id stays a valid cursor. */
  readonly text: string | null;
  /** The row that `text` says, where the writer has it at hand: saves parsing it again for its index keys. */
  readonly row?: unknown;
}

export interface PageRequest {
  /** Name of a declared index and the values asked for (any match, each row once); absent: all rows of the environment. */
  readonly where?: { readonly index: string; readonly values: readonly string[] };
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** Rows that follow / precede this id in the requested order. At most one of the two. */
  readonly after?: string;
  readonly before?: string;
  /** Bounds on the sort key, both inclusive. */
  readonly from?: string;
  readonly to?: string;
}

export interface RowPage<Row = unknown> {
  readonly rows: readonly StoredRow<Row>[];
  /** Whether rows precede the first / follow the last row in the requested order. */
  readonly hasBefore: boolean;
  readonly hasAfter: boolean;
}

export interface IdPageRequest extends Pick<PageRequest, 'limit' | 'after'> {
  readonly where: NonNullable<PageRequest['where']>;
}

export interface IdPage extends Pick<RowPage, 'hasAfter'> {
  readonly ids: readonly string[];
}

/** A place in the log: a position, and the record that was seen there. In a log that was put back to an earlier state and has grown since, it is another one. */
export interface LogPlace {
  readonly position: string;
  /** Its id; null where nobody knows it. */
  readonly record: string | null;
}

/** A row or tombstone as a table holds it. */
export interface DumpedRow extends Omit<StoredRow, 'text' | typeof CONTENT> {
  readonly environment: string;
  /** Null: deleted. */
  readonly text: string | null;
}

/** For whom something is looked for: in which environment, and until when (milliseconds since the epoch) the answer is of use. */
export type Seeker = Pick<RequestContext, 'environment' | 'deadline'>;

/** The cursor is no id that this table ever held in this environment. */
export class UnknownCursor extends Error {
  constructor(readonly parameter: 'after' | 'before') {
    super(`unknown cursor in ${parameter}`);
  }
}

/** A checkpoint was to be stored under a lease that another has taken since: whoever meets this is no longer the one who fills the table. */
export class Fenced extends Error {
  constructor(
    readonly table: string,
    readonly fence: number,
  ) {
    super(`Another fills the table ${table} under a later lease than ${fence}.`);
  }
}

/**
 * What the text of a row may come to, whatever keeps it: a document of MongoDB ends at 16 MiB, and holds the row's index keys too. Deciders stop at 4 MiB, so
 * that only what was recorded under older rules comes near.
 */
export const MAX_ROW_BYTES = 12 * 1024 * 1024;

/** A row is more than a table holds. None of the rows that were to be written with it is certain to be there; whatever its table tells of is no longer whole. */
export class RowTooLarge extends Error {
  constructor(
    readonly table: string,
    readonly id: string,
    cause?: unknown,
  ) {
    super(`The row ${id} of ${table} is larger than a table holds.`, { cause });
  }
}

const REWRITTEN_AT_ONCE = 100;

/** @throws RowTooLarge */
export function refuseTooLargeRows(table: string, writes: readonly Write[]): void {
  for (const { id, text } of writes)
    if (text !== null && text.length > MAX_ROW_BYTES / 3 && Buffer.byteLength(text) > MAX_ROW_BYTES) throw new RowTooLarge(table, id);
}

/**
 * Rows of one table. The environment is always given: no query can be started without it.
 * One contract suite, `read-models.contract.ts`, holds every adapter to this.
 */
export abstract class Table<Row> {
  abstract readonly definition: TableDefinition<Row>;

  abstract get(environment: string, id: string): Promise<StoredRow<Row> | null>;

  /** The rows of several ids, in their order; absent ones are null. */
  abstract getMany(environment: string, ids: readonly string[]): Promise<readonly (StoredRow<Row> | null)[]>;

  /** Those of the ids that have a row. */
  async presentAmong(environment: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.getMany(environment, [...new Set(ids)]);
    return new Set(rows.flatMap((row) => (row === null ? [] : [row.id])));
  }

  /** Whether a row may be shown older than it was seen before, for a while: by a store of several members, of which another has taken over. */
  get mayShowOlder(): boolean {
    return false;
  }

  /**
   * Whether what is held of an id, a row or its tombstone, is of this position or a later one. Of a store that never shows an older state, it is.
   */
  async isAsLateAs(_environment: string, _id: string, _position: string): Promise<boolean> {
    return true;
  }

  /**
   * A page in the order of (sort key, id). Complete: every row written before the first page was asked for, and alive when its page is read, appears
   * exactly once; never reads more than 2 × limit + 100 rows for each 200 values asked for. @throws UnknownCursor
   */
  abstract page(environment: string, request: PageRequest): Promise<RowPage<Row>>;

  /** As an ascending `page`, for whoever wants to know the ids alone of what an index finds. */
  async idPage(environment: string, request: IdPageRequest): Promise<IdPage> {
    const { rows, hasAfter } = await this.page(environment, { ...request, order: 'asc' });
    return { ids: rows.map(({ id }) => id), hasAfter };
  }

  /**
   * As `get`, for an answer that says whether there is such a thing: in the tables that services get, what is not there is looked for once more when they show
   * what the log says by then. A table by itself knows of no log, and looks once.
   * @throws DomainError `service_unavailable` past the deadline
   */
  find({ environment }: Seeker, id: string): Promise<StoredRow<Row> | null> {
    return this.get(environment, id);
  }

  /** As `find`, for the last of the rows that an index finds. */
  async findBy({ environment }: Seeker, where: NonNullable<PageRequest['where']>): Promise<StoredRow<Row> | null> {
    const { rows } = await this.page(environment, { where, order: 'desc', limit: 1 });
    return rows[0] ?? null;
  }

  /** As `find`. @throws DomainError `entity_not_found` where there is no such row, and as `find` */
  async require(seeker: Seeker, id: string): Promise<StoredRow<Row>> {
    return (await this.find(seeker, id)) ?? this.refuseAbsent(id);
  }

  /** As `findBy`, for one value of an index, which the refusal names. @throws DomainError as `require` */
  async requireBy(seeker: Seeker, index: string, value: string): Promise<StoredRow<Row>> {
    return (await this.findBy(seeker, { index, values: [value] })) ?? this.refuseAbsent(value);
  }

  /** Whether a row of this id is or was in this table: then the id is a cursor. */
  async hasHeld(environment: string, id: string): Promise<boolean> {
    try {
      await this.page(environment, { order: 'asc', limit: 1, after: id });
      return true;
    } catch (error) {
      if (error instanceof UnknownCursor) return false;
      throw error;
    }
  }

  /**
   * Writes rows, each only where the guard lets it: where its position is later than the stored one, unless the table says otherwise. Visible to every reader when it resolves; durable no earlier than what was
   * written before it. `checkpoint`, when given, is stored in the same write, a position alone where the record there is not known, and `fence` with it: the token of the lease
   * under which the table is filled.
   * @throws Fenced when a later token is stored: then the checkpoint stays as it is, whatever became of the rows; RowTooLarge: then so does the checkpoint
   */
  abstract write(writes: readonly Write[], checkpoint?: string | LogPlace, fence?: number): Promise<void>;

  /**
   * Puts a text in the place of a row, whatever its guard says, and only where the row is still as it was seen; answers whether it was. `position` becomes that of the row,
   * where that is earlier; of equals this write stays.
   */
  abstract replace(environment: string, seen: StoredRow, text: string, position: string): Promise<boolean>;

  /**
   * Makes what `change` says of the texts of rows, and has them say so from `position` on: no write of before it brings back what they said. What is written meanwhile is
   * changed as well. Of these ids, or those that an index finds.
   */
  async rewrite(
    environment: string,
    rows: { readonly ids: readonly string[] } | { readonly where: NonNullable<PageRequest['where']> },
    position: string,
    change: (row: StoredRow<Row>) => string,
  ): Promise<void> {
    const one = async (id: string, found: StoredRow<Row> | null): Promise<void> => {
      for (let row = found; row !== null; row = await this.get(environment, id)) if (await this.replace(environment, row, change(row), position)) return;
    };
    if ('ids' in rows) {
      const found = await this.getMany(environment, rows.ids);
      for (const [index, id] of rows.ids.entries()) await one(id, found[index]!);
      return;
    }
    for (let after: string | undefined, more = true; more;) {
      const page = await this.page(environment, { where: rows.where, order: 'asc', limit: REWRITTEN_AT_ONCE, after });
      for (const row of page.rows) await one(row.id, row);
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }

  /** The log position up to which this table is filled; '' when it never was. */
  abstract checkpoint(): Promise<string>;

  /** The id of the record that was seen where the table is filled to; null where that is another position by now, or nobody noted the record, as earlier releases. */
  recordAt(_position: string): Promise<string | null> {
    return Promise.resolve(null);
  }

  /** Makes the table and its indexes again where they are gone: for whoever begins to fill it. Without it they are made once, at first use. */
  prepare(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Forgets all rows, tombstones and the checkpoint. The latest token stays: who was fenced before is fenced after. `fence`, when given, is stored: what was sent
   * under an earlier token and is carried out late changes no checkpoint of what is filled anew.
   * @throws Fenced when a later token is stored: then nothing is forgotten
   */
  abstract clear(fence?: number): Promise<void>;

  /** Removes rows, and leaves nothing: retention, not deletion. */
  abstract purge(environment: string, ids: readonly string[]): Promise<void>;

  /** Every row and tombstone in a stable order, for comparison with a rebuild and for backups; resumes internally, so it holds no long read. */
  abstract dump(): AsyncIterable<DumpedRow>;

  private refuseAbsent(name: string): never {
    const { noun } = this.definition;
    if (noun === undefined) throw new Error(`Rows of ${this.definition.name} are required, but nothing says what callers call them.`);
    throw notFound(noun, name);
  }
}

/** What is to be written to one table: the arguments of `Table.write`. */
export interface TableWrite {
  readonly table: Table<never>;
  readonly writes: readonly Write[];
  readonly checkpoint?: string | LogPlace | undefined;
  readonly fence?: number | undefined;
}

export function placeOf(checkpoint: string | LogPlace): LogPlace {
  return typeof checkpoint === 'string' ? { position: checkpoint, record: null } : checkpoint;
}

export abstract class ReadModels {
  /** Opens (and creates, with its declared indexes) a table. The same definition may be opened twice. */
  abstract table<Row>(definition: TableDefinition<Row>): Table<Row>;

  /**
   * Writes to several tables at once, each of them as `Table.write` does: embedded it is one transaction, and otherwise as few questions as can be. What one of them refuses
   * stops no other; answers, in their order, what became of each.
   */
  writeAll(given: readonly TableWrite[]): Promise<readonly PromiseSettledResult<void>[]> {
    return Promise.allSettled(given.map(({ table, writes, checkpoint, fence }) => table.write(writes, checkpoint, fence)));
  }

  /**
   * Removes a table with all that is in it, where there is one. A table that was opened before is not to be used any more. `fence`, when given, outlives it where
   * other processes may have it open: what one of them was about to store under an earlier token is no checkpoint of a table that has lost its rows.
   * @throws Fenced when a later token is stored: then whoever has that may lack rows
   */
  abstract drop(table: string, fence?: number): Promise<void>;
}
