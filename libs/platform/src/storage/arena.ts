const SLAB = 256 * 1024;

/**
 * Room for the values on their way to the write thread. LMDB's binding asks for the address of every new memory block, which costs more than the write
 * itself; so values share large blocks. A block lives as long as a value in it is still to be written.
 */
export class Arena {
  private slab = Buffer.allocUnsafeSlow(SLAB);
  private used = 0;

  /** `header` bytes for the caller to fill, then the text as UTF-8. */
  text(header: number, text: string): Buffer {
    const needed = header + text.length * 3;
    if (needed > SLAB / 4) {
      const own = Buffer.allocUnsafeSlow(header + Buffer.byteLength(text));
      own.write(text, header);
      return own;
    }
    const start = this.room(needed);
    const end = start + header + this.slab.write(text, start + header);
    this.used = (end + 7) & ~7;
    return this.slab.subarray(start, end);
  }

  /** Text whose characters stand for bytes. */
  latin1(text: string): Buffer {
    const bytes = this.bytes(text.length);
    bytes.write(text, 'latin1');
    return bytes;
  }

  bytes(length: number): Buffer {
    if (length > SLAB / 4) return Buffer.allocUnsafeSlow(length);
    const start = this.room(length);
    this.used = (start + length + 7) & ~7;
    return this.slab.subarray(start, start + length);
  }

  private room(length: number): number {
    if (this.used + length > SLAB) {
      this.slab = Buffer.allocUnsafeSlow(SLAB);
      this.used = 0;
    }
    return this.used;
  }
}
