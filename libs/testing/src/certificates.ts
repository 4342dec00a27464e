import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';

/** A certificate and its key, in PEM. */
export interface Certified {
  readonly cert: string;
  readonly key: string;
}

/** An authority of a test: signs certificates that are good for a day. */
export interface Authority {
  readonly ca: string;
  /** `name` is its common name. */
  certify(name: string, dnsNames?: readonly string[]): Certified;
}

const DAY = 86_400_000;
/** Object identifiers as they are encoded. */
const OID = { commonName: '550403', basicConstraints: '551d13', subjectAltName: '551d11', ecdsaWithSha256: '2a8648ce3d040302' } as const;

export function givenAuthority(name: string): Authority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    ca: certificate({ subject: name, issuer: name, publicKey: keys.publicKey, signer: keys.privateKey, isAuthority: true, dnsNames: [] }),
    certify: (subject, dnsNames = []) => {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      return {
        cert: certificate({ subject, issuer: name, publicKey: own.publicKey, signer: keys.privateKey, isAuthority: false, dnsNames }),
        key: own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      };
    },
  };
}

interface Contents {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly isAuthority: boolean;
  readonly dnsNames: readonly string[];
}

/** X.509 version 3 in DER, by hand: Node reads certificates and makes none. */
function certificate({ subject, issuer, publicKey, signer, isAuthority, dnsNames }: Contents): string {
  const algorithm = sequence(identifier(OID.ecdsaWithSha256));
  const signed = sequence(
    der(0xa0, integer(Buffer.of(2))),
    integer(Buffer.concat([Buffer.of(1), randomBytes(15)])),
    algorithm,
    named(issuer),
    sequence(time(Date.now() - DAY), time(Date.now() + DAY)),
    named(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(
        sequence(identifier(OID.basicConstraints), der(0x01, Buffer.of(0xff)), der(0x04, isAuthority ? sequence(der(0x01, Buffer.of(0xff))) : sequence())),
        ...(dnsNames.length === 0
          ? []
          : [sequence(identifier(OID.subjectAltName), der(0x04, sequence(...dnsNames.map((name) => der(0x82, Buffer.from(name))))))]),
      ),
    ),
  );
  const signature = sign('sha256', signed, signer);
  const all = sequence(signed, algorithm, der(0x03, Buffer.concat([Buffer.of(0), signature])));
  return `-----BEGIN CERTIFICATE-----\n${all
    .toString('base64')
    .match(/.{1,64}/g)!
    .join('\n')}\n-----END CERTIFICATE-----\n`;
}

function named(name: string): Buffer {
  return sequence(der(0x31, sequence(identifier(OID.commonName), der(0x0c, Buffer.from(name)))));
}

function time(at: number): Buffer {
  const digits = new Date(at).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return der(0x17, Buffer.from(digits.slice(2)));
}

function identifier(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function integer(bytes: Buffer): Buffer {
  return der(0x02, bytes);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}
