import { nodeHash } from './merkle-hash.ts';
import { splitOf, type Span } from './spans.ts';

// Proofs as RFC 9162 has them (2.1.3 and 2.1.4). Sizes may be beyond 32 bits, so nothing here shifts bits.

/** Whose hashes prove that a leaf is in the tree of this size, from the leaf upwards. */
export function inclusionSpans(leaf: number, size: number): readonly Span[] {
  if (!(leaf >= 0 && leaf < size)) throw new RangeError(`A tree of ${size} has no leaf ${leaf}.`);
  const spans: Span[] = [];
  for (let { from, to }: Span = { from: 0, to: size }; to - from > 1;) {
    const split = splitOf({ from, to });
    const isLeft = leaf < split;
    spans.push(isLeft ? { from: split, to } : { from, to: split });
    if (isLeft) to = split;
    else from = split;
  }
  return spans.reverse();
}

/** Whose hashes prove that the tree of `newSize` begins with that of `oldSize`. */
export function consistencySpans(oldSize: number, newSize: number): readonly Span[] {
  if (!(oldSize > 0 && oldSize <= newSize)) throw new RangeError(`A tree of ${newSize} does not begin with one of ${oldSize}.`);
  const spans: Span[] = [];
  let [from, to] = [0, newSize];
  while (to !== oldSize) {
    const split = splitOf({ from, to });
    const isLeft = oldSize <= split;
    spans.push(isLeft ? { from: split, to } : { from, to: split });
    if (isLeft) to = split;
    else from = split;
  }
  // Where the old tree is whole in the new one, its root is known to who asks.
  if (from > 0) spans.push({ from, to });
  return spans.reverse();
}

/** The root of the tree in which this leaf has these hashes beside its way up; null where the proof is no proof for that place. */
export function rootByInclusion(leaf: number, size: number, { hash, proof }: { readonly hash: Buffer; readonly proof: readonly Buffer[] }): Buffer | null {
  if (!(leaf >= 0 && leaf < size)) return null;
  let [index, last, root] = [leaf, size - 1, hash];
  for (const beside of proof) {
    if (last === 0) return null;
    if (isOdd(index) || index === last) {
      root = nodeHash(beside, root);
      while (!isOdd(index) && index !== 0) [index, last] = [index / 2, half(last)];
    } else {
      root = nodeHash(root, beside);
    }
    [index, last] = [half(index), half(last)];
  }
  return last === 0 ? root : null;
}

export interface TreeHead {
  readonly size: number;
  readonly root: Buffer;
}

/** Whether the proof shows that the newer tree has all of the older at its beginning, unaltered. */
export function isConsistent(older: TreeHead, newer: TreeHead, proof: readonly Buffer[]): boolean {
  if (!(older.size > 0 && older.size <= newer.size)) return false;
  if (older.size === newer.size) return proof.length === 0 && older.root.equals(newer.root);
  let [index, last] = [older.size - 1, newer.size - 1];
  while (isOdd(index)) [index, last] = [half(index), half(last)];
  // A whole subtree of the newer one: it begins with the root that is known.
  const [first, ...others] = index === 0 ? [older.root, ...proof] : proof;
  if (first === undefined) return false;
  let [oldRoot, newRoot] = [first, first];
  for (const beside of others) {
    if (last === 0) return false;
    if (isOdd(index) || index === last) {
      oldRoot = nodeHash(beside, oldRoot);
      newRoot = nodeHash(beside, newRoot);
      while (!isOdd(index) && index !== 0) [index, last] = [index / 2, half(last)];
    } else {
      newRoot = nodeHash(newRoot, beside);
    }
    [index, last] = [half(index), half(last)];
  }
  return last === 0 && oldRoot.equals(older.root) && newRoot.equals(newer.root);
}

function isOdd(value: number): boolean {
  return value % 2 === 1;
}

function half(value: number): number {
  return Math.floor(value / 2);
}
