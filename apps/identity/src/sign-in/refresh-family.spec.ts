import { isGenuine, readRefreshToken, refreshTokenOf, roleOfToken, rotated, type RefreshFamily } from './refresh-family.ts';

const seed = Buffer.alloc(32, 7);
const environment = 'environment_01J00000000000000000000000';
const sessionId = 'session_01KF0000000000000000000009';
const tokenOf = (generation: number): string => refreshTokenOf(seed, { environment, sessionId, generation });
const NOW = 1_800_000_000_000;
const family = (changes: Partial<RefreshFamily> = {}): RefreshFamily => ({
  ...{ seed: 'sealed', generation: 0, rotations: [], organization_id: null, idle_until: NOW + 1_000, needs_secret: false, ...changes },
});
const next = { now: NOW, organization_id: 'org_1', idle_until: NOW + 5_000 };

describe('a refresh token', () => {
  it('says which session and generation it is of', () => {
    const read = readRefreshToken(tokenOf(12))!;
    expect(read).toMatchObject({ sessionId, generation: 12 });
    expect(isGenuine(seed, environment, read)).toBe(true);
  });

  it('is worth nothing elsewhere, or changed', () => {
    const read = readRefreshToken(tokenOf(12))!;
    expect(isGenuine(Buffer.alloc(32, 8), environment, read)).toBe(false);
    expect(isGenuine(seed, 'environment_01J00000000000000000000001', read)).toBe(false);
    expect(isGenuine(seed, environment, { ...read, generation: 13 })).toBe(false);
    expect(isGenuine(seed, environment, { ...read, sessionId: 'session_01KF000000000000000000000A' })).toBe(false);
  });

  it.each([
    '',
    'x',
    tokenOf(1).slice(1),
    `${tokenOf(1)}x`,
    tokenOf(1).replace('.1.', '.01.'),
    tokenOf(1).replace('.1.', '.1e3.'),
    tokenOf(1).replace('.1.', '.-1.'),
  ])('is not %p', (text) => expect(readRefreshToken(text)).toBeNull());
});

describe('the refresh tokens of a session', () => {
  it('are spent one after the other', () => {
    expect(roleOfToken(family(), 0, NOW)).toBe('present');
    const second = rotated(family(), 0, next);
    expect(second).toEqual(family({ generation: 1, rotations: [[0, NOW]], organization_id: 'org_1', idle_until: NOW + 5_000 }));
    expect(roleOfToken(second, 1, NOW)).toBe('present');
  });

  it('may be sent again for 30 seconds after they were spent', () => {
    const second = rotated(family(), 0, next);
    expect(roleOfToken(second, 0, NOW + 30_000)).toBe('replayed');
    expect(roleOfToken(second, 0, NOW + 30_001)).toBe('reused');
    // Also where another one was spent since, or the clock went back.
    const third = rotated(second, 1, { ...next, now: NOW + 20_000 });
    expect(roleOfToken(third, 0, NOW + 30_000)).toBe('replayed');
    expect(roleOfToken(third, 1, NOW + 10_000)).toBe('replayed');
  });

  it('are reused where it is not known any more when they were spent', () => {
    let last = family();
    for (let generation = 0; generation < 9; generation++) last = rotated(last, generation, next);
    expect(last.rotations).toHaveLength(8);
    expect(roleOfToken(last, 0, NOW)).toBe('reused');
    expect(roleOfToken(last, 1, NOW)).toBe('replayed');
  });

  it('go on from one that was issued before the record was taken back', () => {
    expect(roleOfToken(family({ generation: 3 }), 5, NOW)).toBe('present');
    expect(rotated(family({ generation: 3 }), 5, next)).toMatchObject({ generation: 6, rotations: [[5, NOW]] });
  });

  it('take little room, however often they turn', () => {
    let last = family({ seed: 'x'.repeat(100), organization_id: 'org_01KF0000000000000000000000' });
    for (let generation = 0; generation < 2_000; generation++) last = rotated(last, generation, next);
    expect(JSON.stringify(last).length).toBeLessThan(500);
  });
});
