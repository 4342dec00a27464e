/** Keys as they lie in the tree: compared byte by byte. A text as key has as many characters as bytes. */
export interface KeyEncoder<Key> {
  writeKey(key: Key, target: Uint8Array, start: number): number;
  readKey(source: Uint8Array, start: number, end: number): Key;
}

/** Bytes of a number in a key: up to 2^48, in the order of the numbers. */
export const NUMBER_BYTES = 6;
export const LAST_NUMBER = 2 ** 48 - 1;

export function writeNumber(value: number, target: Uint8Array, start: number): number {
  const high = Math.floor(value / 0x1_0000_0000);
  target[start] = high >>> 8;
  target[start + 1] = high;
  target[start + 2] = value >>> 24;
  target[start + 3] = value >>> 16;
  target[start + 4] = value >>> 8;
  target[start + 5] = value;
  return start + NUMBER_BYTES;
}

export function readNumber(source: Uint8Array, start: number): number {
  const high = source[start]! * 0x100 + source[start + 1]!;
  const low = ((source[start + 2]! << 24) | (source[start + 3]! << 16) | (source[start + 4]! << 8) | source[start + 5]!) >>> 0;
  return high * 0x1_0000_0000 + low;
}

export const numberKeys: KeyEncoder<number> = { writeKey: writeNumber, readKey: readNumber };

export const bufferKeys: KeyEncoder<Buffer> = {
  writeKey(key, target, start) {
    target.set(key, start);
    return start + key.length;
  },
  readKey: (source, start, end) => Buffer.from(source.subarray(start, end)),
};

/** Lie before and after every key that begins with a byte between them. */
export const LOWEST_KEY = Buffer.of(0);
export const HIGHEST_KEY = Buffer.alloc(32, 0xff);

/** Keys as text whose characters stand for bytes (`byteText`): cheap to build, compare and cut. */
export const byteTextKeys: KeyEncoder<string> = {
  // The binding clears a tree by an empty buffer as key.
  writeKey: (key, target, start) => (typeof key === 'string' ? start + (target as Buffer).write(key, start, 'latin1') : start),
  readKey: (source, start, end) => (source as Buffer).toString('latin1', start, end),
};

/** Bytes as such a text. */
export function bytesAsText(bytes: Buffer): string {
  return bytes.toString('latin1', 0, bytes.length);
}

const BEYOND_ASCII = /[^\0-\x7f]/;

/** The UTF-8 bytes of a text, one per character; an ASCII text is its own. */
export function byteText(text: string): string {
  return BEYOND_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text;
}

export function textOfBytes(bytes: string): string {
  return BEYOND_ASCII.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes;
}
