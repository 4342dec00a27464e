import { createHash } from 'node:crypto';
import type { PasswordHashType, SaltPosition } from '#libs/contracts/src/users/operations';
import { checkOf, storableHash } from './imported-hashes.ts';

const base64 = (text: string | Buffer) => Buffer.from(text as string).toString('base64');
const unpadded = (text: string | Buffer) => base64(text).replaceAll('=', '');

const SCRYPT_RFC_7914 = Buffer.from(
  '7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887',
  'hex',
);
const PBKDF2_RFC_6070 = Buffer.from('4b007901b765489abead49d926f721d065a429c1', 'hex');
/** Of the README of firebase/scrypt. */
const FIREBASE = {
  hash: 'lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
  salt: '42xEC+ixf3L2lw==',
  sk: 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==',
  ss: 'Bw==',
  r: '8',
  m: '14',
};
const firebase = (changes: object = {}) =>
  `$firebase-scrypt$${Object.entries({ ...FIREBASE, ...changes })
    .map(([name, value]) => `${name}=${value}`)
    .join('$')}`;
const salted = (position: SaltPosition) => {
  const digest = createHash('sha256')
    .update(position === 'prefix' ? 'pepperpassword' : 'passwordpepper')
    .digest();
  return base64(Buffer.concat([digest, Buffer.from('pepper')]));
};

/** Hashes that others made, of RFCs, reference implementations and their manuals. */
const KNOWN: readonly (readonly [source: string, type: PasswordHashType, password: string, hash: string, position?: SaltPosition])[] = [
  ['jBCrypt', 'bcrypt', 'a', '$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe'],
  ['libxcrypt', 'bcrypt', 'rasmuslerdorf', '$2y$07$BCryptRequires22Chrcte/VlQH0piJtjXl.0t1XkA8pw9dMXTpOq'],
  ['one who writes the salt in another way', 'bcrypt', 'rasmuslerdorf', '$2y$07$BCryptRequires22Chrctf/VlQH0piJtjXl.0t1XkA8pw9dMXTpOq'],
  ['passlib', 'ssha', 'testing123', '{SSHA}0c0blFTXXNuAMHECS4uxrj3ZieMoWImr'],
  ['passlib', 'ssha256', 'password', '{SSHA256}x1tymSTVjozxQ2PtT46ysrzhZxbcskK0o2f8hEFx7fAQQmhtDSEkJA=='],
  ['SHA-256 itself', 'ssha256', 'password', salted('prefix'), 'prefix'],
  ['SHA-256 itself', 'ssha256', 'password', `{ssha256}${salted('suffix')}`, 'suffix'],
  ['RFC 7914', 'scrypt', 'pleaseletmein', `$scrypt$v=1$n=16384,r=8,p=1,kl=64$${unpadded('SodiumChloride')}$${unpadded(SCRYPT_RFC_7914)}`],
  ['RFC 7914, as PHC', 'scrypt', 'pleaseletmein', `$scrypt$ln=14,r=8,p=1$${unpadded('SodiumChloride')}$${unpadded(SCRYPT_RFC_7914)}`],
  ['firebase/scrypt', 'firebase-scrypt', 'user1password', firebase()],
  ['RFC 6070', 'pbkdf2', 'password', `$pbkdf2$i=4096,d=sha1$${base64('salt')}$${base64(PBKDF2_RFC_6070)}`],
  ['phc-pbkdf2', 'pbkdf2', 'password', '$pbkdf2-sha256$i=6400$0ZrzXitFSGltTQnBWOsdAw$Y11AchqV4b0sUisdZd0Xr97KWoymNE0LNNrnEgY4H9M'],
  ['passlib', 'pbkdf2', 'password', '$pbkdf2-sha256$6400$0ZrzXitFSGltTQnBWOsdAw$Y11AchqV4b0sUisdZd0Xr97KWoymNE0LNNrnEgY4H9M'],
  ['phc-winner-argon2', 'argon2', 'password', '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'],
  ['phc-winner-argon2', 'argon2', 'password', '$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA'],
  ['phc-winner-argon2, version 16', 'argon2', 'password', '$argon2i$m=65536,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ'],
];

