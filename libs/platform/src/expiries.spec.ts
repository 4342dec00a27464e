import { until } from '#libs/testing/src/until';
import { Expiries } from './expiries.ts';

describe('expiries', () => {
  const expiries = new Expiries();
  const expired: string[] = [];
  const add = (name: string, milliseconds: number) => expiries.add(milliseconds, () => expired.push(name));
  beforeEach(() => expired.splice(0));

  it('come in the order of their times, whatever the order in which they were added, and not where they were removed', async () => {
    add('last', 60);
    add('never', Infinity);
    const removed = add('removed', 20);
    add('first', 5);
    expiries.remove(removed);
    await until(() => expired.includes('last'));
    expect(expired).toEqual(['first', 'last']);
  });

  it('come after their time and not before, also where another was due', async () => {
    const began = performance.now();
    let took = 0;
    expiries.add(40, () => (took = performance.now() - began));
    add('early', 1);
    await until(() => took > 0);
    expect([took >= 40, expired]).toEqual([true, ['early']]);
  });

  it('may be added by one that is due', async () => {
    expiries.add(1, () => add('next', 1));
    await until(() => expired.length > 0);
    expect(expired).toEqual(['next']);
  });

  it('share a timer', () => {
    const { setTimeout: original } = globalThis;
    let timers = 0;
    globalThis.setTimeout = ((...given: Parameters<typeof original>) => {
      timers++;
      return original(...given);
    }) as typeof original;
    const added = Array.from({ length: 1_000 }, (_, number) => add('late', 60_000 + number));
    globalThis.setTimeout = original;
    expect(timers).toBeLessThanOrEqual(1);
    for (const one of added) expiries.remove(one);
  });
});
