import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

const PREFIX = 'whsec_';

/** A secret as the two forms of signature use it: whole, and decoded. */
export interface SigningKeys {
  readonly whole: KeyObject;
  readonly decoded: KeyObject;
}

/** @throws Error for a secret that is not `whsec_` and standard base64 */
export function signingKeys(secret: string): SigningKeys {
  const encoded = secret.slice(PREFIX.length);
  const decoded = Buffer.from(encoded, 'base64');
  if (!secret.startsWith(PREFIX) || decoded.toString('base64') !== encoded) throw new Error('A signing secret is damaged.');
  return { whole: createSecretKey(secret, 'utf8'), decoded: createSecretKey(decoded) };
}

/** What is signed at one attempt. */
export interface SignedContent {
  readonly eventId: string;
  readonly body: string;
  /** Milliseconds since the epoch: receivers refuse what was signed minutes ago. */
  readonly now: number;
}

/** The vendor's form, `t=<ms>, v1=<hex>`: its readers look at the first `v1` only, so there is one. */
export function vendorSignature({ body, now }: SignedContent, { whole }: SigningKeys): string {
  return `t=${now}, v1=${createHmac('sha256', whole).update(`${now}.${body}`).digest('hex')}`;
}

/** The value of `webhook-signature` in Standard Webhooks: one signature for each secret that is valid now. */
export function standardSignature({ eventId, body, now }: SignedContent, valid: readonly SigningKeys[]): string {
  const content = `${eventId}.${standardTimestamp(now)}.${body}`;
  return valid.map(({ decoded }) => `v1,${createHmac('sha256', decoded).update(content).digest('base64')}`).join(' ');
}

/** Whole seconds, as Standard Webhooks counts. */
export function standardTimestamp(now: number): string {
  return String(Math.floor(now / 1000));
}
