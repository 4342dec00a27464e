import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { until } from '#libs/testing/src/until';
import { LeasedWork, type Work } from './leased-work.ts';
import { Leases } from './leases.ts';
import { LmdbShortLived } from './lmdb.short-lived.ts';
import { Fenced } from './read-models.ts';

describe('work under a lease', () => {
  let directory: string;
  let storage: LmdbStorage;
  let leases: LmdbShortLived;
  const started: LeasedWork[] = [];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'leased-work-'));
    storage = await LmdbStorage.open({ directory });
    leases = new LmdbShortLived(storage, new SystemClock());
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map((work) => work.stop()));
    await storage.close();
    await rm(directory, { recursive: true });
  });

  async function start(holder: string, work: Work, metrics = new Metrics()): Promise<LeasedWork> {
    const log = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });
    const leased = new LeasedWork('test', work, { leases: new Leases(leases, holder, log, metrics), log });
    started.push(leased);
    await leased.start();
    return leased;
  }

  const untilAborted: Work = (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve()));

  it('is done by one of two, for longer than a lease lasts, and by the other when that one stops', async () => {
    const doing = new Set<string>();
    const workOf =
      (holder: string): Work =>
      async (signal, token) => {
        doing.add(holder);
        await untilAborted(signal, token);
        doing.delete(holder);
      };
    const [metrics, others] = [new Metrics(), new Metrics()];
    const first = await start('first', workOf('first'), metrics);
    await until(() => doing.has('first'));
    await start('second', workOf('second'), others);
    await pause(4_000);
    expect([...doing]).toEqual(['first']);
    expect([await metrics.text(), await others.text()]).toEqual([
      expect.stringContaining('gatehouse_lease_held{work="test"} 1'),
      expect.stringContaining('gatehouse_lease_held{work="test"} 0'),
    ]);
    await first.stop();
    await until(() => doing.has('second'));
    expect([...doing]).toEqual(['second']);
  });

  it('is given up, with what it wanted to store, by whoever was fenced, and taken up under a later token', async () => {
    const tokens: number[] = [];
    await start('first', async (signal, token) => {
      tokens.push(token);
      if (tokens.length === 1) throw new Fenced('table', token);
      await untilAborted(signal, token);
    });
    await until(() => tokens.length === 2);
    expect(tokens[1]).toBeGreaterThan(tokens[0]!);
  });

  it('begins again after it failed', async () => {
    let times = 0;
    await start('first', async (signal, token) => {
      if (++times === 1) throw new Error('at first');
      await untilAborted(signal, token);
    });
    await until(() => times === 2);
  });

  it('ends when the lease is lost', async () => {
    let isDoing = false;
    await start('first', async (signal, token) => {
      isDoing = true;
      await untilAborted(signal, token);
      isDoing = false;
    });
    await until(() => isDoing);
    const { token } = (await leases.lease('test', 'first', 60_000))!;
    await leases.release('test', 'first', token);
    await leases.lease('test', 'thief', 60_000);
    await until(() => !isDoing);
  });
});
