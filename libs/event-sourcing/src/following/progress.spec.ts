import { Progress } from './progress.ts';

const { jest } = import.meta;

describe('a reading of the log', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('begins anew where the log ends before it', () => {
    const progress = new Progress('5');
    expect([progress.isLost('5'), progress.isLost('6'), progress.isLost('4')]).toEqual([false, false, true]);
  });

  it('begins anew when the log goes on without it for five seconds', () => {
    const progress = new Progress('5');
    jest.advanceTimersByTime(60_000);
    // The log was quiet.
    expect([progress.isLost('5'), progress.isLost('6')]).toEqual([false, false]);
    jest.advanceTimersByTime(5_001);
    expect(progress.isLost('6')).toBe(true);
    progress.reach('6');
    expect(progress.isLost('7')).toBe(false);
  });

  it('waits for whoever is still handling what it read', () => {
    const progress = new Progress('5');
    progress.begin();
    jest.advanceTimersByTime(60_000);
    expect(progress.isLost('9')).toBe(false);
    progress.reach('6');
    jest.advanceTimersByTime(5_001);
    expect(progress.isLost('9')).toBe(true);
  });
});
