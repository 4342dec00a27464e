/** What was seen is known for so long at least (milliseconds): for as long as a repeat is told. */
const KEPT_MS = 86_400_000;
/** Of each half, of which a page of memory is taken with the first digest that lies in it. Five million digests leave one in two hundred that is taken for a known one. */
const BITS = 2 ** 26;
/** Places of a digest, of so many characters each. */
const [PLACES, CHARACTERS] = [4, 5];

const SIX_BITS = new Uint8Array(128);
for (const [value, character] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'].entries()) SIX_BITS[character.charCodeAt(0)] = value;

/**
 * Which digests came by in the last day, of all trails together: a Bloom filter in two halves. One that it does not know was not there; one that it knows may have been. Time is that of the
 * process, which no clock sets back.
 */
export class SeenDigests {
  private young: Uint8Array | null = null;
  private old: Uint8Array | null = null;
  private begun: number;

  constructor(private readonly now: () => number = () => performance.now()) {
    this.begun = now();
  }

  add(digest: string): void {
    if (this.now() - this.begun >= KEPT_MS) {
      this.old = this.young;
      this.young = null;
      this.begun = this.now();
    }
    this.young ??= new Uint8Array(BITS / 8);
    for (let place = 0; place < PLACES; place++) {
      const bit = bitOf(digest, place);
      this.young[bit >>> 3]! |= 1 << (bit & 7);
    }
  }

  mayHave(digest: string): boolean {
    return isIn(this.young, digest) || isIn(this.old, digest);
  }
}

function isIn(bits: Uint8Array | null, digest: string): boolean {
  if (bits === null) return false;
  for (let place = 0; place < PLACES; place++) {
    const bit = bitOf(digest, place);
    if ((bits[bit >>> 3]! & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}

/** A digest is random: each piece of it is a place. */
function bitOf(digest: string, place: number): number {
  let bit = 0;
  for (let at = place * CHARACTERS; at < (place + 1) * CHARACTERS; at++) bit = bit * 64 + SIX_BITS[digest.charCodeAt(at)]!;
  return bit % BITS;
}
