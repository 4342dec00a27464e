import { EMPTY_ROOT, nodeHash } from './merkle-hash.ts';

/** The leaves `from` up to and without `to`, as far as they hang under one node of a tree. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The roots of complete subtrees: `node(level, index)` has the 2^level leaves from index · 2^level on under it. Leaves are of level 0. */
export interface Nodes {
  node(level: number, index: number): Promise<Buffer>;
}

/** Where a node of two leaves or more parts: its left side is the largest complete subtree that leaves something to the right (RFC 9162, 2.1.1). */
export function splitOf({ from, to }: Span): number {
  let left = 1;
  while (left * 2 < to - from) left *= 2;
  return from + left;
}

/** The hash of a node, be it at the right edge, where no complete subtree is. */
export async function rootOf(span: Span, nodes: Nodes): Promise<Buffer> {
  const size = span.to - span.from;
  if (size === 0) return EMPTY_ROOT;
  const level = Math.round(Math.log2(size));
  if (2 ** level === size) return nodes.node(level, span.from / size);
  const split = splitOf(span);
  const [left, right] = await Promise.all([rootOf({ from: span.from, to: split }, nodes), rootOf({ from: split, to: span.to }, nodes)]);
  return nodeHash(left, right);
}

export async function rootsOf(spans: readonly Span[], nodes: Nodes): Promise<readonly Buffer[]> {
  return Promise.all(spans.map((span) => rootOf(span, nodes)));
}
