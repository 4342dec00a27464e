import type { ReadModels, Table, TableDefinition } from '#libs/read-models/src/read-models';
import { contentOf } from '#libs/read-models/src/read-models';
import { TILE_WIDTH } from './tiles.ts';
import type { TrailOwner } from '../sealing/trail-keys.ts';

/** Hashes next to each other, base64: 256 where the tile is full, and fewer only above the leaves. */
type TileRow = string;

const PURGED_AT_ONCE = 500;

/** The log says all of it again, so nothing has to be kept of it with a backup. */
const TILES: TableDefinition<TileRow> = { name: 'audit_tiles', indexes: [], guard: 'none', rebuildable: false, isMadeAnew: true };

/** Where a tile lies in its tree. */
export interface TilePlace {
  readonly level: number;
  readonly index: number;
}

/** Tiles as rows. */
export class TileRows {
  readonly table: Table<TileRow>;

  constructor(readModels: ReadModels) {
    this.table = readModels.table(TILES);
  }

  /** Null where there is none yet. */
  async read(owner: TrailOwner, place: TilePlace): Promise<Buffer | null> {
    const row = await this.table.get(owner.environment, rowIdOf(owner, place));
    return row === null ? null : Buffer.from(contentOf(row), 'base64');
  }

  async write(owner: TrailOwner, tiles: readonly (TilePlace & { readonly hashes: Buffer })[]): Promise<void> {
    await this.table.write(
      tiles.map(({ hashes, ...place }) => ({
        environment: owner.environment,
        id: rowIdOf(owner, place),
        position: '',
        revision: 0,
        text: JSON.stringify(hashes.toString('base64')),
      })),
    );
  }

  /** Of a tree that had so many leaves. */
  async purge(owner: TrailOwner, size: number): Promise<void> {
    const ids: string[] = [];
    const purge = async (): Promise<void> => this.table.purge(owner.environment, ids.splice(0));
    // Leaves have full tiles alone; above them the last one may be growing.
    let full = Math.floor(size / TILE_WIDTH);
    for (let level = 0, tiles = full; tiles > 0; level += 1) {
      for (let index = 0; index < tiles; index += 1) {
        ids.push(rowIdOf(owner, { level, index }));
        if (ids.length === PURGED_AT_ONCE) await purge();
      }
      tiles = Math.ceil(full / TILE_WIDTH);
      full = Math.floor(full / TILE_WIDTH);
    }
    await purge();
  }
}

function rowIdOf({ organization }: TrailOwner, { level, index }: TilePlace): string {
  return `${organization}.${level}.${index}`;
}
