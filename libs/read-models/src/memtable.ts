import type { Window } from './lmdb-postings.ts';

/** A row as it will be stored, and what of it is stored already. */
export interface MemoryRow {
  readonly id: string;
  /** Orders the pages; see `LmdbTable.rankOf`. */
  readonly rank: string;
  /** As it lies in the tree, and outside of what is collected as garbage. Null: deleted, or purged, or the tree has it. */
  bytes: Buffer | null;
  /** Null: there is a row. */
  readonly gone: 'deleted' | 'purged' | null;
  /** The tree of rows has it, and every reader sees it there. */
  isStored: boolean;
  readonly position: string;
  readonly revision: number;
  /** The lists that hold the row, named by index and value, as `listsIn` reads them: a text for each of a dozen would outlive several collections of garbage. */
  readonly lists: string;
  readonly stored: StoredLists;
}

/** The lists in LMDB that hold a row before it is brought into its own. */
export interface StoredLists {
  /** As those of a row. */
  readonly lists: string;
  readonly rank: string;
  /** False after a crash: it may be in some of them only, and in some that it should be in. */
  readonly isSure: boolean;
}

/** The list of all rows. */
export const ALL_ROWS = '\0';
/** UTF-8 has no such byte. */
export const BETWEEN_LISTS = '\xfc';
const NONE: readonly string[] = [];

/**
 * Rows that are written and not yet in LMDB. Lists are filled only when somebody reads or stores them; an entry whose row was written again since is passed
 * over, so nothing is ever searched to be removed.
 */
export class Memtable {
  readonly rows = new Map<string, MemoryRow>();
  private readonly lists = new Map<string, MemoryRow[]>();
  private readonly unsorted = new Set<MemoryRow[]>();
  private unlisted: MemoryRow[] = [];

  set(row: MemoryRow): void {
    this.rows.set(row.id, row);
    if (row.gone === null) this.unlisted.push(row);
  }

  /** At most `limit` rows of a list, from the window's beginning or, descending, from its end. */
  find(list: string, { lower, upper }: Window, ascending: boolean, limit: number, accepts: (id: string) => boolean): MemoryRow[] {
    const rows = this.list(list);
    const found: MemoryRow[] = [];
    const step = ascending ? 1 : -1;
    for (
      let index = ascending ? lowerBound(rows, lower) : lowerBound(rows, upper) - 1;
      index >= 0 && index < rows.length && found.length < limit;
      index += step
    ) {
      const row = rows[index]!;
      if (ascending ? row.rank >= upper : row.rank < lower) break;
      if (this.rows.get(row.id) === row && accepts(row.id)) found.push(row);
    }
    return found;
  }

  private list(name: string): readonly MemoryRow[] {
    for (const row of this.unlisted) {
      this.enlist(ALL_ROWS, row);
      for (const list of listsIn(row.lists)) if (list !== ALL_ROWS) this.enlist(list, row);
    }
    this.unlisted = [];
    const rows = this.lists.get(name) ?? [];
    if (this.unsorted.delete(rows)) rows.sort((one, other) => (one.rank < other.rank ? -1 : one.rank > other.rank ? 1 : 0));
    return rows;
  }

  private enlist(name: string, row: MemoryRow): void {
    const rows = this.lists.get(name);
    if (!rows) this.lists.set(name, [row]);
    else {
      // Most rows come in the order of their ids.
      if (rows.at(-1)!.rank > row.rank) this.unsorted.add(rows);
      rows.push(row);
    }
  }
}

/** The names of lists in such a text. */
export function listsIn(lists: string): readonly string[] {
  return lists === '' ? NONE : lists.split(BETWEEN_LISTS);
}

/** The index of the first row whose rank is not below `rank`. */
function lowerBound(rows: readonly MemoryRow[], rank: string): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rows[middle]!.rank < rank) low = middle + 1;
    else high = middle;
  }
  return low;
}
