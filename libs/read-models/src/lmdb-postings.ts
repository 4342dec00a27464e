import type { Arena } from '#libs/platform/src/storage/arena';
import type { Tree } from '#libs/platform/src/storage/lmdb-environment';

/** Ranks per chunk: about 2 KB, half a page. */
const CHUNK = 48;
const SEPARATOR = '\x01';

/** From `lower` (inclusive) to `upper` (exclusive). */
export interface Window {
  readonly lower: string;
  readonly upper: string;
}

/**
 * Which rows an index has under a value, in order: a list of ranks, cut into chunks. A chunk's key is the list's name and the chunk's first rank, its value
 * the other ranks. Chunks of a list never overlap; so a rank belongs to the last chunk that begins at or before it.
 *
 * Chunks are what makes an index with a dozen entries per row affordable: rows that are written together cost one put per list, not one per entry.
 */
export class Postings {
  constructor(
    private readonly db: Tree<string, string>,
    private readonly arena: Arena,
  ) {}

  /** At most `limit` accepted ranks of the window, from its beginning or, descending, from its end. */
  ranks(list: string, { lower, upper }: Window, ascending: boolean, limit: number, accepts: (rank: string) => boolean): string[] {
    const found: string[] = [];
    const range = ascending ? { start: this.floor(list, lower)?.key ?? list + lower, end: list + upper } : { start: list + upper, end: list, reverse: true };
    for (const { key, value } of this.db.getRange(range)) {
      const ranks = ranksOf(list, key, value);
      if (!ascending) ranks.reverse();
      for (const rank of ranks) {
        if (ascending ? rank >= upper : rank < lower) return found;
        if ((ascending ? rank < lower : rank >= upper) || !accepts(rank)) continue;
        found.push(rank);
        if (found.length === limit) return found;
      }
    }
    return found;
  }

  /** `behindAll`: every rank to add lies behind every rank that any list of this shard holds; then nothing has to be read. `adds` is in order. */
  change(list: string, adds: readonly string[], removes: readonly string[], behindAll: boolean): void {
    if (behindAll && removes.length === 0) return this.write(list, adds);
    const chunks = new Map<string, string[]>();
    const chunkOf = (rank: string): string[] | undefined => {
      const floor = this.floor(list, rank);
      if (!floor) return undefined;
      const known = chunks.get(floor.key) ?? ranksOf(list, floor.key, floor.value);
      chunks.set(floor.key, known);
      return known;
    };
    for (const rank of removes) {
      const chunk = chunkOf(rank);
      const index = chunk?.indexOf(rank) ?? -1;
      if (index >= 0) chunk!.splice(index, 1);
    }
    const first: string[] = [];
    for (const rank of adds) {
      const chunk = chunkOf(rank) ?? first;
      const index = chunk.findIndex((other) => other >= rank);
      if (index < 0) chunk.push(rank);
      else if (chunk[index] !== rank) chunk.splice(index, 0, rank);
    }
    for (const [key, ranks] of chunks) {
      if (list + ranks[0] !== key) void this.db.remove(key);
      this.write(list, ranks);
    }
    this.write(list, first);
  }

  /** The last rank of a list; '' for an empty one. */
  last(list: string): string {
    return this.ranks(list, { lower: '', upper: '\xff' }, false, 1, () => true)[0] ?? '';
  }

  private write(list: string, ranks: readonly string[]): void {
    for (let start = 0; start < ranks.length; start += CHUNK) {
      void this.db.put(list + ranks[start]!, this.arena.latin1(ranks.slice(start + 1, start + CHUNK).join(SEPARATOR)));
    }
  }

  private floor(list: string, rank: string): { readonly key: string; readonly value: string } | undefined {
    if (rank === '') return undefined;
    for (const entry of this.db.getRange({ start: list + rank, end: list, reverse: true, limit: 1 })) return entry;
    return undefined;
  }
}

function ranksOf(list: string, key: string, value: string): string[] {
  const first = key.slice(list.length);
  return value === '' ? [first] : [first, ...value.split(SEPARATOR)];
}
