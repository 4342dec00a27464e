import { createHash } from 'node:crypto';
import { SeenDigests } from './seen-digests.ts';

const HOUR = 3_600_000;
const digest = (index: number): string => createHash('sha256').update(`${index}`).digest().subarray(0, 16).toString('base64url');
const some = (from: number): readonly string[] => Array.from({ length: 1_000 }, (_, index) => digest(from + index));

describe('the digests that came by', () => {
  let now = 0;
  const seen = new SeenDigests(() => now);

  it('are known, and hardly any other', () => {
    for (const each of some(0)) seen.add(each);
    expect(some(0).every((each) => seen.mayHave(each))).toBe(true);
    expect(some(10_000).filter((each) => seen.mayHave(each))).toEqual([]);
  });

  it('are known for a day at least, and for two at most', () => {
    now = 23 * HOUR;
    seen.add(digest(20_000));
    now = 46 * HOUR;
    seen.add(digest(20_001));
    expect([digest(20_000), digest(0)].map((each) => seen.mayHave(each))).toEqual([true, true]);
    now = 71 * HOUR;
    seen.add(digest(20_002));
    expect([digest(20_001), digest(20_000), digest(0)].map((each) => seen.mayHave(each))).toEqual([true, false, false]);
  });
});
