import { createHash, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import { HASH_BYTES } from './merkle-hash.ts';
import type { TreeHead } from './proofs.ts';

// Checkpoints as https://c2sp.org/tlog-checkpoint has them, in a note as https://c2sp.org/signed-note has it.

/** What one checkpoint says: so many events had arrived by then, and these. */
export interface Checkpoint extends TreeHead {
  /** Whose trail it is. */
  readonly origin: string;
  /** ISO 8601. */
  readonly time: string;
}

const PRODUCT = 'gatehouse';
const TIME = 'time ';
const SIGNATURE = '— ';
const ED25519 = Uint8Array.of(1);
const PUBLIC_KEY_BYTES = 32;
const KEY_ID_BYTES = 4;
/** A note may have signatures of others as well, of witnesses for instance. */
const MAX_BYTES = 100_000;
/** SubjectPublicKeyInfo of an Ed25519 key, up to its 32 bytes (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

export function originOf(environment: string, organization: string): string {
  return `${PRODUCT}/${environment}/${organization}`;
}

/** The signed text. `privateKey`: of Ed25519. */
export function signedCheckpoint({ origin, size, root, time }: Checkpoint, privateKey: KeyObject): string {
  const text = `${origin}\n${size}\n${root.toString('base64')}\n${TIME}${time}\n`;
  const signature = sign(null, Buffer.from(text), privateKey);
  const id = keyId(origin, rawPublicKey(createPublicKey(privateKey)));
  return `${text}\n${SIGNATURE}${origin} ${Buffer.concat([id, signature]).toString('base64')}\n`;
}

/** What a note says, whoever signed it; null for what is no checkpoint of ours. */
export function parseCheckpoint(note: string): Checkpoint | null {
  return parts(note)?.checkpoint ?? null;
}

/** What a checkpoint says that one of these keys (32 bytes each) signed; null where none did, or one of them did not sign what stands there. */
export function verifyCheckpoint(note: string, publicKeys: readonly Buffer[]): Checkpoint | null {
  const found = parts(note);
  if (found === null) return null;
  const { checkpoint, text, signatures } = found;
  const known = signatures.flatMap(({ name, bytes }) => {
    const id = bytes.subarray(0, KEY_ID_BYTES);
    const key = name === checkpoint.origin ? publicKeys.find((publicKey) => keyId(name, publicKey).equals(id)) : undefined;
    return key === undefined ? [] : [{ key, signature: bytes.subarray(KEY_ID_BYTES) }];
  });
  const areGenuine = known.every(({ key, signature }) => verify(null, Buffer.from(text), publicKeyOf(key), signature));
  return known.length > 0 && areGenuine ? checkpoint : null;
}

/** A key as verifiers of signed notes take it: name, id and public key. The name is the origin, so every trail has its own of the same key. */
export function verifierKey(origin: string, publicKey: Buffer): string {
  return `${origin}+${keyId(origin, publicKey).toString('hex')}+${Buffer.concat([ED25519, publicKey]).toString('base64')}`;
}

/** The 32 bytes of an Ed25519 key. */
export function rawPublicKey(key: KeyObject): Buffer {
  return Buffer.from(key.export({ format: 'der', type: 'spki' }).subarray(SPKI.length));
}

function publicKeyOf(raw: Buffer): KeyObject {
  if (raw.length !== PUBLIC_KEY_BYTES) throw new RangeError(`A public key has ${raw.length} bytes.`);
  return createPublicKey({ key: Buffer.concat([SPKI, raw]), format: 'der', type: 'spki' });
}

/** Which key it is, as far as 4 bytes can say. */
function keyId(name: string, publicKey: Buffer): Buffer {
  return createHash('sha256').update(`${name}\n`).update(ED25519).update(publicKey).digest().subarray(0, KEY_ID_BYTES);
}

interface Parts {
  readonly checkpoint: Checkpoint;
  /** What is signed. */
  readonly text: string;
  readonly signatures: readonly { readonly name: string; readonly bytes: Buffer }[];
}

function parts(note: string): Parts | null {
  const end = note.lastIndexOf('\n\n');
  if (note.length > MAX_BYTES || end < 0 || hasControlCharacter(note) || !note.endsWith('\n')) return null;
  const text = note.slice(0, end + 1);
  const [origin, size, root, time, ...others] = text.slice(0, -1).split('\n');
  if (origin === undefined || size === undefined || root === undefined || time === undefined || others.length > 0) return null;
  const hash = exactBase64(root);
  const isWhole = origin !== '' && /^(?:0|[1-9]\d{0,15})$/.test(size) && Number.isSafeInteger(Number(size)) && hash?.length === HASH_BYTES;
  if (!isWhole || !time.startsWith(TIME) || Number.isNaN(Date.parse(time.slice(TIME.length)))) return null;
  const signatures = note
    .slice(end + 2, -1)
    .split('\n')
    .map(signatureOf);
  if (signatures.some((signature) => signature === null)) return null;
  return {
    checkpoint: { origin, size: Number(size), root: hash, time: time.slice(TIME.length) },
    text,
    signatures: signatures.filter((signature) => signature !== null),
  };
}

function signatureOf(line: string): Parts['signatures'][number] | null {
  const [, name, text] = /^— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/u.exec(line) ?? [];
  const bytes = text === undefined ? null : exactBase64(text);
  return name === undefined || bytes === null || bytes.length <= KEY_ID_BYTES ? null : { name, bytes };
}

/** Node reads past what is no base64, so that two texts could be one hash. */
export function exactBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

function hasControlCharacter(note: string): boolean {
  return Array.from(note).some((character) => character < ' ' && character !== '\n');
}