const ARGON2_TAIL = 'c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
const SCRYPT_TAIL = `${unpadded('SodiumChloride')}$${unpadded(SCRYPT_RFC_7914)}`;
const MALFORMED: readonly (readonly [type: PasswordHashType, hash: string])[] = [
  ['bcrypt', ''],
  ['bcrypt', 'password'],
  ['bcrypt', '$2a$03$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe'],
  ['bcrypt', '$2a$16$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe'],
  ['bcrypt', '$2x$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe'],
  ['bcrypt', '$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfx'],
  ['ssha', '{SSHA}'],
  ['ssha', `{SSHA}${base64('x'.repeat(20))}`],
  ['ssha', '{SSHA}!!!'],
  ['ssha256', `{SSHA256}${base64('x'.repeat(32))}`],
  ['ssha256', `{SSHA}${base64('x'.repeat(40))}`],
  ['scrypt', `$scrypt$v=2$n=16384,r=8,p=1,kl=64$${SCRYPT_TAIL}`],
  ['scrypt', `$scrypt$v=1$n=16383,r=8,p=1,kl=64$${SCRYPT_TAIL}`],
  ['scrypt', `$scrypt$v=1$n=16384,r=8,p=1,kl=32$${SCRYPT_TAIL}`],
  ['scrypt', `$scrypt$v=1$n=16384,r=8$${SCRYPT_TAIL}`],
  ['scrypt', `$scrypt$v=1$n=16384,n=2,r=8,p=1$${SCRYPT_TAIL}`],
  ['scrypt', `$scrypt$ln=30,r=8,p=1$${SCRYPT_TAIL}`],
  ['scrypt', `$scrypt$ln=14,r=8,p=1000$${SCRYPT_TAIL}`],
  ['scrypt', `$scrypt$ln=14,r=8,p=1$${unpadded('SodiumChloride')}`],
  ['scrypt', `$scrypt$v=1$ln=14,r=8,p=1$${SCRYPT_TAIL}$more`],
  ['scrypt', `$argon2id$ln=14,r=8,p=1$${SCRYPT_TAIL}`],
  ['firebase-scrypt', firebase({ m: '40' })],
  ['firebase-scrypt', firebase({ m: '' })],
  ['firebase-scrypt', firebase({ r: 'x' })],
  ['firebase-scrypt', firebase({ hash: base64('x'.repeat(32)) })],
  ['firebase-scrypt', firebase({ salt: '' })],
  ['firebase-scrypt', firebase({ sk: '', hash: '' })],
  ['firebase-scrypt', '$scrypt$ln=14,r=8,p=1$c2FsdA$aGFzaA'],
  ['pbkdf2', '$pbkdf2$i=6400$0ZrzXitFSGltTQnBWOsdAw$Y11AchqV4b0sUisdZd0Xr97KWoymNE0LNNrnEgY4H9M'],
  ['pbkdf2', '$pbkdf2-md5$i=6400$0ZrzXitFSGltTQnBWOsdAw$Y11AchqV4b0sUisdZd0Xr97KWoymNE0LNNrnEgY4H9M'],
  ['pbkdf2', '$pbkdf2-sha256$i=0$0ZrzXitFSGltTQnBWOsdAw$Y11AchqV4b0sUisdZd0Xr97KWoymNE0LNNrnEgY4H9M'],
  ['pbkdf2', '$pbkdf2-sha256$i=10000001$0ZrzXitFSGltTQnBWOsdAw$Y11AchqV4b0sUisdZd0Xr97KWoymNE0LNNrnEgY4H9M'],
  ['pbkdf2', '$pbkdf2-sha256$i=6400$0ZrzXitFSGltTQnBWOsdAw$Y11A'],
  ['pbkdf2', '$pbkdf2-sha256$i=6400$$Y11AchqV4b0sUisdZd0Xr97KWoymNE0LNNrnEgY4H9M'],
  ['argon2', `$argon2x$v=19$m=65536,t=2,p=1$${ARGON2_TAIL}`],
  ['argon2', `$argon2id$v=18$m=65536,t=2,p=1$${ARGON2_TAIL}`],
  ['argon2', `$argon2id$v=19$m=4194304,t=2,p=1$${ARGON2_TAIL}`],
  ['argon2', `$argon2id$v=19$m=65536,t=1000000,p=1$${ARGON2_TAIL}`],
  ['argon2', `$argon2id$v=19$m=65536,t=0,p=1$${ARGON2_TAIL}`],
  ['argon2', `$argon2id$v=19$m=7,t=2,p=1$${ARGON2_TAIL}`],
  ['argon2', `$argon2id$v=19$m=65536,t=2$${ARGON2_TAIL}`],
  ['argon2', '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ'],
  ['argon2', '$argon2id$v=19$m=65536,t=2,p=1$c2FsdA$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'],
];

const bcryptOf = (cost: number): string => `$2b$${String(cost).padStart(2, '0')}$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe`;
const scryptOf = (ln: number, r: number, p: number): string => `$scrypt$ln=${ln},r=${r},p=${p}$${SCRYPT_TAIL}`;
const argon2Of = (m: number, t: number, p: number): string => `$argon2id$v=19$m=${m},t=${t},p=${p}$${ARGON2_TAIL}`;
const pbkdf2Of = (digest: string, iterations: number, length = 32): string =>
  `$pbkdf2-${digest}$i=${iterations}$0ZrzXitFSGltTQnBWOsdAw$${unpadded(Buffer.alloc(length, 7))}`;

