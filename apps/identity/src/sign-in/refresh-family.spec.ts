import fc from 'fast-check';
import { seedOf } from '#libs/testing/src/seed';
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

  it('turn eight times in 30 seconds, and stay as they are for as long as more would be forgotten', () => {
    let last = family();
    for (let generation = 0; generation < 8; generation++) last = rotated(last, generation, { ...next, now: NOW + generation });
    expect(last.generation).toBe(8);
    const busy = rotated(last, 8, { now: NOW + 30_000, organization_id: 'org_2', idle_until: NOW + 9_000 });
    expect(busy).toEqual({ ...last, organization_id: 'org_2', idle_until: NOW + 9_000 });
    for (let generation = 0; generation < 8; generation++) expect(roleOfToken(busy, generation, NOW + 30_000)).toBe('replayed');
    const turned = rotated(busy, 8, { ...next, now: NOW + 30_001 });
    expect(turned).toMatchObject({ generation: 9, rotations: { length: 8, 7: [8, NOW + 30_001] } });
    expect(roleOfToken(turned, 0, NOW + 30_001)).toBe('reused');
    expect(roleOfToken(turned, 1, NOW + 30_001)).toBe('replayed');
  });

  it('end no honest session, however often and in however many tabs it is refreshed', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 2_000 }), fc.nat(9)), { minLength: 60, maxLength: 90 }), (refreshes) => {
        let [last, now] = [family(), NOW];
        // A busy tab and a quiet one. Each shows what it got last within 30 s; later, it takes the present one from the cookie that they share.
        const tabs = [0, 1].map(() => ({ generation: 0, at: NOW }));
        for (const [later, which] of refreshes) {
          now += later;
          const tab = tabs[which === 0 ? 1 : 0]!;
          const shown = now - tab.at > 30_000 ? last.generation : tab.generation;
          const role = roleOfToken(last, shown, now);
          expect(role).not.toBe('reused');
          if (role === 'present') last = rotated(last, shown, { ...next, now });
          Object.assign(tab, { generation: last.generation, at: now });
        }
      }),
      { seed: seedOf('refresh families') },
    );
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
