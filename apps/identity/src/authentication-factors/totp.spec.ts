import { spawnSync } from 'node:child_process';
import { givenProgram } from '#libs/testing/src/given-program';
import { codeOfStep, otpauthUri, secretOfBase32, stepAt, stepsOf, toBase32 } from './totp.ts';

const OATHTOOL = givenProgram('oathtool');
const SECRET = Buffer.from('12345678901234567890');

/** RFC 6238, appendix B: seconds, and the code of eight digits, of which apps show the last six. */
const VECTORS = [
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
] as const;

describe('codes of authenticator apps', () => {
  it.each(VECTORS)('at %i s are those of the RFC', (seconds, code) => expect(codeOfStep(SECRET, stepAt(seconds * 1_000))).toBe(code.slice(2)));

  it('are those of HOTP by the step', () =>
    // RFC 4226, appendix D.
    expect(Array.from({ length: 4 }, (_, step) => codeOfStep(SECRET, step))).toEqual(['755224', '287082', '359152', '969429']));

  (OATHTOOL === null ? it.skip : it)('are those of another program', () => {
    for (const seconds of [59, 1_111_111_109, 1_795_000_017]) {
      const { stdout } = spawnSync(OATHTOOL!, ['--totp', '--base32', '--now', `@${seconds}`, toBase32(SECRET)], { encoding: 'utf8' });
      expect(codeOfStep(SECRET, stepAt(seconds * 1_000))).toBe(stdout.trim());
    }
  });

  it('count in the step before and the step after, and no further', () => {
    const now = 1_111_111_109_000;
    const present = stepAt(now);
    for (const drift of [-1, 0, 1]) expect(stepsOf(SECRET, codeOfStep(SECRET, present + drift), now)).toEqual([present + drift]);
    for (const drift of [-2, 2]) expect(stepsOf(SECRET, codeOfStep(SECRET, present + drift), now)).toEqual([]);
    expect(stepsOf(SECRET, ` ${codeOfStep(SECRET, present)} `, now)).toEqual([present]);
    for (const text of ['', '000', '1234567', 'abcdef', '\u0661\u0662\u0663456']) expect(stepsOf(SECRET, text, now)).toEqual([]);
  });
});

describe('a secret', () => {
  it('is written in base 32', () => {
    // RFC 4648, section 10.
    const texts = ['f', 'fo', 'foo', 'foob', 'fooba', 'foobar'].map((text) => toBase32(Buffer.from(text)));
    expect(texts).toEqual(['MY', 'MZXQ', 'MZXW6', 'MZXW6YQ', 'MZXW6YTB', 'MZXW6YTBOI']);
    expect(secretOfBase32(toBase32(SECRET))).toEqual(SECRET);
  });
  it('is read as people copy it', () => {
    expect(secretOfBase32('gezd gnbv gy3t qojq-gezd gnbv gy3t qojq')).toEqual(SECRET);
    expect(secretOfBase32('MZXW6YTBOJRGCZA=')).toEqual(null);
    expect(secretOfBase32('MZXW6YTBOJRGCZDCMF5A====')).toEqual(Buffer.from('foobarbadbaz'));
  });
  it.each(['', 'MZXW6', '1ABCDEFGHIJKLMNOP', 'MZXW6YTBOI!MZXW6YTBOI'])('is not %s', (text) => expect(secretOfBase32(text)).toBeNull());

  it('is in the URI with what the app shows, escaped', () => {
    const uri = new URL(otpauthUri({ issuer: 'Acme: Nord & Süd', user: 'ada@acme.test', secret: 'MZXW6' }));
    expect([uri.protocol, uri.host, decodeURIComponent(uri.pathname)]).toEqual(['otpauth:', 'totp', '/Acme: Nord & Süd:ada@acme.test']);
    expect(Object.fromEntries(uri.searchParams)).toEqual({ secret: 'MZXW6', issuer: 'Acme: Nord & Süd', algorithm: 'SHA1', digits: '6', period: '30' });
  });
});
