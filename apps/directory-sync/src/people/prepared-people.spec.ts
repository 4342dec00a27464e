import { purposeOf } from '#libs/event-sourcing/src/sealing/holders';
import type { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { holderOfDirectoryUser } from '../domain/directory-user.decider.ts';
import { PreparedPeople } from './prepared-people.ts';

const ENVIRONMENT = 'environment_1';
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('people who are about to be made', () => {
  let clock: SettableClock;
  let made: string[];
  let prepared: PreparedPeople;
  let isAway: boolean;
  const hasKey = (id: string): boolean => made.includes(purposeOf(holderOfDirectoryUser(id), ENVIRONMENT));

  beforeEach(() => {
    clock = new SettableClock();
    made = [];
    isAway = false;
    const obtain = async (purpose: string) => {
      if (isAway) throw new Error('away');
      made.push(purpose);
    };
    prepared = new PreparedPeople({ obtain } as unknown as KeyStore, clock);
  });

  /** So many within a tenth of a second. */
  async function come(amount: number): Promise<readonly string[]> {
    const ids = Array.from({ length: amount }, () => prepared.next(ENVIRONMENT));
    clock.forward(100);
    await settled();
    return ids;
  }

  it('have no keys while few come', async () => {
    const ids = [...(await come(1)), ...(await come(1)), ...(await come(1))];
    expect(new Set(ids).size).toBe(3);
    expect(made).toEqual([]);
  });

  it('have theirs before they come where as many came a moment ago', async () => {
    await come(40);
    await come(1);
    expect(made).toHaveLength(40);
    const ids = await come(30);
    expect(ids.filter(hasKey)).toHaveLength(30);
    expect(new Set(ids).size).toBe(30);
  });

  it('are of this moment: what nobody took in a second is given to nobody', async () => {
    await come(40);
    await come(1);
    clock.forward(1_001);
    const ids = await come(40);
    expect(ids.filter(hasKey)).toEqual([]);
    expect(made).toHaveLength(40);
  });

  it('are as many as come before the next flush at most', async () => {
    await come(1_000);
    await come(1);
    expect(made).toHaveLength(64);
  });

  it('are made without keys of theirs where the keys are away', async () => {
    isAway = true;
    await come(40);
    const ids = await come(3);
    expect(new Set(ids).size).toBe(3);
    expect(made).toEqual([]);
    isAway = false;
    await come(40);
    await come(1);
    expect(made.length).toBeGreaterThan(0);
  });
});
