import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { byteTextKeys } from '#libs/platform/src/storage/lmdb-keys';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { LmdbShortLived } from './lmdb.short-lived.ts';
import { shortLivedContract } from './short-lived.contract.ts';

const directories: string[] = [];
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'short-lived-'));
  directories.push(directory);
  return directory;
}

shortLivedContract(
  'LMDB',
  async (clock) => {
    const directory = await newDirectory();
    return async () => {
      let gate = Promise.resolve();
      const storage = await LmdbStorage.open({ directory, flushGate: () => gate });
      const holdFlushes = (): (() => void) => {
        let release = (): void => undefined;
        gate = new Promise((resolve) => (release = resolve));
        return release;
      };
      return { shortLived: new LmdbShortLived(storage, clock), holdFlushes, close: () => storage.close() };
    };
  },
  () => new SettableClock(),
);

it('leaves no listing behind of what was swept', async () => {
  const clock = new SettableClock();
  const storage = await LmdbStorage.open({ directory: await newDirectory() });
  const entries = new LmdbShortLived(storage, clock);
  for (let number = 0; number < 50; number++) await entries.put('codes', String(number), 'value', clock.now() + number * 1_000);
  await storage.log.committed();
  clock.forward(5 * 60_000);
  expect(await entries.sweep(clock.now(), 1_000)).toBe(50);
  await storage.log.committed();
  const left = ['short-lived', 'expiry'].map((name) => storage.log.db(name, byteTextKeys).getKeysCount());
  // The number that versions grow from.
  expect(left).toEqual([0, 1]);
  await storage.close();
});

it('writes nothing for a lease that is kept, and a greater token to disk for one that is taken', async () => {
  const clock = new SettableClock();
  const directory = await newDirectory();
  const storage = await LmdbStorage.open({ directory });
  const entries = new LmdbShortLived(storage, clock);
  const [token, commits] = [(await entries.lease('work', 'one', 3_000))!.token, { count: 0 }];
  await storage.log.committed();
  storage.log.beforeCommit(() => void commits.count++);
  for (let second = 0; second < 10; second++) {
    clock.forward(1_000);
    expect(await entries.lease('work', 'one', 3_000)).toEqual({ token });
    await storage.log.committed();
  }
  expect(commits.count).toBe(0);
  const taken = (await entries.lease('work', 'one', 3_000, token))!.token;
  expect(taken).toBeGreaterThan(token);
  await storage.close();
  // A clock that was set back tells nothing of what was given before.
  clock.forward(-3_600_000);
  const again = await LmdbStorage.open({ directory });
  expect((await new LmdbShortLived(again, clock).lease('work', 'two', 3_000))!.token).toBeGreaterThan(taken);
  await again.close();
});
