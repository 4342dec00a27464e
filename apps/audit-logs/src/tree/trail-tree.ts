import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import type { EventStore, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { environmentOf, streamKeyOf, streamName } from '#libs/event-sourcing/src/log/naming';
import { unavailable } from '#libs/platform/src/domain-error';
import { AUDIT_TRAIL, type AuditTrailEvent } from '../domain/audit-trail.decider.ts';
import type { TrailOwner } from '../sealing/trail-keys.ts';
import { leafDataOf } from './leaf.ts';
import { HASH_BYTES, leafHash } from './merkle-hash.ts';
import { hashesOf, TILE_WIDTH, tileRoot, type Tiles } from './tiles.ts';
import type { TileRows } from './tile-rows.ts';

/** Tiles that one question may make out of the log, where they are not stored yet: more are made before, by whoever stores them. */
const MOST_MADE = 64;

export function trailOf(stream: string): TrailOwner {
  return { environment: environmentOf(stream), organization: streamKeyOf(stream) };
}

/** What the leaf of a record is the hash of. */
export function leafDataOfRecord(record: RecordedEvent): string {
  const { environment, organization } = trailOf(record.stream);
  const { data, meta } = record as RecordedEvent & Recorded<AuditTrailEvent>;
  return leafDataOf({
    environment,
    organization_id: organization,
    id: data.id,
    received_at: new Date(meta.at).toISOString(),
    commitment: data.commitment,
  });
}

/** The hashes of leaves, as the log has them: `count` of them from leaf `first` on. @throws DomainError `service_unavailable` where one of these records is not there */
export async function leavesOf(events: EventStore, { environment, organization }: TrailOwner, first: number, count: number): Promise<readonly Buffer[]> {
  if (count === 0) return [];
  const records = await events.readBackwards(streamName(AUDIT_TRAIL, environment, organization), count, first + count);
  if (records.length !== count || records.some(({ version }, at) => version !== first + count - at)) throw unavailable('A record of this trail is missing.');
  return records.map((record) => leafHash(leafDataOfRecord(record))).reverse();
}

/** The tiles of one trail: as they are stored, and where they are not yet, as the log makes them. */
export class TrailTiles implements Tiles {
  private made = 0;

  constructor(
    private readonly owner: TrailOwner,
    private readonly needs: { readonly events: EventStore; readonly rows: TileRows },
    private readonly mostMade = MOST_MADE,
  ) {}

  async read(level: number, index: number): Promise<Buffer> {
    const stored = await this.needs.rows.read(this.owner, { level, index });
    if (stored?.length === TILE_WIDTH * HASH_BYTES) return stored;
    this.made += 1;
    if (this.made > this.mostMade) throw unavailable('The tree of this trail is being made.');
    const { events } = this.needs;
    const hashes =
      level === 0 ? await leavesOf(events, this.owner, index * TILE_WIDTH, TILE_WIDTH) : await this.roots(level - 1, index * TILE_WIDTH, TILE_WIDTH);
    return Buffer.concat(hashes);
  }

  async roots(level: number, first: number, count: number): Promise<readonly Buffer[]> {
    const above = await this.needs.rows.read(this.owner, { level: level + 1, index: Math.floor(first / TILE_WIDTH) });
    const stored = above === null ? [] : hashesOf(above).slice(0, count);
    const roots = [...stored];
    for (let at = stored.length; at < count; at += 1) roots.push(tileRoot(await this.read(level, first + at)));
    return roots;
  }

  /** Stores the tile of leaves that is full, and what follows from it above: each level has one more hash, or is full by it. */
  async store(index: number): Promise<void> {
    const { events, rows } = this.needs;
    let hashes = Buffer.concat(await leavesOf(events, this.owner, index * TILE_WIDTH, TILE_WIDTH));
    const tiles = [{ level: 0, index, hashes }];
    for (let at = index, level = 1; ; level += 1) {
      const place = at % TILE_WIDTH;
      const above = { level, index: Math.floor(at / TILE_WIDTH) };
      const root = tileRoot(hashes);
      const before = Buffer.concat(await this.roots(level - 1, at - place, place));
      const stored = await rows.read(this.owner, above);
      // Somebody has been further already.
      if (stored !== null && stored.length > before.length && stored.subarray(0, before.length + HASH_BYTES).equals(Buffer.concat([before, root]))) break;
      hashes = Buffer.concat([before, root]);
      tiles.push({ ...above, hashes });
      if (place < TILE_WIDTH - 1) break;
      at = above.index;
    }
    await rows.write(this.owner, tiles);
  }
}