/** What OWASP and the frameworks that people come from recommend, up to the bounds. */
const AFFORDABLE: readonly (readonly [type: PasswordHashType, hash: string, isLarge: boolean])[] = [
  ['bcrypt', bcryptOf(12), false],
  ['bcrypt', bcryptOf(14), true],
  ['scrypt', scryptOf(14, 8, 1), false],
  ['scrypt', scryptOf(14, 8, 5), false],
  ['scrypt', scryptOf(15, 8, 3), true],
  ['scrypt', scryptOf(16, 8, 2), true],
  ['scrypt', scryptOf(17, 8, 1), true],
  ['firebase-scrypt', firebase({ m: '17' }), true],
  ['pbkdf2', pbkdf2Of('sha1', 1_400_000, 20), true],
  ['pbkdf2', pbkdf2Of('sha256', 600_000), true],
  ['pbkdf2', pbkdf2Of('sha256', 1_500_000), true],
  ['pbkdf2', pbkdf2Of('sha512', 210_000, 64), false],
  ['pbkdf2', pbkdf2Of('sha512', 1_000_000, 64), true],
  ['argon2', argon2Of(19_456, 2, 1), false],
  ['argon2', argon2Of(65_536, 4, 1), false],
  ['argon2', argon2Of(65_536, 3, 4), false],
  ['argon2', argon2Of(131_072, 1, 1), true],
  ['argon2', argon2Of(65_536, 15, 1), true],
];

/** Measured: up to 18 seconds of one core, and 256 MiB. */
const UNAFFORDABLE: readonly (readonly [type: PasswordHashType, hash: string])[] = [
  ['bcrypt', bcryptOf(15)],
  ['bcrypt', bcryptOf(31)],
  ['scrypt', scryptOf(18, 8, 16)],
  ['scrypt', scryptOf(18, 8, 1)],
  ['scrypt', scryptOf(17, 9, 1)],
  ['scrypt', scryptOf(17, 8, 3)],
  ['scrypt', scryptOf(14, 8, 32)],
  // Hardly any cost, but blocks that PBKDF2 has to fill.
  ['scrypt', scryptOf(1, 65_536, 16)],
  ['firebase-scrypt', firebase({ m: '18' })],
  ['pbkdf2', pbkdf2Of('sha256', 10_000_000)],
  ['pbkdf2', pbkdf2Of('sha256', 1_700_000)],
  ['pbkdf2', pbkdf2Of('sha512', 1_200_000, 64)],
  // As many iterations for every 20 of its bytes.
  ['pbkdf2', pbkdf2Of('sha1', 100_000, 512)],
  ['argon2', argon2Of(262_144, 16, 1)],
  ['argon2', argon2Of(131_073, 1, 1)],
  ['argon2', argon2Of(131_072, 8, 1)],
  ['argon2', argon2Of(65_536, 16, 1)],
  ['argon2', argon2Of(128, 8_192, 16)],
];

describe('a password hash from elsewhere', () => {
  it.each(KNOWN.map(([source, type, password, hash, position]) => ({ source, type, password, hash, position })))(
    'of $source ($type) is met by its password alone',
    async ({ type, password, hash, position }) => {
      const stored = storableHash(type, hash, position);
      expect(stored).toEqual({ type, hash, ...(position && { salt_position: position }) });
      expect(await checkOf(stored).matches(password)).toBe(true);
      expect(await checkOf(stored).matches(`${password}!`)).toBe(false);
      expect(await checkOf(stored).matches('')).toBe(false);
    },
  );

  it('with its salt in front is another than with its salt behind', async () => {
    expect(await checkOf(storableHash('ssha256', salted('prefix'), 'suffix')).matches('password')).toBe(false);
  });

  it.each(AFFORDABLE)('of %s is taken when it can be verified in about a second: %s', (type, hash, isLarge) => {
    expect(checkOf(storableHash(type, hash)).isLarge).toBe(isLarge);
  });

  it.each(UNAFFORDABLE)('of %s that was stored when more was taken is right for no password, at once: %s', (type, hash) => {
    expect(checkOf({ type, hash }).matches('password')).toBe(false);
  });

  // The library refuses so great a cost for so small blocks.
  it.each([...MALFORMED, ...UNAFFORDABLE, ['scrypt', scryptOf(17, 1, 1)] as const])('of %s is refused when it reads %s', (type, hash) => {
    try {
      storableHash(type, hash);
      expect('refused').toBe('taken');
    } catch (error) {
      expect(error).toMatchObject({ kind: 'invalid', code: 'invalid_password_hash' });
      if (hash.length > 20) expect(JSON.stringify(error) + String(error)).not.toContain(hash.slice(0, 20));
    }
  });
});
