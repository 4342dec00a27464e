import { compareUlids, hashOfUlid, readUlid, ULID_WORDS, ulidOf } from '#libs/platform/src/ulid-words';

const FIRST_SIZE = 16;
const FIRST_SLOTS = 32;

/** What nothing is in yet, for all tables: an array takes 200 bytes when it is empty too, and an organization has some forty. */
export const NO_INT32 = new Int32Array(0);
const NO_UINT32 = new Uint32Array(0);
export const NO_UINT8 = new Uint8Array(0);

/** The ULID that was read last: nothing is allocated where an id is only looked up. */
const read = new Uint32Array(ULID_WORDS);

/** Reads `<prefix>_<ULID>` for the look-ups that follow. False where the text is no such id. */
export function readId(prefix: string, id: string): boolean {
  return readUlid(prefix, id, read);
}

/** A hash of the id that was read last, of 32 bits. */
export function hashOfRead(): number {
  return hashOfUlid(read, 0);
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
  private words = NO_UINT32;
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
    this.words = grown(this.words, this.size * ULID_WORDS);
    this.words.set(read, number * ULID_WORDS);
    this.slots[slot] = number + 1;
    if (this.size * 4 > this.slots.length * 3) this.rehash(this.slots.length * 2);
    return number;
  }

  hashOf(number: number): number {
    return hashOfUlid(this.words, number * ULID_WORDS);
  }

  idOf(number: number): string {
    return `${this.prefix}_${ulidOf(this.words, number * ULID_WORDS)}`;
  }

  /** By the order of ids as text. */
  compare(one: number, other: number): number {
    return compareUlids(this.words, one * ULID_WORDS, this.words, other * ULID_WORDS);
  }

  private find(hash: number): number {
    const { slots, words } = this;
    const mask = slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const number = slots[slot]! - 1;
      if (number < 0) return slot;
      const at = number * ULID_WORDS;
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
