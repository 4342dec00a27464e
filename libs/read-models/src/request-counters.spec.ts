import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { KeptLog } from '#libs/testing/src/kept-log';
import { LmdbShortLived } from './lmdb.short-lived.ts';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { until } from '#libs/testing/src/until';
import { RequestCounters, type CountedWindow } from './request-counters.ts';

/** Can be away, hang, or take its time like an engine behind a network. */
class FaultyShortLived extends LmdbShortLived {
  state: 'there' | 'away' | 'hanging' = 'there';
  asked = 0;
  underWay = 0;

  override async add(collection: string, key: string, amount: number, expiresAt: number): Promise<number> {
    this.asked++;
    if (this.state === 'away') throw new Error('away');
    if (this.state === 'hanging') await new Promise(() => {});
    this.underWay++;
    try {
      await pause(3);
      return await super.add(collection, key, amount, expiresAt);
    } finally {
      this.underWay--;
    }
  }
}

describe('the counters of several gateways', () => {
  let directory: string;
  let storage: LmdbStorage;
  let store: FaultyShortLived;
  let clock: SettableClock;
  let log: KeptLog;
  let gateways: readonly RequestCounters[];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'counters-'));
    storage = await LmdbStorage.open({ directory });
    clock = new SettableClock();
    store = new FaultyShortLived(storage, clock);
    log = new KeptLog();
    gateways = [0, 1, 2].map(() => new RequestCounters(store, clock, log));
  });
  afterEach(async () => {
    // Gateways go on exchanging what they have counted.
    store.state = 'away';
    await until(() => store.underWay === 0);
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const windowOf = (limit: number): CountedWindow => ({ start: clock.now(), length: 1_000, limit });

  /** Sends each gateway its share of requests, evenly in 200 steps of 2 ms or more; answers how many were let through. */
  async function letThrough(window: CountedWindow, requests: readonly number[]): Promise<number> {
    const admitted: Promise<boolean>[] = [];
    const sent = requests.map(() => 0);
    for (let step = 1; step <= 200; step++, await pause(2))
      for (const [index, gateway] of gateways.entries())
        for (; sent[index]! < Math.floor((requests[index]! * step) / 200); sent[index]!++)
          admitted.push(Promise.resolve(gateway.add('key', window)).then((total) => total <= window.limit));
    return (await Promise.all(admitted)).filter(Boolean).length;
  }

  it.each([
    ['spread evenly', [2_000, 2_000, 2_000]],
    // As many as cannot all be let through within the tolerance.
    ['not far above the limit', [1_200, 1_200, 1_200]],
    ['mostly on one', [5_400, 300, 300]],
    ['all on one', [6_000, 0, 0]],
    ['at five times the limit', [5_000, 5_000, 5_000]],
  ])('let through what the limit says, within 10 %%, of traffic %s', async (_how, requests) => {
    const admitted = await letThrough(windowOf(3_000), requests);
    expect(admitted).toBeGreaterThanOrEqual(2_700);
    expect(admitted).toBeLessThanOrEqual(3_300);
    expect(store.asked).toBeLessThan(400);
  });

  it('let through exactly what a low limit says', async () => {
    expect(await letThrough(windowOf(5), [20, 20, 20])).toBe(5);
  });

  it('refuse nothing below the limit', async () => {
    expect(await letThrough(windowOf(3_000), [900, 900, 900])).toBe(2_700);
  });

  it.each(['away', 'hanging'] as const)('count for themselves while the store is %s, and together again afterwards', async (state) => {
    store.state = state;
    const window = windowOf(500);
    for (const gateway of gateways) for (let count = 1; count <= 501; count++) expect(gateway.add('another key', window)).toBe(count);
    expect(await letThrough(windowOf(5), [20, 20, 20])).toBe(15);
    expect(log.lines.filter(({ level }) => level === 'warn').length).toBeLessThanOrEqual(gateways.length);

    store.state = 'there';
    await pause(1_100);
    clock.forward(1_000);
    expect(await letThrough(windowOf(5), [20, 20, 20])).toBe(5);
  });

  it('begin again with each window', async () => {
    expect(await letThrough(windowOf(5), [10, 10, 10])).toBe(5);
    clock.forward(1_000);
    expect(await letThrough(windowOf(5), [10, 10, 10])).toBe(5);
  });
});
