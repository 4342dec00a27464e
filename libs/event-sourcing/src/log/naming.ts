import { KeyObject } from 'node:crypto';
import { HmacSha256 } from '#libs/platform/src/hmac-sha256';

/** `<category>-<environment>-<key>`. Keys are ids or HMACs, so that no text of a caller stands in the name of a stream. */
export function streamName(category: string, environment: string, key: string): string {
  return `${category}-${environment}-${key}`;
}

/** Neither categories nor environments hold a hyphen. */
export function categoryOf(stream: string): string {
  return stream.slice(0, stream.indexOf('-'));
}

export function environmentOf(stream: string): string {
  const start = stream.indexOf('-') + 1;
  return stream.slice(start, stream.indexOf('-', start));
}

/** What follows category and environment. */
export function streamKeyOf(stream: string): string {
  return stream.slice(stream.indexOf('-', stream.indexOf('-') + 1) + 1);
}

/** Names what a caller's text stands for, without showing the text. The naming key never changes: a changed name would free every claimed value. */
export class Naming {
  private readonly hmac: HmacSha256;

  constructor(key: KeyObject | Uint8Array) {
    this.hmac = new HmacSha256(key instanceof KeyObject ? key.export() : key);
  }

  claimStream(environment: string, kind: string, value: string): string {
    return streamName('claim', environment, this.keyOf(kind, value));
  }

  /** The stream key of parts that come from callers: their lengths are part of what is hashed, so that no two lists of parts meet. */
  keyOf(...parts: readonly string[]): string {
    return this.hmac.of(parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join(''), 'hex');
  }
}
