import { createHmac, timingSafeEqual } from 'node:crypto';

/** Codes of authenticator apps (RFC 6238): SHA-1, six digits, 30 seconds, which every app can do. */
const STEP_MS = 30_000;
const DIGITS = 6;
/** How many steps a clock may be ahead or behind. */
const DRIFT = 1;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
/** RFC 4226 wants no less; what apps have from elsewhere is often no more. */
const LEAST_BYTES = 10;

/** How long after it was shown a code may be taken. */
export const TAKEN_WITHIN_MS = (2 * DRIFT + 1) * STEP_MS;

/** The code of a step (RFC 4226, 5.3). */
export function codeOfStep(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const number = mac.readUInt32BE(mac.at(-1)! & 0xf) & 0x7fffffff;
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0');
}

export function stepAt(now: number): number {
  return Math.floor(now / STEP_MS);
}

/** The steps whose code this is, of those that count now; the present one first. Takes as long whatever is given. */
export function stepsOf(secret: Buffer, given: string, now: number): readonly number[] {
  const present = stepAt(now);
  const steps = [present];
  for (let drift = 1; drift <= DRIFT; drift++) steps.push(present - drift, present + drift);
  const code = Buffer.from(given.trim());
  return steps.filter((step) => {
    const right = Buffer.from(codeOfStep(secret, step));
    return code.length === right.length && timingSafeEqual(code, right);
  });
}

/** Base 32 of RFC 4648, without padding. */
export function toBase32(bytes: Buffer): string {
  let [text, bits, rest] = ['', 0, 0];
  for (const byte of bytes) {
    rest = (rest << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(rest >>> (bits - 5)) & 31];
    rest &= 0xff;
  }
  return bits === 0 ? text : text + ALPHABET[(rest << (5 - bits)) & 31];
}

/** As people copy it: in either case, with spaces and padding. Null where it is no secret, or one that is too short. */
export function secretOfBase32(text: string): Buffer | null {
  const characters = text.replace(/[\s-]|=+$/g, '').toUpperCase();
  const bytes: number[] = [];
  let [bits, rest] = [0, 0];
  for (const character of characters) {
    const value = ALPHABET.indexOf(character);
    if (value === -1) return null;
    rest = (rest << 5) | value;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((rest >>> bits) & 0xff);
    rest &= (1 << bits) - 1;
  }
  return bytes.length < LEAST_BYTES ? null : Buffer.from(bytes);
}

/** What an authenticator app reads from a QR code. */
export function otpauthUri({ issuer, user, secret }: { readonly issuer: string; readonly user: string; readonly secret: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(user)}`;
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}&algorithm=SHA1&digits=${DIGITS}&period=${STEP_MS / 1_000}`;
}
