import type { Arena } from '#libs/platform/src/storage/arena';
import type { Tree } from '#libs/platform/src/storage/lmdb-environment';

/** Ranks per chunk: about 2 KB, half a page. */
const CHUNK = 48;
const SEPARATOR = '\x01';
/** Most lists have one rank: that stands in the key. */
const NO_MORE = Buffer.allocUnsafeSlow(1).subarray(1);

/** A chunk that is being changed, by the key that it has in the tree; '' where it has none yet. */
interface Chunk {
  readonly key: string;
  readonly ranks: string[];
}

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
    // By the key that each chunk has in the tree; what comes before all of them has none yet.
    const chunks = new Map<string, string[]>();
    for (const rank of removes) {
      const ranks = this.chunkAt(list, rank, chunks).ranks;
      const index = placeOf(rank, ranks);
      if (ranks[index] === rank) ranks.splice(index, 1);
    }
    let chunk: Chunk | null = null;
    let end: string | null | undefined;
    for (const rank of adds) {
      // Ranks that are written together are neighbours: most belong where the one before did. Where that ends nobody has to know of one alone.
      if (chunk !== null && end === undefined) end = this.next(list, chunk.key === '' ? list : chunk.key + '\0');
      if (chunk === null || (end != null && rank >= end)) {
        chunk = this.chunkAt(list, rank, chunks);
        end = undefined;
      }
      const index = placeOf(rank, chunk.ranks);
      if (index === chunk.ranks.length) chunk.ranks.push(rank);
      else if (chunk.ranks[index] !== rank) chunk.ranks.splice(index, 0, rank);
    }
    for (const [key, ranks] of chunks) {
      if (key !== '' && list + ranks[0] !== key) this.db.remove(key);
      this.write(list, ranks);
    }
  }

  /** The last rank of a list; '' for an empty one. */
  last(list: string): string {
    return this.ranks(list, { lower: '', upper: '\xff' }, false, 1, () => true)[0] ?? '';
  }

  private write(list: string, ranks: readonly string[]): void {
    if (ranks.length === 1) return this.db.put(list + ranks[0]!, NO_MORE);
    for (let start = 0; start < ranks.length; start += CHUNK) {
      this.db.put(list + ranks[start]!, this.arena.latin1(ranks.slice(start + 1, start + CHUNK).join(SEPARATOR)));
    }
  }

  /** The chunk that a rank belongs to, as the changes so far leave it. */
  private chunkAt(list: string, rank: string, chunks: Map<string, string[]>): Chunk {
    const floor = this.floor(list, rank);
    const key = floor?.key ?? '';
    let ranks = chunks.get(key);
    if (ranks === undefined) chunks.set(key, (ranks = floor === undefined ? [] : ranksOf(list, floor.key, floor.value)));
    return { key, ranks };
  }

  /** Where the next chunk from `key` on begins; null: there is none. */
  private next(list: string, key: string): string | null {
    for (const next of this.db.getRange({ start: key, end: list + '\xff', limit: 1 })) return next.key.slice(list.length);
    return null;
  }

  private floor(list: string, rank: string): { readonly key: string; readonly value: string } | undefined {
    if (rank === '') return undefined;
    for (const entry of this.db.getRange({ start: list + rank, end: list, reverse: true, limit: 1 })) return entry;
    return undefined;
  }
}

/** The index of the first rank that is not lower; the end, as for most that are added, is looked at first. */
function placeOf(rank: string, ranks: readonly string[]): number {
  let [from, to] = [0, ranks.length];
  if (to === 0 || ranks[to - 1]! < rank) return to;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (ranks[middle]! < rank) from = middle + 1;
    else to = middle;
  }
  return from;
}

function ranksOf(list: string, key: string, value: string): string[] {
  const first = key.slice(list.length);
  return value === '' ? [first] : [first, ...value.split(SEPARATOR)];
}
