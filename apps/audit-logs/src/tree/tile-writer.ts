import { Injectable, type OnModuleInit } from '@nestjs/common';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { TILE_WIDTH } from './tiles.ts';
import { trailOf } from './trail-tree.ts';
import { TrailTrees } from './trail-trees.ts';

/** Stores each tile when it is full, by the last of its leaves. */
@Injectable()
export class TileWriter implements OnModuleInit {
  constructor(
    private readonly followers: LeasedFollowers,
    private readonly trees: TrailTrees,
  ) {}

  onModuleInit(): void {
    this.followers.add({
      name: 'audit.tiles',
      table: this.trees.rows.table,
      types: ['audit_event.recorded'],
      isFor: ({ version }) => version % TILE_WIDTH === 0,
      isRepeatable: true,
      handle: async (records, signal) => {
        for (const { stream, version } of records) if (!signal.aborted) await this.trees.tiles(trailOf(stream)).store(version / TILE_WIDTH - 1);
        return true;
      },
    });
  }
}
