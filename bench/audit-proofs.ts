import { randomInt } from 'node:crypto';
import { inclusionSpans, rootByInclusion } from '#apps/audit-logs/src/tree/proofs';
import { leafHash } from '#apps/audit-logs/src/tree/merkle-hash';
import { TileRows } from '#apps/audit-logs/src/tree/tile-rows';
import { Edge, TILE_WIDTH, type Tile } from '#apps/audit-logs/src/tree/tiles';
import { leafDataOfRecord } from '#apps/audit-logs/src/tree/trail-tree';
import { TrailTrees } from '#apps/audit-logs/src/tree/trail-trees';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';

const OWNER = { environment: 'environment_01KF0000000000000000000000', organization: 'org_01KF0000000000000000000000' };
const STREAM = streamName('audit_trail', OWNER.environment, OWNER.organization);
/** Tiles that are stored at once. */
const STORED = 200;

/** What proofs of inclusion take, in milliseconds: the very first, which reads the edge of the tree as well, and then others, in order. */
export interface ProofTimes {
  readonly first: number;
  readonly others: readonly number[];
}

/** Of leaves of a tree of that size, each proof from the rows of tiles; the tree is put there tile by tile, without the events. @throws Error for a proof that leads to another root */
export async function proofTimes(directory: string, size: number, proofs: number): Promise<ProofTimes> {
  const storage = await LmdbStorage.open({ directory });
  try {
    const readModels = new LmdbReadModels(storage);
    await storeTree(new TileRows(readModels), size);
    const trees = new TrailTrees(new TrailOfLeaves(size), readModels);
    const times: number[] = [];
    for (let index = 0; index <= proofs; index++) {
      const leaf = randomInt(size);
      const began = performance.now();
      const tree = await trees.tree(OWNER);
      const hashes = await tree.hashes(inclusionSpans(leaf, size));
      times.push(performance.now() - began);
      const { root } = await tree.head();
      const proof = hashes.map((hash) => Buffer.from(hash, 'base64'));
      if (rootByInclusion(leaf, size, { hash: hashOf(leaf, size), proof })?.equals(root) !== true) throw new Error(`The proof of leaf ${leaf} is none.`);
    }
    return { first: times[0]!, others: times.slice(1).toSorted((one, another) => one - another) };
  } finally {
    await storage.close();
  }
}

async function storeTree(rows: TileRows, size: number): Promise<void> {
  const edge = Edge.empty();
  const full: Tile[] = [];
  const store = async (tiles: readonly Tile[]): Promise<void> =>
    rows.write(
      OWNER,
      tiles.map(({ hashes, ...place }) => ({ ...place, hashes: Buffer.concat(hashes) })),
    );
  for (let leaf = 0; leaf < size; leaf++) {
    full.push(...edge.append(hashOf(leaf, size)));
    if (full.length >= STORED) await store(full.splice(0));
  }
  // Above the leaves, tiles are stored while they grow.
  for (let level = 1; TILE_WIDTH ** level <= size; level++) {
    const index = Math.floor(size / TILE_WIDTH ** (level + 1));
    const growing: Buffer[] = [];
    for (let at = index * TILE_WIDTH, hash = edge.at(level, at); hash !== undefined; hash = edge.at(level, ++at)) growing.push(hash);
    if (growing.length > 0) full.push({ level, index, hashes: growing });
  }
  await store(full);
}

/** Behind the full tiles as the log has it; what these are made of nobody asks. */
function hashOf(leaf: number, size: number): Buffer {
  return leafHash(leaf < size - (size % TILE_WIDTH) ? String(leaf) : leafDataOfRecord(recordOf(leaf)));
}

function recordOf(leaf: number): RecordedEvent {
  const id = `01KF${String(leaf).padStart(22, '0')}`;
  return {
    ...{
      id,
      stream: STREAM,
      version: leaf + 1,
      position: String(leaf + 1).padStart(16, '0'),
      type: 'audit_event.recorded',
      shape: 1,
      subject: null,
      public: [],
    },
    data: { id: `audit_event_${id}`, commitment: String(leaf).padStart(43, 'A') },
    meta: { environment: OWNER.environment, actor: { id: 'bench', source: 'bench', name: null }, requestId: '', commandId: '', at: 1_767_225_600_000 + leaf },
  };
}

/** What the log would say of a trail of that length. Nobody asks it for anything else. */
class TrailOfLeaves extends EventStore {
  constructor(private readonly size: number) {
    super();
  }

  last(): Promise<RecordedEvent> {
    return Promise.resolve(recordOf(this.size - 1));
  }

  readBackwards(_stream: string, count: number, from = this.size): Promise<readonly RecordedEvent[]> {
    return Promise.resolve(Array.from({ length: count }, (_, back) => recordOf(from - 1 - back)));
  }

  read(): never {
    throw unasked();
  }

  append(): never {
    throw unasked();
  }

  head(): never {
    throw unasked();
  }

  subscribe(): never {
    throw unasked();
  }
}

function unasked(): Error {
  return new Error('Proofs ask the log for this?');
}
