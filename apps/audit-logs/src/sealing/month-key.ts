import { createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto';
import { HmacSha256 } from '#libs/platform/src/hmac-sha256';
import { TERM_LENGTH, type TermKind } from '../domain/audit-trail.decider.ts';
import { openContent, sealContent } from './content-sealing.ts';

const KEY_BYTES = 32;
const SALT_BYTES = 16;
const DIGEST_BYTES = 16;
/** Most events share their actions and types of targets; whoever acts, and on what, is another with each. */
const SHARED_TERMS: ReadonlySet<TermKind> = new Set<TermKind>(['action', 'target_type']);
const TERMS_KEPT = 100;

/** The key of the month after the one whose key this is. There is no way back. */
export function nextMonth(key: Buffer): Buffer {
  return derived(key, 'gatehouse audit trail next month');
}

/** By what a repeat of an event is told: the key that it came with, or, of those that came without, their content. */
export type DigestKind = 'key' | 'content';

/** What the events of a trail that arrive in one month are sealed, committed to and found with. */
export class MonthKey {
  private readonly sealing: KeyObject;
  private readonly salts: HmacSha256;
  private readonly terms: HmacSha256;
  private readonly digests: HmacSha256;
  private readonly known = new Map<string, string>();

  constructor(private readonly key: Buffer) {
    const keyFor = (purpose: string): Buffer => derived(key, `gatehouse audit trail ${purpose}`);
    this.sealing = createSecretKey(keyFor('content'));
    this.salts = new HmacSha256(key);
    this.terms = new HmacSha256(keyFor('terms'));
    this.digests = new HmacSha256(keyFor('digests'));
  }

  /** What it is made of, for a thread of this process: on its own, since a thread is sent all of the room that a buffer shares with others. */
  get bytes(): Uint8Array {
    return Uint8Array.from(this.key);
  }

  /** `binding`: stream and event. */
  seal(binding: string, content: string): string {
    return sealContent(this.sealing, binding, content);
  }

  /** @throws Error as `openContent` */
  open(binding: string, sealed: string): string {
    return openContent(this.sealing, binding, sealed);
  }

  /** Base64url. Nobody without the salt can try contents on a commitment. */
  commitment(eventId: string, content: string): string {
    return hash('sha256', Buffer.concat([this.saltOf(eventId), Buffer.from(content)]), 'base64url');
  }

  saltOf(eventId: string): Buffer {
    return firstBytes(this.salts, eventId, SALT_BYTES);
  }

  termOf(kind: TermKind, value: string): string {
    const text = `${kind}:${value}`;
    let term = this.known.get(text);
    if (term === undefined) {
      term = this.terms.of(text, 'base64url').slice(0, TERM_LENGTH);
      if (!SHARED_TERMS.has(kind)) return term;
      if (this.known.size === TERMS_KEPT) this.known.clear();
      this.known.set(text, term);
    }
    return term;
  }

  digestOf(kind: DigestKind, value: string): string {
    return firstBytes(this.digests, `${kind}:${value}`, DIGEST_BYTES).toString('base64url');
  }
}

function firstBytes(key: HmacSha256, text: string, count: number): Buffer {
  return Buffer.from(key.of(text, 'binary').slice(0, count), 'binary');
}

function derived(key: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), purpose, KEY_BYTES));
}
