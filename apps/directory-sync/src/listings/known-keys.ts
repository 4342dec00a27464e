import { hash } from 'node:crypto';

const HASH_BYTES = 16;
/** Entries whose hashes lie in one piece of memory. */
const SEGMENT = 65_536;
const FIRST_SLOTS = 1_024;
/** The beginning of the hash of what is being looked for. */
const DIGEST = Buffer.alloc(HASH_BYTES);

/** Texts that were met, numbered in the order of their coming: by their hashes, in 24 to 32 bytes each, since there may be a million of them. */
export class KnownKeys {
  private readonly segments: Buffer[] = [];
  /** Numbers, counted from 1, where their hashes say, or behind. */
  private slots = new Uint32Array(FIRST_SLOTS);
  size = 0;

  /** The number of a text, and whether it is met for the first time. */
  add(text: string): { readonly ordinal: number; readonly isNew: boolean } {
    const slot = this.slotOf(text);
    const found = this.slots[slot]!;
    if (found !== 0) return { ordinal: found - 1, isNew: false };
    const ordinal = this.size++;
    if (ordinal % SEGMENT === 0) this.segments.push(Buffer.allocUnsafe(SEGMENT * HASH_BYTES));
    DIGEST.copy(this.segments.at(-1)!, (ordinal % SEGMENT) * HASH_BYTES);
    this.slots[slot] = ordinal + 1;
    if (this.size * 2 > this.slots.length) this.grow();
    return { ordinal, isNew: true };
  }

  /** Its number; null where it was not met. */
  find(text: string): number | null {
    const found = this.slots[this.slotOf(text)]!;
    return found === 0 ? null : found - 1;
  }

  /** Where it is, or where it would be put; its hash is in `DIGEST` until the next is looked for. */
  private slotOf(text: string): number {
    // As a text: each buffer of its own would take five times as long, and memory outside of the heap.
    DIGEST.write(hash('sha256', text, 'binary'), 0, HASH_BYTES, 'latin1');
    const mask = this.slots.length - 1;
    for (let slot = DIGEST.readUInt32LE(0) & mask; ; slot = (slot + 1) & mask) {
      const found = this.slots[slot]!;
      if (found === 0 || this.isAt(found - 1)) return slot;
    }
  }

  private isAt(ordinal: number): boolean {
    const from = (ordinal % SEGMENT) * HASH_BYTES;
    return this.segments[Math.floor(ordinal / SEGMENT)]!.compare(DIGEST, 0, HASH_BYTES, from, from + HASH_BYTES) === 0;
  }

  private grow(): void {
    this.slots = new Uint32Array(this.slots.length * 2);
    const mask = this.slots.length - 1;
    for (let ordinal = 0; ordinal < this.size; ordinal++) {
      let slot = this.segments[Math.floor(ordinal / SEGMENT)]!.readUInt32LE((ordinal % SEGMENT) * HASH_BYTES) & mask;
      while (this.slots[slot] !== 0) slot = (slot + 1) & mask;
      this.slots[slot] = ordinal + 1;
    }
  }
}

/** Texts of one length by number, as they are written in ASCII. */
export class FixedTexts {
  private readonly segments: Buffer[] = [];

  constructor(private readonly length: number) {}

  set(ordinal: number, text: string): void {
    const segment = Math.floor(ordinal / SEGMENT);
    while (this.segments.length <= segment) this.segments.push(Buffer.alloc(SEGMENT * this.length));
    this.segments[segment]!.write(text, (ordinal % SEGMENT) * this.length, this.length, 'latin1');
  }

  get(ordinal: number): string {
    const from = (ordinal % SEGMENT) * this.length;
    return this.segments[Math.floor(ordinal / SEGMENT)]!.toString('latin1', from, from + this.length);
  }
}

/** A set of small numbers. */
export class Numbers {
  private bits = new Uint8Array(1_024);
  size = 0;

  add(number: number): void {
    const place = number >> 3;
    if (place >= this.bits.length) {
      const bits = new Uint8Array(Math.max(place + 1, this.bits.length * 2));
      bits.set(this.bits);
      this.bits = bits;
    }
    if (!this.has(number)) this.size += 1;
    this.bits[place]! |= 1 << (number & 7);
  }

  has(number: number): boolean {
    const place = number >> 3;
    return place < this.bits.length && (this.bits[place]! & (1 << (number & 7))) !== 0;
  }
}

/** Numbers in the order of their coming, in 4 bytes each. */
export class NumberList {
  private numbers = new Uint32Array(8);
  length = 0;

  push(number: number): void {
    if (this.length === this.numbers.length) {
      const numbers = new Uint32Array(this.length * 2);
      numbers.set(this.numbers);
      this.numbers = numbers;
    }
    this.numbers[this.length++] = number;
  }

  *[Symbol.iterator](): Generator<number> {
    for (let place = 0; place < this.length; place++) yield this.numbers[place]!;
  }
}
