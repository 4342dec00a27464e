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

/** Any text can be a secret; one that is made as those of webhook endpoints are is read as libraries of Standard Webhooks read it. */
export function signingKeysOfAny(secret: string): SigningKeys {
  try {
    return signingKeys(secret);
  } catch {
    const whole = createSecretKey(secret, 'utf8');
    return { whole, decoded: whole };
  }
}

/** What is signed at one attempt. */
export interface SignedContent {
  readonly eventId: string;
  readonly body: string;
  /** Milliseconds since the epoch: receivers refuse what was signed minutes ago. */
  readonly now: number;
}

/** The vendor's form, `t=<ms>, v1=<hex>`: its readers look at the first `v1` only, so there is one. */
function vendorSignature({ body, now }: SignedContent, { whole }: SigningKeys): string {
  return `t=${now}, v1=${createHmac('sha256', whole).update(`${now}.${body}`).digest('hex')}`;
}

/** The value of `webhook-signature` in Standard Webhooks: one signature for each secret that is valid now. */
function standardSignature({ eventId, body, now }: SignedContent, valid: readonly SigningKeys[]): string {
  const content = `${eventId}.${standardTimestamp(now)}.${body}`;
  return valid.map(({ decoded }) => `v1,${createHmac('sha256', decoded).update(content).digest('base64')}`).join(' ');
}

/** Whole seconds, as Standard Webhooks counts. */
function standardTimestamp(now: number): string {
  return String(Math.floor(now / 1000));
}

interface Signing {
  /** With which the vendor's form is made. */
  readonly vendor: SigningKeys;
  /** All that are valid now. */
  readonly valid: readonly SigningKeys[];
  /** The word before `-Signature` in the header that existing SDKs verify. */
  readonly vendorWord: string;
}

/** The headers of what is posted, signed in both forms. */
export function signedHeaders(content: SignedContent, { vendor, valid, vendorWord }: Signing): Readonly<Record<string, string>> {
  const signature = vendorSignature(content, vendor);
  return {
    'content-type': 'application/json',
    'user-agent': 'Gatehouse-Webhooks',
    [`${vendorWord}-Signature`]: signature,
    'Gatehouse-Signature': signature,
    'webhook-id': content.eventId,
    'webhook-timestamp': standardTimestamp(content.now),
    'webhook-signature': standardSignature(content, valid),
  };
}
