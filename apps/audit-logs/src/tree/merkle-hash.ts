import { createHash, hash } from 'node:crypto';

/** SHA-256. */
export const HASH_BYTES = 32;

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** The root of a tree without leaves (RFC 9162, 2.1.1). */
export const EMPTY_ROOT: Buffer = createHash('sha256').digest();

/** What stands for an entry in the tree. A leaf cannot pass for a node: what is hashed begins with another byte. */
export function leafHash(data: Uint8Array | string): Buffer {
  return typeof data === 'string' ? hash('sha256', `\0${data}`, 'buffer') : createHash('sha256').update(LEAF).update(data).digest();
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([NODE, left, right]), 'buffer');
}

/** The root of a complete subtree by the hashes of one of its levels, next to each other. No node of the 255 of a tile is a buffer of its own, which would take three times as long and leave as many to collect. */
export function rootOfLevel(hashes: Buffer): Buffer {
  const nodeData = Buffer.alloc(1 + 2 * HASH_BYTES, NODE);
  let level = hashes;
  while (level.length > HASH_BYTES) {
    const above = Buffer.allocUnsafe(level.length / 2);
    for (let at = 0; at < above.length; at += HASH_BYTES) {
      level.copy(nodeData, 1, 2 * at, 2 * (at + HASH_BYTES));
      above.write(hash('sha256', nodeData, 'binary'), at, 'latin1');
    }
    level = above;
  }
  return level;
}
