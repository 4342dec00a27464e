import { RETRY_PAUSES, RetrySchedule } from './retry-schedule.ts';

const minutes = (count: number): number => count * 60_000;

describe('the schedule of attempts', () => {
  const pauses = (mode: 'production' | 'development', random: number) =>
    [1, 2, 3, 4, 5, 6].map((tries) => new RetrySchedule(RETRY_PAUSES[mode], () => random).pauseAfter(tries, null));

  it('takes three days in production', () =>
    expect(pauses('production', 0.5)).toEqual([minutes(1), minutes(10), minutes(120), minutes(720), minutes(3600), null]));
  it('is what a person can watch in development', () => expect(pauses('development', 0.5)).toEqual([5_000, 30_000, minutes(2), minutes(5), minutes(10), null]));
  it('varies by a fifth', () => {
    expect(pauses('development', 0)[0]).toBe(4_000);
    expect(pauses('development', 1)[0]).toBe(6_000);
  });
  it.each([
    ['less than the pause', 1_000, 5_000],
    ['longer', 20_000, 20_000],
    ['longer than the pause after that', minutes(60), 30_000],
  ])('heeds a receiver that asks for %s', (_, retryAfter, pause) =>
    expect(new RetrySchedule(RETRY_PAUSES.development, () => 0.5).pauseAfter(1, retryAfter)).toBe(pause),
  );
});
