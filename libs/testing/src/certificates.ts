import 'reflect-metadata';
import { KeyObject, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** A certificate and its key, in PEM. */
export interface Certified {
  readonly cert: string;
  readonly key: string;
}

/** An authority of a test: signs certificates that are good for a day. */
export interface Authority {
  readonly ca: string;
  /** `name` is its common name; `names` are DNS names and addresses. */
  certify(name: string, names?: readonly string[]): Promise<Certified>;
}

const DAY = 86_400_000;
/** EventStoreDB takes no other keys than these. */
const RSA = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 2048, publicExponent: Uint8Array.of(1, 0, 1) };

cryptoProvider.set(webcrypto);

export async function givenAuthority(name: string): Promise<Authority> {
  const keys = await newKeys();
  const issuer = distinguished(name);
  const ca = await X509CertificateGenerator.createSelfSigned({
    ...newCertificate(),
    name: issuer,
    keys,
    extensions: [new BasicConstraintsExtension(true, undefined, true), new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true)],
  });
  return {
    ca: ca.toString('pem'),
    certify: async (subject, names = []) => {
      const own = await newKeys();
      const certificate = await X509CertificateGenerator.create({
        ...newCertificate(),
        subject: distinguished(subject),
        issuer,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        extensions: [
          new BasicConstraintsExtension(false, undefined, true),
          // Processes show the same one to those whom they call and to those who call them.
          new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
          ...(names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value })))]),
        ],
      });
      return { cert: certificate.toString('pem'), key: KeyObject.from(own.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString() };
    },
  };
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(RSA, true, ['sign', 'verify']);
}

function newCertificate(): { readonly serialNumber: string; readonly notBefore: Date; readonly notAfter: Date; readonly signingAlgorithm: typeof RSA } {
  const now = Date.now();
  // The first byte keeps it positive.
  return { serialNumber: `01${randomBytes(15).toString('hex')}`, notBefore: new Date(now - DAY), notAfter: new Date(now + DAY), signingAlgorithm: RSA };
}

function distinguished(commonName: string): { readonly CN: string[] }[] {
  return [{ CN: [commonName] }];
}
