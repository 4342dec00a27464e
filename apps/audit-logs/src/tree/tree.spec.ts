import independent from '@transmute/rfc9162';
import fc from 'fast-check';
import { seedOf } from '#libs/testing/src/seed';
import { EMPTY_ROOT, leafHash } from './merkle-hash.ts';
import { MultiproofCheck, MultiproofPlan, ProofTooShort } from './multiproof.ts';
import { consistencySpans, inclusionSpans, isConsistent, rootByInclusion, type TreeHead } from './proofs.ts';
import { rootOf, rootsOf, type Span } from './spans.ts';
import { Edge, TILE_WIDTH, tileRoot, TreeNodes, type Tile, type Tiles } from './tiles.ts';

const { RFC9162 } = independent;

/** Not a decision of ours: another's reading of the RFC, word by word. */
class Independent {
  constructor(readonly entries: readonly Buffer[]) {}

  root = async (size: number): Promise<Buffer> => Buffer.from(await RFC9162.MTH(this.entries.slice(0, size)));
  path = async (leaf: number, size: number): Promise<readonly Buffer[]> =>
    (await RFC9162.PATH(leaf, this.entries.slice(0, size))).map((hash) => Buffer.from(hash));
  /** It proves what the RFC leaves out, since whoever asks knows it: the old root, where that is a whole subtree of the new tree. */
  consistency = async (from: number, to: number): Promise<readonly Buffer[]> =>
    (await RFC9162.PROOF(from, this.entries.slice(0, to))).slice(Number.isInteger(Math.log2(from)) || from === to ? 1 : 0).map((hash) => Buffer.from(hash));
}

/** Of `entry 0`, `entry 1`, … as `sumdb/tlog` of `golang.org/x/mod` v0.22.0 computes it: the other one takes seconds for so many. */
const ROOT_OF_66051 = 'J2UMw9ejV89GutcFouhgPipl2fflN5YrglwTEtWIZm0=';

/** Full tiles as they were handed out, and how many were read. */
class KeptTiles implements Tiles {
  readonly kept = new Map<string, Buffer>();
  reads = 0;

  keep(tiles: readonly Tile[]): void {
    for (const { level, index, hashes } of tiles) {
      expect(hashes).toHaveLength(TILE_WIDTH);
      this.kept.set(`${level}/${index}`, Buffer.concat(hashes));
    }
  }

  async roots(level: number, first: number, count: number): Promise<readonly Buffer[]> {
    return Promise.all(Array.from({ length: count }, async (_, at) => tileRoot(await this.read(level, first + at))));
  }

  async read(level: number, index: number): Promise<Buffer> {
    this.reads += 1;
    const tile = this.kept.get(`${level}/${index}`);
    if (tile === undefined) throw new Error(`There is no tile ${level}/${index}.`);
    return Promise.resolve(tile);
  }
}

function grown(entries: readonly Buffer[]): { readonly tiles: KeptTiles; readonly edge: Edge; readonly nodes: TreeNodes } {
  const tiles = new KeptTiles();
  const edge = Edge.empty();
  for (const entry of entries) tiles.keep(edge.append(leafHash(entry)));
  return { tiles, edge, nodes: new TreeNodes(tiles, edge) };
}

const entriesOf = (size: number, name = 'entry'): readonly Buffer[] => Array.from({ length: size }, (_, at) => Buffer.from(`${name} ${at}`));
const whole = (size: number): Span => ({ from: 0, to: size });

async function proofFor(leaves: readonly number[], size: number, nodes: TreeNodes): Promise<readonly Buffer[]> {
  const plan = new MultiproofPlan(size);
  return rootsOf([...leaves.flatMap((leaf) => plan.before(leaf)), ...plan.rest()], nodes);
}

function rootByMany(
  size: number,
  leaves: readonly (readonly [leaf: number, hash: Buffer])[],
  proof: readonly Buffer[],
): { readonly root: Buffer; readonly left: number } {
  const hashes = [...proof];
  const check = new MultiproofCheck(size, () => hashes.shift() ?? null);
  for (const [leaf, hash] of leaves) check.add(leaf, hash);
  return { root: check.root(), left: hashes.length };
}

/** Of the whole table each is taken one at a time: a hash that is another, missing, doubled, or in another's place. */
function* spoiled(proof: readonly Buffer[]): Generator<readonly Buffer[]> {
  for (const [at, hash] of proof.entries()) {
    yield proof.with(at, leafHash(hash));
    yield proof.toSpliced(at, 1);
    yield proof.toSpliced(at, 0, hash);
    if (at > 0) yield proof.with(at, proof[at - 1]!).with(at - 1, hash);
  }
}

const seed = seedOf('tree');

