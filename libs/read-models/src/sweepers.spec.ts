import { SystemClock } from '#libs/platform/src/clock';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { ShortLived } from './short-lived.ts';
import { Sweepers } from './sweepers.ts';

/** Leases are all that the sweepers ask of the store. */
const leasing = (granted: boolean) => ({ lease: async () => (granted ? { token: 1 } : null) }) as unknown as ShortLived;

const sweepersWith = (leases: ShortLived, metrics = new Metrics()) =>
  new Sweepers({ clock: new SystemClock(), log: new PinoLog({ level: 'silent', readable: false }), metrics, leases, intervalMs: 60_000, holder: 'this' });

describe('the sweepers', () => {
  it('remove everything that is out of date, batch by batch, and count it', async () => {
    const metrics = new Metrics();
    const sweepers = sweepersWith(leasing(true), metrics);
    let left = 1234;
    sweepers.add('events_feed', async (_now, limit) => {
      const removed = Math.min(limit, left);
      left -= removed;
      return removed;
    });
    await sweepers.sweepAll();
    expect(left).toBe(0);
    expect(await metrics.text()).toContain('gatehouse_swept_total{data="events_feed"} 1234');
  });

  it('leave the work to the process that holds the lease', async () => {
    const sweepers = sweepersWith(leasing(false));
    let sweeps = 0;
    sweepers.add('events_feed', async () => {
      sweeps++;
      return 0;
    });
    await sweepers.sweepAll();
    expect(sweeps).toBe(0);
  });

  it('go on after one of them failed', async () => {
    const sweepers = sweepersWith(leasing(true));
    const swept: string[] = [];
    sweepers.add('events_feed', () => Promise.reject(new Error('away')));
    sweepers.add('webhook_deliveries', async () => swept.push('deliveries') && 0);
    await sweepers.sweepAll();
    expect(swept).toEqual(['deliveries']);
  });
});
