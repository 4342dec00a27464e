/**
 * Deflates short texts (RFC 1951) that share most of what they say with a dictionary, into one block with the codes that need no tree. Whatever inflates with that dictionary reads it. zlib
 * sets itself up and hashes the whole dictionary for each text, which takes longer than such a text itself; here the dictionary is hashed once.
 */

/** No distance is longer: readers keep a window of 4 KiB, of which zlib leaves a part to itself. */
const MOST_BYTES = 3_800;
const [SHORTEST, LONGEST] = [4, 258];
/** Places in the dictionary that are compared. */
const TRIES = 8;
const HASH_BITS = 12;
const PLACE_BITS = 12;
const LAST_EPOCH = 2 ** (31 - PLACE_BITS) - 1;

/** A code as it is written, the first bit lowest, and how many bits it has. */
interface Codes {
  readonly bits: Uint16Array;
  readonly lengths: Uint8Array;
}

const LITERALS = codesFor(256, (byte) => (byte < 144 ? fixed(0x30 + byte, 8) : fixed(0x190 + byte - 144, 9)));
/** With the bits that follow them. */
const LENGTHS = codesFor(LONGEST + 1, (length) => {
  if (length < 3) return [0, 0];
  const [symbol, extra, extraBits] = length === LONGEST ? ([285, 0, 0] as const) : symbolOf(length - 3, 2, 257);
  const [code, bits] = symbol < 280 ? fixed(symbol - 256, 7) : fixed(0xc0 + symbol - 280, 8);
  return [code | (extra << bits), bits + extraBits];
});
const DISTANCES = codesFor(MOST_BYTES + 1, (distance) => {
  if (distance === 0) return [0, 0];
  const [symbol, extra, extraBits] = symbolOf(distance - 1, 1, 0);
  const [code, bits] = fixed(symbol, 5);
  return [code | (extra << bits), bits + extraBits];
});
const END_BITS = 7;

/** One dictionary, and the room of one text at a time. */
export class Deflater {
  /** The longest text, in bytes. */
  readonly longest: number;
  private readonly window = Buffer.alloc(MOST_BYTES);
  /** Where the dictionary has such four bytes last, plus one; and before each place. */
  private readonly last = new Int16Array(2 ** HASH_BITS);
  private readonly before = new Int16Array(MOST_BYTES);
  /** Where the text has them: epoch and place. What an earlier text has left is of another epoch. */
  private readonly places = new Int32Array(2 ** HASH_BITS);
  private epoch = 0;
  private readonly output: Uint8Array;

  constructor(private readonly dictionary: Buffer) {
    this.longest = MOST_BYTES - dictionary.length;
    // A byte takes nine bits at the most.
    this.output = new Uint8Array(this.longest * 2);
    this.window.set(dictionary);
    for (let at = 0; at + SHORTEST <= dictionary.length; at++) {
      const hash = this.hashAt(at);
      this.before[at] = this.last[hash]!;
      this.last[hash] = at + 1;
    }
  }

  /** Holds until the next text; null for one that is too long. */
  deflate(text: string): Uint8Array | null {
    if (text.length > this.longest || Buffer.byteLength(text) > this.longest) return null;
    const { window, output, places } = this;
    const start = this.dictionary.length;
    const end = start + window.write(text, start);
    if (this.epoch === LAST_EPOCH) {
      places.fill(0);
      this.epoch = 0;
    }
    const epoch = ++this.epoch << PLACE_BITS;
    let written = 0;
    // The last block, and the kind of its codes.
    let [held, count] = [0b011, 3];
    for (let at = start; at < end;) {
      let [length, distance] = [0, 0];
      if (at + SHORTEST <= end) {
        const hash = this.hashAt(at);
        const place = places[hash]!;
        places[hash] = epoch | at;
        if (place >= epoch) {
          const from = place - epoch;
          const same = this.sameAt(from, at, end);
          if (same >= SHORTEST) [length, distance] = [same, at - from];
        }
        for (let [next, tries] = [this.last[hash]!, TRIES]; next > 0 && tries > 0; next = this.before[next - 1]!, tries--) {
          const from = next - 1;
          if (length > 0 && window[from + length] !== window[at + length]) continue;
          const same = this.sameAt(from, at, end);
          if (same >= SHORTEST && same > length) [length, distance] = [same, at - from];
        }
      }
      if (length === 0) {
        const byte = window[at++]!;
        held |= LITERALS.bits[byte]! << count;
        count += LITERALS.lengths[byte]!;
      } else {
        at += length;
        held |= LENGTHS.bits[length]! << count;
        count += LENGTHS.lengths[length]!;
        for (; count >= 8; count -= 8, held >>>= 8) output[written++] = held;
        held |= DISTANCES.bits[distance]! << count;
        count += DISTANCES.lengths[distance]!;
      }
      for (; count >= 8; count -= 8, held >>>= 8) output[written++] = held;
    }
    // The code of the end is seven zeros.
    for (count += END_BITS; count > 0; count -= 8, held >>>= 8) output[written++] = held;
    return output.subarray(0, written);
  }

  private hashAt(at: number): number {
    const { window } = this;
    const bytes = window[at]! | (window[at + 1]! << 8) | (window[at + 2]! << 16) | (window[at + 3]! << 24);
    return Math.imul(bytes, 0x9e3779b1) >>> (32 - HASH_BITS);
  }

  /** How many bytes are the same from both places on. */
  private sameAt(from: number, at: number, end: number): number {
    const { window } = this;
    const most = Math.min(LONGEST, end - at);
    let same = 0;
    while (same < most && window[from + same] === window[at + same]) same++;
    return same;
  }
}

function codesFor(count: number, codeOf: (value: number) => readonly [bits: number, length: number]): Codes {
  const codes = { bits: new Uint16Array(count), lengths: new Uint8Array(count) };
  for (let value = 0; value < count; value++) [codes.bits[value], codes.lengths[value]] = codeOf(value) as [number, number];
  return codes;
}

/** Codes are written with their first bit highest, everything else with its lowest. */
function fixed(code: number, length: number): readonly [bits: number, length: number] {
  let reversed = 0;
  for (let bit = 0; bit < length; bit++) reversed |= ((code >>> bit) & 1) << (length - 1 - bit);
  return [reversed, length];
}

/** Symbols come in groups of 2^`groupBits`, of which each but the first two stands for twice as many values as the group before. */
function symbolOf(value: number, groupBits: number, first: number): readonly [symbol: number, extra: number, extraBits: number] {
  const extraBits = Math.max(0, 31 - Math.clz32(value | 1) - groupBits);
  return [first + (extraBits << groupBits) + (value >>> extraBits), value & ((1 << extraBits) - 1), extraBits];
}
