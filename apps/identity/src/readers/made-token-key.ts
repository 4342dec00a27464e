import 'reflect-metadata';
import { createHash, KeyObject, webcrypto } from 'node:crypto';
import type { TokenAlgorithm } from '#libs/contracts/src/environment-settings/environment-settings';
import type { NewTokenKey } from '../domain/token-keys.decider.ts';

const ALGORITHMS = {
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 2_048, publicExponent: Uint8Array.of(1, 0, 1) },
  ES256: { name: 'ECDSA', hash: 'SHA-256', namedCurve: 'P-256' },
} as const;
/** Nobody goes by how long the certificate is valid: it only carries the key. */
const YEARS = 100;
const CLOCKS_DIFFER = 86_400_000;

/** A new pair of keys, made beside the event loop; its private part is not sealed yet. */
export async function madeTokenKey(alg: TokenAlgorithm, now: number): Promise<NewTokenKey> {
  const pair = await webcrypto.subtle.generateKey(ALGORITHMS[alg], true, ['sign', 'verify']);
  const jwk = (await webcrypto.subtle.exportKey('jwk', pair.publicKey)) as Readonly<Record<'kty' | 'n' | 'e' | 'x' | 'y', string>>;
  const { kty, n, e, x, y } = jwk;
  const parts = kty === 'RSA' ? { kty: 'RSA' as const, n, e } : { kty: 'EC' as const, crv: 'P-256' as const, x, y };
  // The members that RFC 7638 names, in its order.
  const kid = digest(JSON.stringify(kty === 'RSA' ? { e, kty, n } : { crv: 'P-256', kty, x, y }));
  const certificate = await selfSigned(pair, ALGORITHMS[alg], { kid, now });
  return {
    public_key: { ...parts, use: 'sig', alg, kid, x5c: [certificate.toString('base64')], 'x5t#S256': digest(certificate) },
    private_key: KeyObject.from(pair.privateKey).export({ type: 'pkcs8', format: 'der' }).toString('base64'),
  };
}

/** Loaded where it is wanted: a process makes a key seldom. */
async function selfSigned(
  keys: webcrypto.CryptoKeyPair,
  signingAlgorithm: object,
  { kid, now }: { readonly kid: string; readonly now: number },
): Promise<Buffer> {
  const { X509CertificateGenerator, cryptoProvider } = await import('@peculiar/x509');
  cryptoProvider.set(webcrypto);
  const notAfter = new Date(now);
  notAfter.setUTCFullYear(notAfter.getUTCFullYear() + YEARS);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${kid}`,
    notBefore: new Date(now - CLOCKS_DIFFER),
    notAfter,
    keys,
    signingAlgorithm: signingAlgorithm as never,
  });
  return Buffer.from(certificate.rawData);
}

function digest(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('base64url');
}
