import { randomFillSync } from 'node:crypto';

/** How often the system is asked: for so many at once. */
const STOCKED = 256;

/** Random bytes in stock, so many at a time: asking the system for each costs more than the encryption that they are for. */
export class RandomStock {
  private readonly stock: Buffer;
  private taken: number;

  constructor(private readonly length: number) {
    this.stock = Buffer.allocUnsafeSlow(STOCKED * length);
    this.taken = this.stock.length;
  }

  /** In memory of their own, which holds nothing else; nothing of them stays in the stock. */
  next(): Buffer {
    const bytes = Buffer.allocUnsafeSlow(this.length);
    const there = this.look();
    there.copy(bytes);
    there.fill(0);
    return bytes;
  }

  /** For whoever has no need of them when the next are asked for: they lie in the stock. */
  look(): Buffer {
    if (this.taken === this.stock.length) {
      randomFillSync(this.stock);
      this.taken = 0;
    }
    this.taken += this.length;
    return this.stock.subarray(this.taken - this.length, this.taken);
  }
}
