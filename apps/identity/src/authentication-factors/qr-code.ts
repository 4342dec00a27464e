import { crc32, deflateSync } from 'node:zlib';
import encodeQR from 'qr';

const PIXELS_OF_MODULE = 5;
/** As the standard wants it, for cameras to find the code. */
const QUIET_MODULES = 4;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** A QR code of a text as a data URL: a PNG of one bit a pixel, under 2 KiB. Null where the text is longer than a code takes. */
export function qrCode(text: string): string | null {
  let modules: readonly (readonly boolean[])[];
  try {
    modules = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_MODULES });
  } catch {
    return null;
  }
  return `data:image/png;base64,${png(modules).toString('base64')}`;
}

/** Dark modules are black. */
function png(modules: readonly (readonly boolean[])[]): Buffer {
  const size = modules.length * PIXELS_OF_MODULE;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  // One bit a pixel, shades of grey.
  header[8] = 1;
  const lines = modules.flatMap((row) => Array<Buffer>(PIXELS_OF_MODULE).fill(line(row, size)));
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('IDAT', deflateSync(Buffer.concat(lines))), chunk('IEND', Buffer.alloc(0))]);
}

/** Behind a zero: not filtered. */
function line(row: readonly boolean[], size: number): Buffer {
  const bytes = Buffer.alloc(1 + Math.ceil(size / 8), 0xff);
  bytes[0] = 0;
  for (let pixel = 0; pixel < size; pixel++) if (row[Math.floor(pixel / PIXELS_OF_MODULE)]) bytes[1 + (pixel >> 3)]! &= ~(0x80 >> (pixel & 7));
  return bytes;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
