import { createHmac, randomBytes } from 'node:crypto';
import { HmacSha256 } from './hmac-sha256.ts';

describe('HMAC-SHA-256', () => {
  it('is that of RFC 4231', () => {
    expect(new HmacSha256(Buffer.alloc(20, 0x0b)).of('Hi There', 'hex')).toBe('b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7');
    expect(new HmacSha256(Buffer.from('Jefe')).of('what do ya want for nothing?', 'hex')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
    expect(new HmacSha256(Buffer.alloc(131, 0xaa)).of('Test Using Larger Than Block-Size Key - Hash Key First', 'hex')).toBe(
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    );
  });

  it.each(['', 'x', 'Zoë 𝒳', 'half \ud800 a character', 'x'.repeat(1_365), 'x'.repeat(1_366), '€'.repeat(4_096), 'x'.repeat(100_000)])(
    'is that of Node',
    (text) => {
      const key = randomBytes(32);
      const hmac = new HmacSha256(key);
      // What was hashed before is no part of it.
      hmac.of('y'.repeat(1_000), 'hex');
      for (const encoding of ['hex', 'base64url', 'binary'] as const)
        expect(hmac.of(text, encoding)).toBe(createHmac('sha256', key).update(text).digest(encoding));
    },
  );
});
