import { JustSealed } from './just-sealed.ts';

const { jest } = import.meta;

describe('what was just sealed', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('is told once, and for its own place alone', () => {
    const justSealed = new JustSealed();
    justSealed.remember('sealed', 'here', 'text');
    expect([justSealed.take('other', 'here'), justSealed.take('sealed', 'there')]).toEqual([null, null]);
    expect([justSealed.take('sealed', 'here'), justSealed.take('sealed', 'here')]).toEqual(['text', null]);
  });

  it('is forgotten, whether anybody asks for it or not', () => {
    const justSealed = new JustSealed();
    justSealed.remember('sealed', 'here', 'text');
    jest.advanceTimersByTime(9_000);
    justSealed.remember('later', 'here', 'text');
    jest.advanceTimersByTime(2_000);
    expect(justSealed.size).toBe(2);
    jest.advanceTimersByTime(9_000);
    expect(justSealed.size).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is forgotten where there is much of it, what came last being the last to go', () => {
    const justSealed = new JustSealed();
    const text = 'x'.repeat(100_000);
    for (let number = 0; number < 200; number++) justSealed.remember(`sealed ${number}`, 'here', text);
    expect(justSealed.size).toBeLessThan(100);
    expect([justSealed.take('sealed 0', 'here'), justSealed.take('sealed 199', 'here')]).toEqual([null, text]);
  });
});