describe('a tree of RFC 9162', () => {
  const entries = entriesOf(70);
  const other = new Independent(entries);
  const { nodes, edge } = grown(entries);

  it('has the roots that others compute, from none to many leaves', async () => {
    expect(EMPTY_ROOT).toEqual(await other.root(0));
    for (let size = 0; size <= 70; size += 1) expect(await rootOf(whole(size), nodes)).toEqual(await other.root(size));
  });

  it('proves what others prove, and is believed by them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 70 }), fc.nat(), async (size, any) => {
        const leaf = any % size;
        const [root, hash] = [await other.root(size), leafHash(entries[leaf]!)];
        const proof = await rootsOf(inclusionSpans(leaf, size), nodes);
        expect(proof).toEqual(await other.path(leaf, size));
        expect(await RFC9162.verifyInclusionProof(root, hash, { log_id: '', tree_size: size, leaf_index: leaf, inclusion_path: [...proof] })).toBe(true);
        expect(rootByInclusion(leaf, size, { hash, proof })).toEqual(root);

        const from = leaf + 1;
        const older: TreeHead = { size: from, root: await other.root(from) };
        const consistency = await rootsOf(consistencySpans(from, size), nodes);
        expect(consistency).toEqual(await other.consistency(from, size));
        expect(isConsistent(older, { size, root }, consistency)).toBe(true);
      }),
      { seed, numRuns: 40 },
    );
  });

  it('believes no proof that was tampered with', async () => {
    for (const [leaf, size] of [
      [0, 1],
      [5, 7],
      [6, 7],
      [31, 64],
      [63, 70],
    ] as const) {
      const [root, hash] = [await other.root(size), leafHash(entries[leaf]!)];
      const proof = await other.path(leaf, size);
      for (const wrong of spoiled(proof)) expect(rootByInclusion(leaf, size, { hash, proof: wrong })).not.toEqual(root);
      expect(rootByInclusion(leaf, size, { hash: leafHash(Buffer.from('another')), proof })).not.toEqual(root);
      for (let place = -1; place <= size; place += 1) if (place !== leaf) expect(rootByInclusion(place, size, { hash, proof })).not.toEqual(root);
    }
    for (const [from, to] of [
      [1, 2],
      [3, 7],
      [4, 7],
      [32, 33],
      [63, 70],
    ] as const) {
      const [older, newer] = [
        { size: from, root: await other.root(from) },
        { size: to, root: await other.root(to) },
      ];
      const proof = await other.consistency(from, to);
      for (const wrong of spoiled(proof)) expect(isConsistent(older, newer, wrong)).toBe(false);
      expect(isConsistent(older, newer, [])).toBe(false);
      expect(isConsistent({ ...older, root: newer.root }, newer, proof)).toBe(false);
      expect(isConsistent(older, { ...newer, root: older.root }, proof)).toBe(false);
      expect(isConsistent(newer, older, proof)).toBe(false);
      expect(isConsistent(older, { ...newer, size: 100 * to }, proof)).toBe(false);
      expect(isConsistent({ ...older, size: 0 }, newer, proof)).toBe(false);
    }
    const same = { size: 7, root: await other.root(7) };
    expect(isConsistent(same, same, [])).toBe(true);
    expect(isConsistent(same, same, [same.root])).toBe(false);
    expect(isConsistent(same, { ...same, root: EMPTY_ROOT }, [])).toBe(false);
    expect(() => inclusionSpans(7, 7)).toThrow(RangeError);
    expect(() => consistencySpans(0, 7)).toThrow(RangeError);
    expect(() => consistencySpans(8, 7)).toThrow(RangeError);
  });

  it('is the same by its tiles, on both sides of where they are full, and beyond 65,536 leaves', async () => {
    const many = entriesOf(TILE_WIDTH ** 2 + 2 * TILE_WIDTH + 3);
    const large = grown(many);
    expect((await rootOf(whole(many.length), large.nodes)).toString('base64')).toBe(ROOT_OF_66051);
    expect([...large.tiles.kept.keys()].slice(-4)).toEqual(['0/255', '1/0', '0/256', '0/257']);
    const leaf = 65_535;
    const proof = await rootsOf(inclusionSpans(leaf, many.length), new TreeNodes(large.tiles, large.edge));
    expect(rootByInclusion(leaf, many.length, { hash: leafHash(many[leaf]!), proof })).toEqual(await rootOf(whole(many.length), large.nodes));

    // A process that begins with what is stored, and goes on as the one that never ended.
    for (const size of [0, 1, 255, 256, 257, 600, 65_535, 65_536, many.length]) {
      const full = Math.floor(size / TILE_WIDTH);
      const behind = many.slice(full * TILE_WIDTH, size).map((entry) => leafHash(entry));
      const restored = await Edge.restored(full, behind, large.tiles);
      expect(restored.size).toBe(size);
      const next = many[size] ?? Buffer.from('next');
      const before = await rootOf(whole(size), new TreeNodes(large.tiles, restored));
      expect(before).toEqual(await rootOf(whole(size), new TreeNodes(large.tiles, large.edge)));
      const filled = restored.append(leafHash(next));
      expect(filled.map(({ level, index }) => `${level}/${index}`)).toEqual(size === 65_535 ? ['0/255', '1/0'] : size === 255 ? ['0/0'] : []);
      for (const { level, index, hashes } of filled) expect(Buffer.concat(hashes)).toEqual(await large.tiles.read(level, index));
    }
    await expect(Edge.restored(0, Array<Buffer>(256).fill(EMPTY_ROOT), large.tiles)).rejects.toThrow(RangeError);
  });

  it('reads a tile once for a proof, and no more of them than the tree is high', async () => {
    const size = 3 * TILE_WIDTH + 5;
    const { tiles, edge: at } = grown(entriesOf(size));
    await rootsOf(inclusionSpans(300, size), new TreeNodes(tiles, at));
    expect(tiles.reads).toBe(1);
  });

  it('knows no node that is not there', async () => {
    expect(edge.at(0, 70)).toBeUndefined();
    await expect(nodes.node(0, 70)).rejects.toThrow('There is no tile 0/0.');
  });
});

