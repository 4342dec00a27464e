import { randomBytes } from 'node:crypto';
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js';
import type { Authentication, SessionSealing } from '#libs/contracts/src/sign-in/authentication';
import { invalidRequest } from './sign-in-refusals.ts';

const KEY_BYTES = 32;
const NONCE_BYTES = 24;

/** What a session is sealed with where the request asks for it; null: it does not. @throws DomainError `invalid_request` */
export function sealingKeyOf({ seal_session, cookie_password = '' }: Partial<SessionSealing> = {}): Buffer | null {
  if (seal_session !== true) return null;
  const key = Buffer.from(cookie_password, 'base64');
  if (key.length !== KEY_BYTES) throw invalidRequest(`session.cookie_password must be ${KEY_BYTES} bytes in base64.`);
  return key;
}

/** The session as PHP's helper keeps it in a cookie: a nonce and libsodium's secretbox around the tokens and the user. */
export function sealedSession({ access_token, refresh_token, user }: Authentication, key: Buffer): string {
  const nonce = randomBytes(NONCE_BYTES);
  const box = xsalsa20poly1305(key, nonce).encrypt(Buffer.from(JSON.stringify({ access_token, refresh_token, user })));
  return Buffer.concat([nonce, box]).toString('base64');
}
