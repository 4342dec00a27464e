/**
 * Deflates short texts (RFC 1951) that share most of what they say with a dictionary, into one block with the codes that need no tree, and inflates such blocks. Whatever inflates with that
 * dictionary reads them. zlib sets itself up for each text, and hashes or copies the whole dictionary, which takes longer than such a text itself; here that is done once.
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

const LITERALS = codesFor(256, codeOf);
/** With the bits that follow them. */
const LENGTHS = codesFor(LONGEST + 1, (length) => {
  if (length < 3) return [0, 0];
  const [symbol, extra, extraBits] = length === LONGEST ? ([285, 0, 0] as const) : symbolOf(length - 3, 2, 257);
  const [code, bits] = codeOf(symbol);
  return [code | (extra << bits), bits + extraBits];
});
const DISTANCES = codesFor(MOST_BYTES + 1, (distance) => {
  if (distance === 0) return [0, 0];
  const [symbol, extra, extraBits] = symbolOf(distance - 1, 1, 0);
  const [code, bits] = fixed(symbol, 5);
  return [code | (extra << bits), bits + extraBits];
});
const END = 256;
const END_BITS = 7;
/** The last block, and the kind of its codes. */
const [HEAD, HEAD_BITS] = [0b011, 3];

/** By the next nine bits: the symbol that they begin with, and how many of them are its own. */
const SYMBOLS = symbolsByBits();
/** By symbol, of lengths from 257 on. */
const [LENGTHS_OF, DISTANCES_OF] = [groupsOf(29, 2, 3), groupsOf(30, 1, 1)];
const REVERSED = Uint8Array.from({ length: 32 }, (_, code) => fixed(code, 5)[0]);
LENGTHS_OF[28] = { least: LONGEST, extraBits: 0 };

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
    let [held, count] = [HEAD, HEAD_BITS];
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

/** One dictionary, and the room of one text at a time. */
export class Inflater {
  private readonly window: Buffer;

  /** `longest`: of a text, in bytes. */
  constructor(
    private readonly dictionary: Buffer,
    longest: number,
  ) {
    this.window = Buffer.concat([dictionary, Buffer.alloc(longest)]);
  }

  /** Null where another program can inflate it, if any: it is too long, no single block with those codes, or nothing that a `Deflater` writes. */
  inflate(bytes: Uint8Array): string | null {
    const { window } = this;
    const start = this.dictionary.length;
    let end = start;
    let next = 0;
    let [held, count] = [0, 0];
    // Bits behind the end are zeros: seven of them are the end, if a late one.
    const fill = (): void => {
      for (; count <= 16; count += 8) held |= (bytes[next++] ?? 0) << count;
    };
    const take = (bits: number): number => {
      const taken = held & ((1 << bits) - 1);
      held >>>= bits;
      count -= bits;
      return taken;
    };
    fill();
    if (take(HEAD_BITS) !== HEAD) return null;
    for (;;) {
      fill();
      const code = SYMBOLS[held & 511]!;
      const symbol = code >>> 4;
      take(code & 15);
      if (symbol < END) {
        if (end === window.length) return null;
        window[end++] = symbol;
        continue;
      }
      if (symbol === END) return next * 8 - count > bytes.length * 8 ? null : window.toString('utf8', start, end);
      const length = LENGTHS_OF[symbol - END - 1];
      if (length === undefined) return null;
      const repeated = length.least + take(length.extraBits);
      fill();
      const distance = DISTANCES_OF[REVERSED[take(5)]!];
      if (distance === undefined) return null;
      fill();
      const from = end - distance.least - take(distance.extraBits);
      if (from < 0 || end + repeated > window.length) return null;
      for (let at = from; at < from + repeated; at++) window[end++] = window[at]!;
    }
  }
}

function codesFor(count: number, codeOf: (value: number) => readonly [bits: number, length: number]): Codes {
  const codes = { bits: new Uint16Array(count), lengths: new Uint8Array(count) };
  for (let value = 0; value < count; value++) [codes.bits[value], codes.lengths[value]] = codeOf(value) as [number, number];
  return codes;
}

/** Of literals, the end and lengths (RFC 1951, 3.2.6). */
function codeOf(symbol: number): readonly [bits: number, length: number] {
  if (symbol < 144) return fixed(0x30 + symbol, 8);
  if (symbol < 256) return fixed(0x190 + symbol - 144, 9);
  return symbol < 280 ? fixed(symbol - 256, 7) : fixed(0xc0 + symbol - 280, 8);
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

/** What `symbolOf` made: the least value of each symbol. */
function groupsOf(count: number, groupBits: number, least: number): { readonly least: number; readonly extraBits: number }[] {
  const groups: { readonly least: number; readonly extraBits: number }[] = [];
  for (let symbol = 0, next = least; symbol < count; symbol++) {
    const extraBits = Math.max(0, (symbol >> groupBits) - 1);
    groups.push({ least: next, extraBits });
    next += 1 << extraBits;
  }
  return groups;
}

function symbolsByBits(): Uint16Array {
  const symbols = new Uint16Array(512);
  for (let symbol = 0; symbol < 288; symbol++) {
    const [code, length] = codeOf(symbol);
    for (let bits = code; bits < 512; bits += 1 << length) symbols[bits] = (symbol << 4) | length;
  }
  return symbols;
}
