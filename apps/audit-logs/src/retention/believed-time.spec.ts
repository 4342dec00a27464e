import { lookedAt, type BelievedTime } from './believed-time.ts';

const HOUR = 3_600_000;

/** What is believed after looks at a clock that said these hours, each with the one before. */
const believed = (...hours: readonly number[]): readonly number[] => {
  let time: BelievedTime | null = null;
  return hours.map((hour) => (time = lookedAt(time, hour * HOUR)).believed / HOUR);
};

describe('a time by which something is destroyed', () => {
  it('is believed a day after it was first heard of, and then as it goes on', () => {
    expect(believed(1000, 1001, 1023.9, 1024, 1025, 1072.9)).toEqual([0, 0, 0, 1024, 1025, 1072.9]);
  });

  it('is as it was for a day where the clock has jumped, and where it was set back, never later than the clock says', () => {
    expect(believed(1000, 1024, 2000, 2010, 2024, 2025)).toEqual([0, 1024, 1024, 1024, 2024, 2025]);
    expect(believed(1000, 1024, 2000, 2010, 1030, 1040, 1054)).toEqual([0, 1024, 1024, 1024, 1024, 1024, 1054]);
    expect(believed(1000, 1024, 900, 910, 924)).toEqual([0, 1024, 900, 900, 924]);
    // As replicas differ, and clocks are set.
    expect(believed(1000, 1024, 1023.5, 1024.1)).toEqual([0, 1024, 1023.5, 1024.1]);
  });
});
