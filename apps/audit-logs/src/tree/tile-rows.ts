import type { ReadModels, Table, TableDefinition } from '#libs/read-models/src/read-models';
import { contentOf } from '#libs/read-models/src/read-models';
import type { TrailOwner } from '../sealing/trail-keys.ts';

/** Hashes next to each other, base64: 256 where the tile is full, and fewer only above the leaves. */
type TileRow = string;

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
}

function rowIdOf({ organization }: TrailOwner, { level, index }: TilePlace): string {
  return `${organization}.${level}.${index}`;
}
