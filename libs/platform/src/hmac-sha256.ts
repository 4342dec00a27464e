import { hash } from 'node:crypto';

/** Of SHA-256, in bytes (RFC 2104). */
const [BLOCK, DIGEST] = [64, 32];
const [INNER_PAD, OUTER_PAD] = [0x36, 0x5c];
/** What is longer gets room of its own. */
const ROOM = 4 * 1024;
/** A character of a text takes at most so many bytes of UTF-8. */
const BYTES_OF_CHARACTER = 3;

const inner = Buffer.alloc(BLOCK + ROOM);
const outer = Buffer.alloc(BLOCK + DIGEST);

/**
 * HMAC-SHA-256 of texts under one key. By two hashes, each in one go: the object that Node makes for an HMAC takes twice as long as both, and as long again when it is
 * collected.
 */
export class HmacSha256 {
  private readonly pads: Buffer;

  constructor(key: Uint8Array) {
    const bytes = key.length > BLOCK ? hash('sha256', key, 'buffer') : key;
    this.pads = Buffer.alloc(2 * BLOCK);
    for (let at = 0; at < BLOCK; at++) {
      const byte = bytes[at] ?? 0;
      this.pads[at] = byte ^ INNER_PAD;
      this.pads[BLOCK + at] = byte ^ OUTER_PAD;
    }
  }

  /** Of the text's UTF-8. `binary`: a character for each byte. */
  of(text: string, encoding: 'hex' | 'base64url' | 'binary'): string {
    const room = text.length * BYTES_OF_CHARACTER > ROOM ? Buffer.alloc(BLOCK + Buffer.byteLength(text)) : inner;
    room.set(this.pads.subarray(0, BLOCK));
    const end = BLOCK + room.write(text, BLOCK);
    outer.set(this.pads.subarray(BLOCK));
    outer.write(hash('sha256', room.subarray(0, end), 'binary'), BLOCK, 'latin1');
    return hash('sha256', outer, encoding);
  }
}
