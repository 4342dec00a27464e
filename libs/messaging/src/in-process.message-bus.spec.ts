import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { byteTextKeys } from '#libs/platform/src/storage/lmdb-keys';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { until } from '#libs/testing/src/until';
import { InProcessMessageBus } from './in-process.message-bus.ts';
import type { Message } from './message-bus.ts';
import { messageBusContract } from './message-bus.contract.ts';

const EVERY = { firstRetryMs: 5, trimMs: 5 };
const directories: string[] = [];
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'message-bus-'));
  directories.push(directory);
  return directory;
}

messageBusContract('this process', async () => {
  const directory = await newDirectory();
  return async () => {
    const storage = await LmdbStorage.open({ directory });
    const bus = new InProcessMessageBus(storage, EVERY);
    return {
      bus,
      close: async () => {
        await bus.close();
        await storage.close();
      },
    };
  };
});

describe('the bus in this process', () => {
  const messages = (count: number): Message[] => Array.from({ length: count }, (_, index) => ({ key: `key${index % 10}`, value: String(index), headers: {} }));

  it('publishes nothing before it is on disk', async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const storage = await LmdbStorage.open({ directory: await newDirectory(), flushGate: () => gate });
    const bus = new InProcessMessageBus(storage);
    const seen: string[] = [];
    await bus.subscribe({ group: 'group', topics: ['topic'], handle: async (delivered) => void seen.push(...delivered.map(({ value }) => value)) });
    let isPublished = false;
    const published = bus.publish('topic', messages(1)).then(() => (isPublished = true));
    await pause(50);
    expect([isPublished, seen]).toEqual([false, []]);
    release();
    await published;
    await pause(10);
    expect(seen).toEqual(['0']);
    await bus.close();
    await storage.close();
  });

  it('keeps a little of what every group has passed, and forgets the rest', async () => {
    const storage = await LmdbStorage.open({ directory: await newDirectory() });
    const bus = new InProcessMessageBus(storage, EVERY);
    await bus.subscribe({ group: 'group', topics: ['topic'], handle: async () => undefined });
    for (let round = 0; round < 50; round++) await bus.publish('topic', messages(100));
    const segments = storage.log.db('bus', byteTextKeys);
    await until(() => segments.getKeysCount() <= 11);
    let first = 0;
    await bus.subscribe({ group: 'newcomer', topics: ['topic'], handle: async (delivered) => void (first ||= delivered.length) });
    await bus.publish('topic', messages(1));
    await until(() => first > 0);
    expect(segments.getKeysCount()).toBeGreaterThanOrEqual(10);
    await bus.close();
    await storage.close();
  });
});
