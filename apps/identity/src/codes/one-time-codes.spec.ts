import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { givenKeys } from '#libs/testing/src/given-keys';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { evenDigits, idInToken, OneTimeCodes, type CodeName } from './one-time-codes.ts';

const NAME: CodeName = { environment: 'environment_1', kind: 'magic_auth', id: 'magic_auth_01KF0000000000000000000000', round: 0 };

describe('codes', () => {
  let directory: string;
  let codes: OneTimeCodes;
  let others: OneTimeCodes;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'codes-'));
    const [one, other] = [await givenKeys(join(directory, 'one')), await givenKeys(join(directory, 'other'))];
    [codes, others] = [one, other].map((keys) => new OneTimeCodes(keys, null as never, new SettableClock())) as [OneTimeCodes, OneTimeCodes];
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('are the same for the same name and key, and for nothing else', async () => {
    expect(await codes.digits(NAME)).toBe(await codes.digits({ ...NAME }));
    expect(await codes.token(NAME)).toBe(await codes.token({ ...NAME }));
    expect(await codes.token(NAME)).not.toBe(await others.token(NAME));
    const names: readonly CodeName[] = [
      ...[{ environment: 'environment_2' }, { kind: 'email_verification' }, { id: 'magic_auth_01KF0000000000000000000001' }, { round: 1 }].map((change) => ({
        ...NAME,
        ...change,
      })),
      // Parts that read the same one after the other.
      { ...NAME, environment: 'environment_1m', kind: 'agic_auth' },
    ];
    const tokens = await Promise.all([NAME, ...names].map((name) => codes.token(name)));
    expect(new Set(tokens.map((token) => token.slice(26))).size).toBe(6);
  });

  it('are spread evenly', async () => {
    const counts = Array.from({ length: 10 }, () => 0);
    for (let round = 0; round < 2_000; round++) {
      const code = await codes.digits({ ...NAME, round });
      expect(code).toMatch(/^\d{6}$/);
      counts[Number(code[0])]!++;
    }
    for (const count of counts) expect(Math.abs(count - 200)).toBeLessThan(80);
  });

  it('pass numbers over that would favour some of them', () => {
    const bytes = (...numbers: readonly number[]) => Buffer.concat(numbers.map((number) => Buffer.from(number.toString(16).padStart(8, '0'), 'hex')));
    // 4,294 times every code, and 967,296 numbers more.
    expect(evenDigits(bytes(4_294_000_000, 2 ** 32 - 1, 4_293_999_999))).toBe('999999');
    expect(evenDigits(bytes(7))).toBe('000007');
    expect(evenDigits(bytes(2 ** 32 - 1))).toBeNull();
  });

  it('name the thing in tokens of 256 secret bits', async () => {
    const token = await codes.token(NAME);
    expect(token).toHaveLength(26 + 43);
    expect(idInToken('magic_auth', token)).toBe(NAME.id);
    expect(await codes.isToken(NAME, token)).toBe(true);
    expect(await codes.isToken(NAME, `${token}x`)).toBe(false);
    expect(await codes.isToken(NAME, await others.token(NAME))).toBe(false);
    for (const text of ['', NAME.id, token.slice(1), `${token}A`, token.toLowerCase()]) expect(idInToken('magic_auth', text)).toBeNull();
  });
});
