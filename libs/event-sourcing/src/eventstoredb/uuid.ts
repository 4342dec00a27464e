import { BASE_32, ULID_LENGTH } from '#libs/platform/src/ids';

const VALUES: Readonly<Record<string, number>> = Object.fromEntries([...BASE_32].map((character, value) => [character, value]));
/** Characters that are read at once: what they say fits into a number exactly. */
const HALF = 10;

/** The 128 bits of a ULID, spelt as a UUID. */
export function uuidOf(ulid: string): string {
  let bits = 0n;
  for (let start = 0; start < ULID_LENGTH; start += HALF) {
    const part = ulid.slice(start, start + HALF);
    let value = 0;
    for (const character of part) value = value * 32 + VALUES[character]!;
    bits = (bits << BigInt(5 * part.length)) | BigInt(value);
  }
  const hex = bits.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The ULID of the 128 bits of a UUID. */
export function ulidOf(uuid: string): string {
  let bits = BigInt(`0x${uuid.replaceAll('-', '')}`);
  let text = '';
  for (let left = ULID_LENGTH; left > 0; left -= HALF) {
    const length = Math.min(HALF, left);
    let value = Number(bits & ((1n << BigInt(5 * length)) - 1n));
    bits >>= BigInt(5 * length);
    let part = '';
    for (; part.length < length; value = Math.floor(value / 32)) part = BASE_32[value % 32]! + part;
    text = part + text;
  }
  return text;
}
