import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import { RandomStock } from '#libs/platform/src/random-stock';
import { environmentOf } from '../log/naming.ts';
import { type Holder, purposeOf as holderPurposeOf } from './holders.ts';
import type { DataKey, ErasablePurpose, FoundKey, KeyStore } from './key-store.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;
const MARK = 'enc.v1.';

/** Before what is sealed under the keys of people as well, whom it names. */
const QUOTING = 'of.v1.';
/** Instead of the id of a key, where it is that of several. */
const JOINT = 'joint';

const ivs = new RandomStock(IV_BYTES);

/** Whether a text was sealed with this key; the key that it was sealed with may be gone. */
export function isSealedWith(key: DataKey, sealed: string): boolean {
  return sealed.startsWith(`${MARK}${key.id}.`);
}

/** Whether it was stored by `sealQuoting`, or `seal`. */
export function isQuotingSealed(value: unknown): value is string {
  return isSealed(value) || (typeof value === 'string' && value.startsWith(QUOTING));
}

/** Whether a stored text is sealed. */
export function isSealed(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith(MARK);
}

/** `binding` says what and where the text is (stream, field, …): sealed text moved elsewhere does not open. */
export function sealText(key: DataKey, binding: string, text: string): string {
  const iv = ivs.look();
  const cipher = createCipheriv('aes-256-gcm', key.bytes, iv).setAAD(Buffer.from(binding));
  const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${MARK}${key.id}.${sealed.toString('base64url')}`;
}

/** @throws Error when the text was altered, moved, or sealed with another key */
export function openText(key: DataKey, binding: string, sealed: string): string {
  if (!isSealed(sealed)) throw new Error('A value that should be sealed is not.');
  if (!isSealedWith(key, sealed)) throw new Error('A value was sealed with another key.');
  const bytes = Buffer.from(sealed.slice(MARK.length + key.id.length + 1), 'base64url');
  const decipher = createDecipheriv('aes-256-gcm', key.bytes, bytes.subarray(0, IV_BYTES)).setAAD(Buffer.from(binding));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
}

/** The one place where a sealed text belongs: moved elsewhere, it does not open. */
export interface Place {
  readonly stream: string;
  readonly field: string;
}

/**
 * Seals recoverable secrets (AES-256-GCM) under the key of their environment. A use case seals before it decides, so that decisions, events and rows only
 * ever hold the sealed text; whoever needs the secret opens it.
 */
export class Vault {
  constructor(private readonly keys: KeyStore) {}

  async seal(secret: string, place: Place): Promise<string> {
    return sealText(await this.keys.obtain(purposeOf(place)), bindingOf(place), secret);
  }

  /**
   * As `seal`, for a text of others that may quote the people whom something is about: with the key of any of these, what it says is gone as well. Null where one is erased
   * already.
   */
  async sealQuoting(text: string, place: Place, holders: readonly Holder[]): Promise<string | null> {
    const purposes = holders.map((holder) => holderPurposeOf(holder, environmentOf(place.stream)));
    const found = await this.keys.findMany(purposes);
    const key = jointKey([...found.values()]);
    if (key === 'erased') return null;
    if (key === null) return this.seal(text, place);
    const sealed = await this.seal(sealText(key, bindingOf(place), text), place);
    return QUOTING + Buffer.from(JSON.stringify([...found.keys()])).toString('base64url') + '.' + sealed;
  }

  /** What `sealQuoting` or `seal` sealed; null where somebody of whom it may tell is erased. @throws as `open` */
  async openQuoting(sealed: string, place: Place): Promise<string | null> {
    if (!sealed.startsWith(QUOTING)) return this.open(sealed, place);
    const [named = '', ...rest] = sealed.slice(QUOTING.length).split('.');
    const purposes = JSON.parse(Buffer.from(named, 'base64url').toString()) as readonly ErasablePurpose[];
    const key = jointKey(await Promise.all(purposes.map((purpose) => this.keys.find(purpose))));
    if (key === 'erased') return null;
    const inner = await this.open(rest.join('.'), place);
    return key === null ? inner : openText(key, bindingOf(place), inner);
  }

  /** @throws KeyMissing; Error when it was sealed for another place, altered, or erased */
  async open(sealed: string, place: Place): Promise<string> {
    const purpose = purposeOf(place);
    const key = await this.keys.find(purpose);
    if (key === 'erased') throw new Error(`The key ${purpose} was destroyed, and what it sealed with it.`);
    return openText(key, bindingOf(place), sealed);
  }
}

/** Known to whoever has all of these: sealing under one after the other would make a text a third longer each time. Null of none. */
function jointKey(keys: readonly FoundKey[]): FoundKey | null {
  const hash = createHash('sha256').update('gatehouse joint key');
  for (const key of keys) {
    if (key === 'erased') return key;
    hash.update(key.bytes);
  }
  return keys.length > 1 ? { id: JOINT, bytes: hash.digest(), step: 0 } : (keys[0] ?? null);
}

function purposeOf({ stream }: Place): ErasablePurpose {
  return `environment.${environmentOf(stream)}`;
}

function bindingOf({ stream, field }: Place): string {
  return `${stream} ${field}`;
}