describe('a proof for many leaves', () => {
  const size = 70;
  const entries = entriesOf(size);
  const { nodes } = grown(entries);
  const hashesOf = (leaves: readonly number[]) => leaves.map((leaf) => [leaf, leafHash(entries[leaf]!)] as const);
  const chosen = fc.uniqueArray(fc.nat({ max: size - 1 }), { maxLength: 12 }).map((leaves) => leaves.sort((one, another) => one - another));

  it('gives the root, and takes each of its hashes', async () => {
    await fc.assert(
      fc.asyncProperty(chosen, fc.integer({ min: 1, max: size }), async (any, of) => {
        const leaves = any.filter((leaf) => leaf < of);
        const proof = await proofFor(leaves, of, nodes);
        expect(rootByMany(of, hashesOf(leaves), proof)).toEqual({ root: await rootOf(whole(of), nodes), left: 0 });
      }),
      { seed, numRuns: 60 },
    );
    expect(rootByMany(0, [], [])).toEqual({ root: EMPTY_ROOT, left: 0 });
  });

  it('is that of inclusion for one leaf, nothing for all, and the root for none', async () => {
    const one = await proofFor([37], size, nodes);
    const inclusion = await new Independent(entries).path(37, size);
    expect(new Set(one.map(String))).toEqual(new Set(inclusion.map(String)));
    expect(one).toHaveLength(inclusion.length);
    expect(await proofFor(Array.from(entries.keys()), size, nodes)).toEqual([]);
    expect(await proofFor([], size, nodes)).toEqual([await rootOf(whole(size), nodes)]);
  });

  it('finds each event that was altered, removed, put elsewhere, or added', async () => {
    const leaves = [3, 4, 5, 17, 40, 69];
    const [proof, root] = [await proofFor(leaves, size, nodes), await rootOf(whole(size), nodes)];
    const genuine = hashesOf(leaves);
    const holds = (rows: readonly (readonly [number, Buffer])[], hashes = proof): boolean => {
      try {
        const { root: found, left } = rootByMany(size, rows, hashes);
        return left === 0 && found.equals(root);
      } catch (error) {
        if (error instanceof RangeError) return false;
        throw error;
      }
    };
    expect(holds(genuine)).toBe(true);
    for (const [at, [leaf, hash]] of genuine.entries()) {
      expect(holds(genuine.with(at, [leaf, leafHash(Buffer.from('another'))]))).toBe(false);
      expect(holds(genuine.toSpliced(at, 1))).toBe(false);
      expect(holds(genuine.toSpliced(at, 0, [leaf, hash]))).toBe(false);
      expect(holds(genuine.with(at, [leaf + 1, hash]))).toBe(false);
      if (at > 0) {
        const [before, beforeHash] = genuine[at - 1]!;
        expect(holds(genuine.with(at, [leaf, beforeHash]).with(at - 1, [before, hash]))).toBe(false);
        expect(holds(genuine.with(at, [before, beforeHash]).with(at - 1, [leaf, hash]))).toBe(false);
      }
    }
    expect(holds([...genuine, [70, EMPTY_ROOT]])).toBe(false);
    expect(holds([[0, leafHash('added')], ...genuine])).toBe(false);
    for (const wrong of spoiled(proof)) expect(holds(genuine, wrong)).toBe(false);
    expect(() => rootByMany(size, genuine, proof.slice(1))).toThrow(ProofTooShort);
    expect(() => rootByMany(size, genuine, [Buffer.alloc(31), ...proof.slice(1)])).toThrow(ProofTooShort);
  });
});
