import { X509Certificate } from 'node:crypto';
import { givenAuthority } from './certificates.ts';

describe('certificates of specs', () => {
  it('are RSA, as EventStoreDB wants them, signed by their authority, and for the names that they carry', async () => {
    const signer = await givenAuthority('Authority');
    const { cert, key } = await signer.certify('A process', ['localhost', '127.0.0.1']);
    const [authority, certificate] = [new X509Certificate(signer.ca), new X509Certificate(cert)];
    for (const { publicKey } of [authority, certificate]) expect(publicKey.asymmetricKeyType).toBe('rsa');
    expect(key).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
    expect(certificate.verify(authority.publicKey)).toBe(true);
    expect([authority.ca, certificate.ca]).toEqual([true, false]);
    expect([certificate.subject, certificate.issuer, certificate.subjectAltName]).toEqual([
      'CN=A process',
      'CN=Authority',
      'DNS:localhost, IP Address:127.0.0.1',
    ]);
  });
});
