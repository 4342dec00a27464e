import { hash } from 'node:crypto';

/** 64 MiB; three quarters of it are used, for three million streams. */
const SLOTS = 2 ** 22;
const PORTION_USED = 0.75;
const FINGERPRINT_BYTES = 6;

/** Of a stream, in the place of its name. Of two streams that share a fingerprint one looks as if it had gaps, so whoever finds one looks at that stream itself. */
interface Fingerprint {
  readonly value: number;
  /** Evenly distributed, and not by `value`. */
  readonly share: number;
}

/** Some of all streams: those whose share has these last bits. */
export interface SomeStreams {
  readonly mask: number;
  readonly bits: number;
}

export function isAmong({ mask, bits }: SomeStreams, { share }: Fingerprint): boolean {
  return (share & mask) === bits;
}

export function fingerprintOf(stream: string): Fingerprint {
  const digest = hash('sha256', stream, 'buffer');
  // 0 is a free slot.
  return { value: digest.readUIntBE(0, FINGERPRINT_BYTES) || 1, share: digest.readUInt32BE(FINGERPRINT_BYTES) };
}

/** The version that was met last of each of many streams, in memory that does not grow. */
export class KnownVersions {
  private readonly fingerprints: Float64Array;
  private readonly shares: Uint32Array;
  private readonly versions: Uint32Array;
  private used = 0;

  constructor(private readonly slots: number = SLOTS) {
    this.fingerprints = new Float64Array(slots);
    this.shares = new Uint32Array(slots);
    this.versions = new Uint32Array(slots);
  }

  get isFull(): boolean {
    return this.used >= this.slots * PORTION_USED;
  }

  /** Notes that a version was met, and says whether it is the next one. */
  meets({ value, share }: Fingerprint, version: number): boolean {
    let slot = value % this.slots;
    while (this.fingerprints[slot] !== 0 && this.fingerprints[slot] !== value) slot = (slot + 1) % this.slots;
    if (this.fingerprints[slot] === 0) this.used += 1;
    const isNext = this.versions[slot]! + 1 === version;
    this.fingerprints[slot] = value;
    this.shares[slot] = share;
    this.versions[slot] = version;
    return isNext;
  }

  /** What is known of some of the streams, to have room for more of them. */
  only(streams: SomeStreams): KnownVersions {
    const kept = new KnownVersions(this.slots);
    for (const [slot, value] of this.fingerprints.entries()) {
      const fingerprint = { value, share: this.shares[slot]! };
      if (value !== 0 && isAmong(streams, fingerprint)) kept.meets(fingerprint, this.versions[slot]!);
    }
    return kept;
  }
}
