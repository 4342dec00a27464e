import { crc32, inflateSync } from 'node:zlib';
import { decodeQR } from 'qr/decode.js';
import { qrCode } from './qr-code.ts';

/** As a viewer reads a PNG of one bit a pixel whose lines are not filtered. */
function pixelsOf(url: string) {
  const bytes = Buffer.from(url.slice('data:image/png;base64,'.length), 'base64');
  const chunks = new Map<string, Buffer>();
  for (let offset = 8; offset < bytes.length;) {
    const length = bytes.readUInt32BE(offset);
    const [type, data] = [bytes.toString('latin1', offset + 4, offset + 8), bytes.subarray(offset + 8, offset + 8 + length)];
    expect(bytes.readUInt32BE(offset + 8 + length)).toBe(crc32(bytes.subarray(offset + 4, offset + 8 + length)));
    chunks.set(type, data);
    offset += 12 + length;
  }
  const header = chunks.get('IHDR')!;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  expect([...header.subarray(8)]).toEqual([1, 0, 0, 0, 0]);
  const lines = inflateSync(chunks.get('IDAT')!);
  const data = new Uint8ClampedArray(4 * width * height).fill(255);
  const stride = 1 + Math.ceil(width / 8);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      if ((lines[y * stride + 1 + (x >> 3)]! & (0x80 >> (x & 7))) === 0) data.fill(0, 4 * (y * width + x), 4 * (y * width + x) + 3);
  return { width, height, data };
}

it.each(['otpauth://totp/Acme:ada@acme.test?secret=GEZDGNBVGY3TQOJQ', `otpauth://totp/${'a'.repeat(600)}`])(
  'a QR code is a small picture of its text',
  (text) => {
    const url = qrCode(text)!;
    expect(url).toMatch(/^data:image\/png;base64,[\w+/]+=*$/);
    expect(url.length).toBeLessThan(8_192);
    expect(decodeQR(pixelsOf(url))).toBe(text);
  },
);

it('there is none of what is too long for one', () => expect(qrCode('a'.repeat(3_000))).toBeNull());
