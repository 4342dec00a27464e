import { BASE_32 } from '#libs/platform/src/ids';

/** What a character stands for; more than 31 where no ULID holds it. */
const VALUE = new Uint8Array(128).fill(255);
for (let value = 0; value < 32; value++) VALUE[BASE_32.charCodeAt(value)] = value;

const ULID_LENGTH = 26;
const WORDS = 4;
const CHARACTERS_PER_WORD = 6;
const FIRST_SIZE = 16;
const FIRST_SLOTS = 32;

/** The ULID that was read last, in words of 32 bits: nothing is allocated where an id is only looked up. */
const read = new Uint32Array(WORDS);

/** Reads `<prefix>_<ULID>` for the look-ups that follow. False where the text is no such id. */
export function readId(prefix: string, id: string): boolean {
  const start = prefix.length + 1;
  if (id.length !== start + ULID_LENGTH || id.charCodeAt(start - 1) !== 95 || !id.startsWith(prefix)) return false;
  const first = VALUE[id.charCodeAt(start) & 127]!;
  const second = VALUE[id.charCodeAt(start + 1) & 127]!;
  let all = (first > 7 ? 255 : 0) | second | (id.charCodeAt(start) > 127 || id.charCodeAt(start + 1) > 127 ? 255 : 0);
  // The first two characters hold eight bits: two for the top of each word.
  const tops = (first << 5) | second;
  for (let word = 0, at = start + 2; word < WORDS; word++) {
    let bits = (tops >> (6 - 2 * word)) & 3;
    for (let end = at + CHARACTERS_PER_WORD; at < end; at++) {
      const code = id.charCodeAt(at);
      const value = code > 127 ? 255 : VALUE[code]!;
      all |= value;
      bits = (bits << 5) | (value & 31);
    }
    read[word] = bits;
  }
  return all < 32;
}

/** A hash of the id that was read last, of 32 bits. */
export function hashOfRead(): number {
  return hashOf(read[0]!, read[1]!, read[2]!, read[3]!);
}

function hashOf(one: number, two: number, three: number, four: number): number {
  let hash = Math.imul(one ^ (two >>> 15), 0x9e3779b1) ^ Math.imul(two ^ (three >>> 13), 0x85ebca77);
  hash = Math.imul(hash ^ three ^ (hash >>> 16), 0xc2b2ae3d) ^ Math.imul(four ^ (hash >>> 11), 0x27d4eb2f);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/** An array as long as is needed and a quarter more, so that adding to it one by one stays cheap, and little of it is empty. */
export function grown<Numbers extends Int32Array | Uint32Array | Uint8Array>(numbers: Numbers, length: number): Numbers {
  if (length <= numbers.length) return numbers;
  const larger = new (numbers.constructor as new (length: number) => Numbers)(Math.max(FIRST_SIZE, Math.ceil(length * 1.25)));
  larger.set(numbers);
  return larger;
}

/**
 * Numbers 0, 1, 2 … for ids of one kind, in the order in which they came; an id keeps its number for as long as the table lives. 16 bytes an id, and 5 to 11 for
 * finding it.
 */
export class IdTable {
  size = 0;
  private words = new Uint32Array(0);
  /** Numbers, each one more than it is; 0: free. */
  private slots = new Int32Array(FIRST_SLOTS);

  constructor(private readonly prefix: string) {}

  get bytes(): number {
    return this.words.byteLength + this.slots.byteLength;
  }

  /** -1 where the id is unknown, or none of this kind. */
  numberOf(id: string): number {
    return readId(this.prefix, id) ? this.numberOfRead(hashOfRead()) : -1;
  }

  /** Of the id that was read last, by its hash. */
  numberOfRead(hash: number): number {
    return this.slots[this.find(hash)]! - 1;
  }

  /** @throws RangeError where it is no id of this kind, which no event holds */
  add(id: string): number {
    if (!readId(this.prefix, id)) throw new RangeError(`'${id}' is no ${this.prefix} id.`);
    const slot = this.find(hashOfRead());
    if (this.slots[slot] !== 0) return this.slots[slot]! - 1;
    const number = this.size++;
    this.words = grown(this.words, this.size * WORDS);
    this.words.set(read, number * WORDS);
    this.slots[slot] = number + 1;
    if (this.size * 4 > this.slots.length * 3) this.rehash(this.slots.length * 2);
    return number;
  }

  hashOf(number: number): number {
    const at = number * WORDS;
    return hashOf(this.words[at]!, this.words[at + 1]!, this.words[at + 2]!, this.words[at + 3]!);
  }

  idOf(number: number): string {
    const at = number * WORDS;
    let tops = 0;
    let text = '';
    for (let word = 0; word < WORDS; word++) {
      const bits = this.words[at + word]!;
      tops = (tops << 2) | (bits >>> 30);
      for (let shift = 25; shift >= 0; shift -= 5) text += BASE_32[(bits >>> shift) & 31]!;
    }
    return `${this.prefix}_${BASE_32[tops >> 5]!}${BASE_32[tops & 31]!}${text}`;
  }

  /** By the order of ids as text. */
  compare(one: number, other: number): number {
    const { words } = this;
    const [a, b] = [one * WORDS, other * WORDS];
    // The first two characters are spread over the tops of the words.
    const tops = topsAt(words, a) - topsAt(words, b);
    if (tops !== 0) return tops;
    for (let word = 0; word < WORDS; word++) {
      const difference = (words[a + word]! & 0x3fffffff) - (words[b + word]! & 0x3fffffff);
      if (difference !== 0) return difference;
    }
    return 0;
  }

  private find(hash: number): number {
    const { slots, words } = this;
    const mask = slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const number = slots[slot]! - 1;
      if (number < 0) return slot;
      const at = number * WORDS;
      if (words[at] === read[0] && words[at + 1] === read[1] && words[at + 2] === read[2] && words[at + 3] === read[3]) return slot;
    }
  }

  private rehash(length: number): void {
    const slots = new Int32Array(length);
    for (let number = 0; number < this.size; number++) {
      let slot = this.hashOf(number) & (length - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (length - 1);
      slots[slot] = number + 1;
    }
    this.slots = slots;
  }
}

function topsAt(words: Uint32Array, at: number): number {
  return ((words[at]! >>> 30) << 6) | ((words[at + 1]! >>> 30) << 4) | ((words[at + 2]! >>> 30) << 2) | (words[at + 3]! >>> 30);
}
