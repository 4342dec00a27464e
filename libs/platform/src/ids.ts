import { hash, randomFillSync } from 'node:crypto';

/** Crockford's base 32: what ULIDs are written in. */
export const BASE_32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
export const ULID_LENGTH = 26;
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
/** The last four characters (20 bits) of a command id are zero: they number what the command creates. */
const ORDINAL_CHARACTERS = 4;

function encode(value: number, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32)) text = BASE_32[rest % 32]! + text;
  return text;
}

/** What ten bits are in two characters: thirty at a time are looked up, with thousands of ids a second. */
const TEN_BITS = Array.from({ length: 1_024 }, (_, value) => encode(value, 2));

function encodeThirtyBits(value: number): string {
  return TEN_BITS[value >>> 20]! + TEN_BITS[(value >>> 10) & 0x3ff]! + TEN_BITS[value & 0x3ff]!;
}

let lastTime = -1;
/** The time, and the upper half of what is random. */
let beginning = '';
/** 60 random bits in two halves of 30, counted up within one millisecond, so that ids are monotonic in a process. */
let high = 0;
let low = 0;
const random = Buffer.alloc(8 * 512);
let randomOffset = random.length;

function freshHalves(): void {
  if (randomOffset === random.length) {
    randomFillSync(random);
    randomOffset = 0;
  }
  // The top bit stays free, so that counting up cannot overflow.
  high = random.readUInt32LE(randomOffset) & 0x1fffffff;
  low = random.readUInt32LE(randomOffset + 4) & 0x3fffffff;
  randomOffset += 8;
}

/**
 * A ULID (26 characters, Crockford base 32) whose last 20 bits are zero. Every id that a command creates derives from it with `derivedId`,
 * so that a repeated command meets its own ids again.
 */
export function newCommandId(now: number): string {
  if (now > lastTime) {
    lastTime = now;
    freshHalves();
    beginning = encode(now, 10) + encodeThirtyBits(high);
  } else if (++low > 0x3fffffff) {
    low = 0;
    high++;
    beginning = encode(lastTime, 10) + encodeThirtyBits(high);
  }
  return `${beginning}${encodeThirtyBits(low)}0000`;
}

/** The id of a command that follows from something recorded at that time: the same whenever it is asked for with the same parts. */
export function commandIdOf(at: number, ...parts: readonly string[]): string {
  const digest = hash('sha256', JSON.stringify(parts), 'buffer');
  return encode(at, 10) + encode(digest.readUInt32BE(0) >>> 2, 6) + encode(digest.readUInt32BE(4) >>> 2, 6) + '0000';
}

/** The `ordinal`-th ULID of a command: same command, same ordinal, same id. `ordinal` < 2^20. */
export function derivedId(commandId: string, ordinal: number): string {
  return commandId.slice(0, ULID_LENGTH - ORDINAL_CHARACTERS) + encode(ordinal, ORDINAL_CHARACTERS);
}

/** A bare ULID that belongs to no command: request ids, lease owners. */
export function newUlid(now: number): string {
  return newCommandId(now);
}

function isUlid(text: string): boolean {
  return ULID.test(text);
}

/** Whether `id` is `<prefix>_<ULID>`; compares the whole prefix, since `conn_` also begins `conn_app_`. */
export function isIdOf(prefix: string, id: string): boolean {
  return id.length === prefix.length + 27 && id.startsWith(prefix) && id[prefix.length] === '_' && isUlid(id.slice(-26));
}

/** Milliseconds since the epoch, read from the time in a ULID or a prefixed id. */
export function timeOfId(id: string): number {
  let time = 0;
  for (const character of id.slice(-26, -16)) time = time * 32 + BASE_32.indexOf(character);
  return time;
}
