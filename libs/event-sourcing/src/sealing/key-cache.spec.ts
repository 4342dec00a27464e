import { SettableClock } from '#libs/testing/src/settable-clock';
import { KeyCache } from './key-cache.ts';
import type { DataKey, KeyPurpose } from './key-store.ts';

const { jest } = import.meta;

const purposeOf = (index: number): KeyPurpose => `person.user-environment_1-user_${index}`;
const key: DataKey = { bytes: Buffer.alloc(32), id: 'aaaaaaaa', step: 0 };

describe('keys that were read a moment ago', () => {
  it('are 10,000 at most: the longest known goes first', () => {
    const cache = new KeyCache(new SettableClock());
    for (let index = 0; index < 12_000; index++) cache.set(purposeOf(index), key);
    expect(cache.size).toBe(10_000);
    expect([cache.get(purposeOf(1_999)), cache.get(purposeOf(2_000)), cache.get(purposeOf(11_999))]).toEqual([undefined, key, key]);
  });

  it('are 60 s old at most', () => {
    const clock = new SettableClock();
    const cache = new KeyCache(clock);
    cache.set(purposeOf(1), key);
    clock.forward(30_000);
    cache.set(purposeOf(2), 'erased');
    clock.forward(29_999);
    expect([cache.get(purposeOf(1)), cache.get(purposeOf(2))]).toEqual([key, 'erased']);
    clock.forward(1);
    expect([cache.get(purposeOf(1)), cache.get(purposeOf(2)), cache.size]).toEqual([undefined, 'erased', 1]);
  });

  it('are known from their last reading on, and are gone where they were deleted, however often that was', () => {
    const clock = new SettableClock();
    const cache = new KeyCache(clock);
    cache.set(purposeOf(1), key);
    cache.set(purposeOf(2), key);
    clock.forward(40_000);
    for (let times = 0; times < 30_000; times++) {
      cache.delete(purposeOf(1));
      cache.set(purposeOf(1), key);
    }
    expect(cache.size).toBeLessThanOrEqual(2);
    clock.forward(59_999);
    expect([cache.get(purposeOf(1)), cache.get(purposeOf(2)), cache.size]).toEqual([key, undefined, 1]);
    cache.delete(purposeOf(1));
    expect([cache.get(purposeOf(1)), cache.size]).toEqual([undefined, 0]);
  });

  it('go also where nobody asks for a key any more', () => {
    jest.useFakeTimers();
    try {
      const clock = new SettableClock();
      const cache = new KeyCache(clock);
      cache.set(purposeOf(1), key);
      clock.forward(20_000);
      jest.advanceTimersByTime(20_000);
      cache.set(purposeOf(2), key);
      clock.forward(40_000);
      jest.advanceTimersByTime(40_000);
      expect(cache.size).toBe(1);
      clock.forward(20_000);
      jest.advanceTimersByTime(20_000);
      expect(cache.size).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});
