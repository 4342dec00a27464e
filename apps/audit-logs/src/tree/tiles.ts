import { HASH_BYTES, rootOfLevel } from './merkle-hash.ts';
import type { Nodes } from './spans.ts';

// The tiles of https://c2sp.org/tlog-tiles: level 0 has the hashes of the leaves, each level above has those of whole tiles of the one below.

/** Hashes in a full tile. */
export const TILE_WIDTH = 256;
const TILE_HEIGHT = 8;

/** A full tile: nothing of it ever changes. */
export interface Tile {
  readonly level: number;
  readonly index: number;
  readonly hashes: readonly Buffer[];
}

/** Full tiles of one tree. */
export interface Tiles {
  read(level: number, index: number): Promise<Buffer>;
  /** What each of these tiles is in the level above. */
  roots(level: number, first: number, count: number): Promise<readonly Buffer[]>;
}

/** The hashes at the right edge of a tree, of each level those that fill no tile yet. All that has to be in memory for a tree to grow. */
export class Edge {
  private constructor(
    private leaves: number,
    private readonly levels: Buffer[][],
  ) {}

  static empty(): Edge {
    return new Edge(0, []);
  }

  /** Of a tree whose full tiles are there; `leavesBehindTiles`: the hashes of the leaves that follow them. */
  static async restored(fullTiles: number, leavesBehindTiles: readonly Buffer[], tiles: Tiles): Promise<Edge> {
    if (leavesBehindTiles.length >= TILE_WIDTH) throw new RangeError(`${leavesBehindTiles.length} leaves fill a tile.`);
    const levels: Buffer[][] = [[...leavesBehindTiles]];
    for (let below = fullTiles; below > 0; below = Math.floor(below / TILE_WIDTH)) {
      const first = below - (below % TILE_WIDTH);
      const level = levels.length - 1;
      levels.push([...(await tiles.roots(level, first, below - first))]);
    }
    return new Edge(fullTiles * TILE_WIDTH + leavesBehindTiles.length, levels);
  }

  /** As it is now, for whoever reads it while it grows. */
  copy(): Edge {
    return new Edge(
      this.leaves,
      this.levels.map((hashes) => [...hashes]),
    );
  }

  get size(): number {
    return this.leaves;
  }

  /** One more leaf; the tiles that are full by it, the lowest first. */
  append(leaf: Buffer): readonly Tile[] {
    const filled: Tile[] = [];
    let count = (this.leaves += 1);
    let hash = leaf;
    for (let level = 0; ; level += 1) {
      const hashes = (this.levels[level] ??= []);
      hashes.push(hash);
      if (hashes.length < TILE_WIDTH) return filled;
      count /= TILE_WIDTH;
      filled.push({ level, index: count - 1, hashes });
      this.levels[level] = [];
      hash = tileRoot(Buffer.concat(hashes));
    }
  }

  /** A hash that is in no full tile; undefined for one that is, or is not there. */
  at(level: number, index: number): Buffer | undefined {
    const hashes = this.levels[level];
    const first = Math.floor(this.leaves / TILE_WIDTH ** (level + 1)) * TILE_WIDTH;
    return hashes?.[index - first];
  }
}

/** Tiles that are remembered at a time: of each level those that a walk from left to right is at. */
const REMEMBERED = 64;

/** The nodes of a tree by its full tiles, and its edge for what is behind them. Made for one question, it reads a tile once; a walk over the whole tree keeps no more of them than it needs. */
export class TreeNodes implements Nodes {
  private readonly read = new Map<string, Promise<Buffer>>();

  constructor(
    private readonly tiles: Pick<Tiles, 'read'>,
    private readonly edge: Edge,
  ) {}

  async node(level: number, index: number): Promise<Buffer> {
    const tileLevel = Math.floor(level / TILE_HEIGHT);
    const width = 2 ** (level % TILE_HEIGHT);
    const first = index * width;
    const onEdge = this.edge.at(tileLevel, first);
    if (onEdge !== undefined) return rootOfLevel(Buffer.concat(Array.from({ length: width }, (_, at) => this.edge.at(tileLevel, first + at)!)));
    const tile = await this.tile(tileLevel, Math.floor(first / TILE_WIDTH));
    const from = (first % TILE_WIDTH) * HASH_BYTES;
    return rootOfLevel(tile.subarray(from, from + width * HASH_BYTES));
  }

  private tile(level: number, index: number): Promise<Buffer> {
    const name = `${level}/${index}`;
    let tile = this.read.get(name);
    // The one that was asked for longest ago makes room.
    if (tile !== undefined) this.read.delete(name);
    else if (this.read.size === REMEMBERED) this.read.delete(this.read.keys().next().value!);
    this.read.set(name, (tile ??= this.tiles.read(level, index)));
    return tile;
  }
}

/** The one hash that a full tile is in the level above. */
export function tileRoot(tile: Buffer): Buffer {
  if (tile.length !== TILE_WIDTH * HASH_BYTES) throw new RangeError(`A tile has ${tile.length} bytes.`);
  return rootOfLevel(tile);
}

export function hashesOf(bytes: Buffer): readonly Buffer[] {
  return Array.from({ length: bytes.length / HASH_BYTES }, (_, at) => bytes.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES));
}
