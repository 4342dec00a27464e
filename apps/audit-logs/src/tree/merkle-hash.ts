import { createHash } from 'node:crypto';

/** SHA-256. */
export const HASH_BYTES = 32;

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** The root of a tree without leaves (RFC 9162, 2.1.1). */
export const EMPTY_ROOT: Buffer = createHash('sha256').digest();

/** What stands for an entry in the tree. A leaf cannot pass for a node: what is hashed begins with another byte. */
export function leafHash(data: Uint8Array | string): Buffer {
  return createHash('sha256').update(LEAF).update(data).digest();
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return createHash('sha256').update(NODE).update(left).update(right).digest();
}
