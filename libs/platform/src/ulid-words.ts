import { BASE_32, ULID_LENGTH } from './ids.ts';

// ULIDs as four words of 32 bits, the first the most significant: for those that keep many, and look for them often.

export const ULID_WORDS = 4;
/** What a character stands for; more than 31 where no ULID holds it. */
const VALUES = new Uint8Array(256).fill(255);
for (let value = 0; value < 32; value++) VALUES[BASE_32.charCodeAt(value)] = value;
const CHARACTERS = Buffer.from(BASE_32, 'latin1');
const values = new Uint8Array(ULID_LENGTH);
const characters = Buffer.alloc(ULID_LENGTH);

/** Reads the id `<prefix>_<ULID>`. False, and nothing said of the words, where the text is none. */
export function readUlid(prefix: string, id: string, words: Uint32Array): boolean {
  const start = prefix.length + 1;
  if (id.length !== start + ULID_LENGTH || id.charCodeAt(start - 1) !== 95 || !id.startsWith(prefix)) return false;
  let all = 0;
  for (let index = 0; index < ULID_LENGTH; index++) {
    const code = id.charCodeAt(start + index);
    // What is no character of one byte is none of an id.
    const value = code > 255 ? 255 : VALUES[code]!;
    values[index] = value;
    all |= value;
  }
  if (all > 31 || values[0]! > 7) return false;
  const v = values;
  words[0] = (v[0]! << 29) | (v[1]! << 24) | (v[2]! << 19) | (v[3]! << 14) | (v[4]! << 9) | (v[5]! << 4) | (v[6]! >> 1);
  words[1] = (v[6]! << 31) | (v[7]! << 26) | (v[8]! << 21) | (v[9]! << 16) | (v[10]! << 11) | (v[11]! << 6) | (v[12]! << 1) | (v[13]! >> 4);
  words[2] = (v[13]! << 28) | (v[14]! << 23) | (v[15]! << 18) | (v[16]! << 13) | (v[17]! << 8) | (v[18]! << 3) | (v[19]! >> 2);
  words[3] = (v[19]! << 30) | (v[20]! << 25) | (v[21]! << 20) | (v[22]! << 15) | (v[23]! << 10) | (v[24]! << 5) | v[25]!;
  return true;
}

/** The ULID whose words begin at `at`. */
export function ulidOf(words: Uint32Array, at: number): string {
  let [word, left] = [words[at]!, 32];
  let next = at + 1;
  // The first character holds three bits, the others five.
  characters[0] = CHARACTERS[word >>> 29]!;
  left -= 3;
  for (let index = 1; index < ULID_LENGTH; index++) {
    let value;
    if (left >= 5) {
      left -= 5;
      value = (word >>> left) & 31;
    } else {
      const missing = 5 - left;
      value = (word << missing) & 31;
      word = words[next++]!;
      left = 32 - missing;
      value |= word >>> left;
    }
    characters[index] = CHARACTERS[value]!;
  }
  return characters.toString('latin1');
}

/** By the order of ULIDs as text: less than 0 where the first comes first. */
export function compareUlids(words: Uint32Array, at: number, others: Uint32Array, otherAt: number): number {
  for (let index = 0; index < ULID_WORDS; index++) if (words[at + index] !== others[otherAt + index]) return words[at + index]! - others[otherAt + index]!;
  return 0;
}

/** 32 bits of which each depends on all of the ULID. */
export function hashOfUlid(words: Uint32Array, at: number): number {
  let hash = Math.imul(words[at]!, 0x9e3779b1) ^ Math.imul(words[at + 1]!, 0x85ebca77) ^ Math.imul(words[at + 2]!, 0xc2b2ae3d);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) ^ Math.imul(words[at + 3]!, 0x27d4eb2f);
  hash = Math.imul(hash ^ (hash >>> 13), 0x297a2d39);
  return (hash ^ (hash >>> 16)) >>> 0;
}
