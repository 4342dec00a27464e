import { Injectable } from '@nestjs/common';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { ReadModels } from '#libs/read-models/src/read-models';
import { AUDIT_TRAIL } from '../domain/audit-trail.decider.ts';
import type { TrailOwner } from '../sealing/trail-keys.ts';
import type { TreeHead } from './proofs.ts';
import { rootOf, rootsOf, type Nodes, type Span } from './spans.ts';
import { Edge, TILE_WIDTH, TreeNodes } from './tiles.ts';
import { TileRows } from './tile-rows.ts';
import { leavesOf, TrailTiles } from './trail-tree.ts';

/** Edges that are remembered: of up to 8 KB for each level of their trees. */
const REMEMBERED = 1_000;
/** An edge that is further behind is read anew. */
const MOST_BEHIND = 2 * TILE_WIDTH;

/** A tree as it was when it was asked for. */
export class TrailTree {
  constructor(
    readonly size: number,
    readonly nodes: Nodes,
  ) {}

  /** As it was when it had so many leaves. */
  async head(size = this.size): Promise<TreeHead> {
    return { size, root: await rootOf({ from: 0, to: size }, this.nodes) };
  }

  async hashes(spans: readonly Span[]): Promise<readonly string[]> {
    return (await rootsOf(spans, this.nodes)).map((hash) => hash.toString('base64'));
  }
}

/** The trees of trails. */
@Injectable()
export class TrailTrees {
  readonly rows: TileRows;
  private readonly edges = new BoundedMap<Edge>(REMEMBERED);
  /** Of each trail one at a time brings its edge up to date. */
  private readonly growing = new Map<string, Promise<unknown>>();

  constructor(
    private readonly events: EventStore,
    readModels: ReadModels,
  ) {
    this.rows = new TileRows(readModels);
  }

  /** With everything that was recorded before. @throws DomainError `service_unavailable` */
  async tree(owner: TrailOwner): Promise<TrailTree> {
    const stream = streamName(AUDIT_TRAIL, owner.environment, owner.organization);
    const before = this.growing.get(stream);
    const grown = (before ?? Promise.resolve()).catch(() => {}).then(() => this.grown(owner, stream));
    this.growing.set(stream, grown);
    try {
      return await grown;
    } finally {
      if (this.growing.get(stream) === grown) this.growing.delete(stream);
    }
  }

  tiles(owner: TrailOwner, mostMade?: number): TrailTiles {
    return new TrailTiles(owner, { events: this.events, rows: this.rows }, mostMade);
  }

  /** Makes all tiles of a trail anew out of the log, and nothing that is remembered counts. */
  async remake(owner: TrailOwner): Promise<void> {
    const { environment, organization } = owner;
    const stream = streamName(AUDIT_TRAIL, environment, organization);
    const size = (await this.events.last(stream))?.version ?? 0;
    for (let index = 0; index < Math.floor(size / TILE_WIDTH); index += 1) await this.tiles(owner).store(index);
    this.edges.delete(environment, stream);
  }

  private async grown(owner: TrailOwner, stream: string): Promise<TrailTree> {
    const { environment } = owner;
    const size = (await this.events.last(stream))?.version ?? 0;
    const known = this.edges.get(environment, stream);
    const edge = known === undefined || known.size > size || size - known.size > MOST_BEHIND ? await this.restored(owner, size) : known;
    for (const leaf of await leavesOf(this.events, owner, edge.size, size - edge.size)) edge.append(leaf);
    this.edges.set(environment, stream, edge);
    return new TrailTree(size, new TreeNodes(this.tiles(owner), edge.copy()));
  }

  private async restored(owner: TrailOwner, size: number): Promise<Edge> {
    const full = Math.floor(size / TILE_WIDTH);
    return Edge.restored(full, await leavesOf(this.events, owner, full * TILE_WIDTH, size % TILE_WIDTH), this.tiles(owner));
  }
}
