import { JustSealed } from './just-sealed.ts';

const { jest } = import.meta;
const here = { stream: 'thing-1', id: 'record', at: 'data.name' };

describe('what was just sealed', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('is told once, and for its own place alone', () => {
    const justSealed = new JustSealed();
    justSealed.remember(here, 'sealed', 'text');
    const elsewhere = [
      { ...here, stream: 'other' },
      { ...here, id: 'other' },
      { ...here, at: 'data.other' },
    ];
    expect([justSealed.take(here, 'other'), ...elsewhere.map((place) => justSealed.take(place, 'sealed'))]).toEqual([null, null, null, null]);
    expect([justSealed.take(here, 'sealed'), justSealed.take(here, 'sealed')]).toEqual(['text', null]);
    expect(justSealed.size).toBe(0);
  });

  it('is forgotten, whether anybody asks for it or not', () => {
    const justSealed = new JustSealed();
    justSealed.remember(here, 'sealed', 'text');
    jest.advanceTimersByTime(9_000);
    justSealed.remember({ ...here, id: 'later' }, 'sealed', 'text');
    jest.advanceTimersByTime(2_000);
    expect(justSealed.size).toBe(2);
    jest.advanceTimersByTime(9_000);
    expect(justSealed.size).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is forgotten where there is much of it, what came last being the last to go', () => {
    const justSealed = new JustSealed();
    const text = 'x'.repeat(100_000);
    for (let number = 0; number < 200; number++) justSealed.remember({ ...here, id: `record ${number}` }, 'sealed', text);
    expect(justSealed.size).toBeLessThan(100);
    expect([0, 199].map((number) => justSealed.take({ ...here, id: `record ${number}` }, 'sealed'))).toEqual([null, text]);
  });
});
