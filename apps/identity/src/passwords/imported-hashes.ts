import { createCipheriv, createHash, pbkdf2, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import bcrypt from 'bcrypt';
import type { PasswordHashType, SaltPosition } from '#libs/contracts/src/users/operations';
import { refusedField } from '#libs/platform/src/domain-error';
import type { StoredPassword } from '../domain/stored-password.ts';

type ImportedPassword = StoredPassword & { readonly type: PasswordHashType };

/** A hash that was read: tells whether a password has it, and what it takes to tell. */
interface HashCheck {
  readonly matches: (password: string) => boolean | Promise<boolean>;
  /** By the formulas below. */
  readonly milliseconds: number;
  readonly bytes: number;
}

/** What one password may take to verify: it is taken at every sign-in. OWASP's own scrypt (2^17, 8, 1) needs all of the memory. */
const MAX_MILLISECONDS = 1_000;
const MAX_MEMORY = 128 * 1024 * 1024;
/** Beyond what our own hash takes, and beyond argon2 at its usual 64 MiB: of these one is verified at a time. */
const LARGE_MILLISECONDS = 300;
const LARGE_MEMORY = 64 * 1024 * 1024;

/** Milliseconds of one core of 2025, measured beside other work; a processor with instructions for SHA takes a third for PBKDF2. */
const TIME = {
  bcrypt: (cost: number): number => 2 ** cost * 0.056,
  /** The second part is PBKDF2 at its begin and end, which tells where `cost` is small. */
  scrypt: (cost: number, r: number, p: number): number => (cost + 8) * r * p * 0.000_45,
  /** Each piece of the result, as long as the digest, takes all of the iterations. */
  pbkdf2: (iterations: number, { milliseconds, length }: Digest, resultLength: number): number => iterations * Math.ceil(resultLength / length) * milliseconds,
  /** KiB written, over all passes; every lane costs a little in every pass. */
  argon2: (memoryCost: number, timeCost: number, lanes: number): number => (memoryCost + 16 * lanes) * timeCost * 0.001,
} as const;

interface Digest {
  readonly length: number;
  /** Of one iteration. */
  readonly milliseconds: number;
}

const DIGESTS: Readonly<Record<string, Digest>> = {
  sha1: { length: 20, milliseconds: 0.000_5 },
  sha256: { length: 32, milliseconds: 0.000_6 },
  sha512: { length: 64, milliseconds: 0.000_9 },
};

/** Of argon2; more would be threads for most libraries, and nobody uses them. */
const MAX_LANES = 16;

/** What is shorter could be met by chance, or by trying. */
const MIN_HASH_BYTES = 16;
const MAX_BYTES = 512;

/** What is stored of a hash that comes from elsewhere: the hash as it came. @throws DomainError `invalid_password_hash`, which never shows the hash */
export function storableHash(type: PasswordHashType, hash: string, salt_position?: SaltPosition): ImportedPassword {
  const password: ImportedPassword = { type, hash, ...(salt_position !== undefined && { salt_position }) };
  const check = readerOf(password);
  if (check === null || !isAffordable(check)) {
    const message = `The password hash is not in the form of ${type}, or takes too much to verify.`;
    throw refusedField('invalid', 'invalid_password_hash', { field: 'password_hash', message });
  }
  return password;
}

/** What verifies a stored hash, and whether that is so much that nothing else of its size should go on beside it. */
export function checkOf(stored: ImportedPassword): { readonly matches: HashCheck['matches']; readonly isLarge: boolean } {
  const check = readerOf(stored);
  if (check === null) throw new Error(`A stored hash is not in the form of ${stored.type}.`);
  // Stored when more was taken: no password is right any more, and a new one takes its place.
  if (!isAffordable(check)) return { matches: () => false, isLarge: false };
  return { matches: check.matches, isLarge: check.milliseconds > LARGE_MILLISECONDS || check.bytes > LARGE_MEMORY };
}

function isAffordable({ milliseconds, bytes }: HashCheck): boolean {
  return milliseconds <= MAX_MILLISECONDS && bytes <= MAX_MEMORY;
}

function readerOf({ type, hash, salt_position }: ImportedPassword): HashCheck | null {
  switch (type) {
    case 'bcrypt':
      return bcryptHash(hash);
    case 'ssha':
      return saltedHash(hash, 'sha1', 'suffix');
    case 'ssha256':
      return saltedHash(hash, 'sha256', salt_position ?? 'suffix');
    case 'scrypt':
      return scryptHash(hash);
    case 'firebase-scrypt':
      return firebaseHash(hash);
    case 'pbkdf2':
      return pbkdf2Hash(hash);
    case 'argon2':
      return argon2Hash(hash);
  }
}

/** `$2b$12$…`, and what others call it: `$2a$`, `$2y$`. */
function bcryptHash(text: string): HashCheck | null {
  const parts = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(text);
  const cost = Number(parts?.[1]);
  if (!(cost >= 4 && cost <= 31)) return null;
  const hash = `$2b${text.slice(3)}`;
  // Without the salt, whose last character may be written in sixteen ways.
  const digestOf = (whole: string): Buffer => Buffer.from(whole.slice(29));
  const matches = async (password: string): Promise<boolean> => isSame(digestOf(await bcrypt.hash(password, hash.slice(0, 29))), digestOf(hash));
  return { matches, milliseconds: TIME.bcrypt(cost), bytes: 0 };
}

/** As LDAP keeps it: `{SSHA}` or `{SSHA256}`, then the digest with the salt behind it, in base64. */
function saltedHash(text: string, digest: 'sha1' | 'sha256', position: SaltPosition): HashCheck | null {
  const [scheme, length] = digest === 'sha1' ? ['{SSHA}', 20] : ['{SSHA256}', 32];
  const encoded = text.slice(0, scheme.length).toUpperCase() === scheme ? text.slice(scheme.length) : text;
  const bytes = bytesOf(encoded, length + 1);
  if (bytes === null) return null;
  const [hash, salt] = [bytes.subarray(0, length), bytes.subarray(length)];
  const matches = (password: string): boolean => {
    const parts = position === 'prefix' ? [salt, Buffer.from(password)] : [Buffer.from(password), salt];
    return isSame(createHash(digest).update(Buffer.concat(parts)).digest(), hash);
  };
  return { matches, milliseconds: 0, bytes: 0 };
}

/** `$scrypt$v=1$n=16384,r=8,p=1,kl=64$salt$hash`; `ln=14` may stand for `n=16384`, as in the PHC convention. */
function scryptHash(text: string): HashCheck | null {
  const [, name, ...rest] = text.split('$');
  const [options, salt, hash] = rest[0]?.startsWith('v=') ? rest.slice(1) : rest;
  const given = parametersOf(options, ',');
  const [salted, expected] = [bytesOf(salt, 1), bytesOf(hash, MIN_HASH_BYTES)];
  if (name !== 'scrypt' || rest.length > 4 || (rest.length === 4 && rest[0] !== 'v=1') || given === null || salted === null || expected === null) return null;
  const cost = given.has('ln') ? 2 ** numberIn(given, 'ln') : numberIn(given, 'n');
  const [r, p, length] = [numberIn(given, 'r'), numberIn(given, 'p'), given.has('kl') ? numberIn(given, 'kl') : expected.length];
  if (length !== expected.length || !isScrypt(cost, r, p)) return null;
  const matches = async (password: string): Promise<boolean> => isSame(await derivedByScrypt(password, salted, length, { N: cost, r, p }), expected);
  return { matches, milliseconds: TIME.scrypt(cost, r, p), bytes: 128 * cost * r };
}

/** `$firebase-scrypt$hash=…$salt=…$sk=…$ss=…$r=8$m=14`: a key is derived by scrypt, and what it makes of the project's signer key is the hash. */
function firebaseHash(text: string): HashCheck | null {
  const prefix = '$firebase-scrypt$';
  const given = text.startsWith(prefix) ? parametersOf(text.slice(prefix.length), '$') : null;
  if (given === null) return null;
  const [salt, separator, signer] = [bytesOf(given.get('salt'), 1), bytesOf(given.get('ss'), 0), bytesOf(given.get('sk'), MIN_HASH_BYTES)];
  const hash = bytesOf(given.get('hash'), MIN_HASH_BYTES);
  const [cost, r] = [2 ** numberIn(given, 'm'), numberIn(given, 'r')];
  if (salt === null || separator === null || signer === null || hash?.length !== signer.length || !isScrypt(cost, r, 1)) return null;
  const matches = async (password: string): Promise<boolean> => {
    const key = await derivedByScrypt(password, Buffer.concat([salt, separator]), 32, { N: cost, r, p: 1 });
    return isSame(createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(signer), hash);
  };
  return { matches, milliseconds: TIME.scrypt(cost, r, 1), bytes: 128 * cost * r };
}

/** `$pbkdf2-sha256$i=600000$salt$hash`, or `$pbkdf2$i=600000,d=sha256$salt$hash`; passlib writes the number of iterations alone. */
function pbkdf2Hash(text: string): HashCheck | null {
  const [, name = '', options = '', salt, hash, ...more] = text.split('$');
  const given = parametersOf(/^\d+$/.test(options) ? `i=${options}` : options, ',');
  const [salted, expected] = [bytesOf(salt, 1), bytesOf(hash, MIN_HASH_BYTES)];
  if (given === null || salted === null || expected === null || more.length > 0) return null;
  const digestName = (name === 'pbkdf2' ? given.get('d') : /^pbkdf2-(.+)$/.exec(name)?.[1])?.replace(/^sha-(?=\d)/, 'sha') ?? '';
  const digest = Object.hasOwn(DIGESTS, digestName) ? DIGESTS[digestName] : undefined;
  const [iterations, length] = [numberIn(given, 'i'), given.has('l') ? numberIn(given, 'l') : expected.length];
  if (digest === undefined || length !== expected.length || !(iterations >= 1)) return null;
  const matches = async (password: string): Promise<boolean> => isSame(await derivedByPbkdf2(password, salted, iterations, length, digestName), expected);
  return { matches, milliseconds: TIME.pbkdf2(iterations, digest, length), bytes: 0 };
}

const ARGON2 = /^\$argon2(id|i|d)(?:\$v=(16|19))?\$([^$]+)\$([^$]+)\$([^$]+)$/;
/** The numbers by which the library calls them. */
const ALGORITHMS = { d: 0, i: 1, id: 2 } as const;
const VERSIONS = { 16: 0, 19: 1 } as const;

/** `$argon2id$v=19$m=65536,t=3,p=4$salt$hash`. */
function argon2Hash(text: string): HashCheck | null {
  const [, variant, version = '16', options, salt, hash] = ARGON2.exec(text) ?? [];
  const given = parametersOf(options, ',');
  const [salted, expected] = [bytesOf(salt, 8), bytesOf(hash, MIN_HASH_BYTES)];
  if (given === null || salted === null || expected === null) return null;
  const [memoryCost, timeCost, parallelism] = [numberIn(given, 'm'), numberIn(given, 't'), numberIn(given, 'p')];
  if (!(timeCost >= 1 && parallelism >= 1 && parallelism <= MAX_LANES && memoryCost >= 8 * parallelism)) return null;
  const parameters = {
    algorithm: ALGORITHMS[variant as keyof typeof ALGORITHMS],
    version: VERSIONS[Number(version) as keyof typeof VERSIONS],
    memoryCost,
    timeCost,
    parallelism,
    salt: salted,
    outputLen: expected.length,
  };
  // Its binary is loaded where there is such a hash.
  const matches = async (password: string): Promise<boolean> => isSame(await (await import('@node-rs/argon2')).hashRaw(password, parameters), expected);
  return { matches, milliseconds: TIME.argon2(memoryCost, timeCost, parallelism), bytes: memoryCost * 1024 };
}

/** `a=1,b=2`, each name once, in lower case; null for anything else. */
function parametersOf(text: string | undefined, separator: string): ReadonlyMap<string, string> | null {
  const pairs = (text ?? '').split(separator).map((part) => /^([A-Za-z]+)=(.*)$/.exec(part));
  const given = new Map(pairs.filter((pair) => pair !== null).map(([, name, value]) => [name!.toLowerCase(), value!]));
  return given.size === pairs.length ? given : null;
}

/** NaN, with which no comparison is true, for what is absent or no number. */
function numberIn(given: ReadonlyMap<string, string>, name: string): number {
  const text = given.get(name) ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}

/** Base64 in any of its alphabets, with or without padding. */
function bytesOf(text: string | undefined, min: number): Buffer | null {
  if (text === undefined || !/^[A-Za-z0-9+/._-]*={0,2}$/.test(text)) return null;
  const bytes = Buffer.from(text.replaceAll('.', '+'), 'base64');
  return bytes.length >= min && bytes.length <= MAX_BYTES ? bytes : null;
}

/** As RFC 7914 has it; the library refuses a cost that is too great for its blocks. */
function isScrypt(cost: number, r: number, p: number): boolean {
  return cost >= 2 && Number.isInteger(Math.log2(cost)) && r >= 1 && p >= 1 && Math.log2(cost) < 16 * r;
}

const derivedByPbkdf2 = promisify(pbkdf2);

function derivedByScrypt(password: string, salt: Buffer, length: number, parameters: { N: number; r: number; p: number }): Promise<Buffer> {
  return new Promise((resolve, reject) =>
    scrypt(password, salt, length, { ...parameters, maxmem: 2 * MAX_MEMORY }, (error, key) => (error === null ? resolve(key) : reject(error))),
  );
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
