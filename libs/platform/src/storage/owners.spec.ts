import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { startLogWriter } from '#libs/testing/src/log-writer-process';
import { KeptLog } from '#libs/testing/src/kept-log';
import { throughNamespaces } from '#libs/testing/src/namespaces';
import { StorageWriter } from '#libs/testing/src/storage-writer-process';
import { DirectoryHeld, lockDirectory } from './kernel-lock.ts';
import { byteTextKeys } from './lmdb-keys.ts';
import { probe } from './lmdb-probe.ts';
import { LmdbStorage } from './lmdb-storage.ts';
import { LogForReading } from './log-storage.ts';

const OTHER_NETWORK = throughNamespaces('net');
const OTHER_CONTAINER = throughNamespaces('net', 'pid');
const TAKEN_OVER = /^The data in .* cannot be relied on any more \(another process has opened it\): the server stops\..*strategy: Recreate/;

const directories: string[] = [];
const writers: StorageWriter[] = [];
afterEach(() => Promise.all(writers.splice(0).map((writer) => writer.kill())));
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true, force: true }))));

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'owners-'));
  directories.push(directory);
  return directory;
}

async function startWriter(...parameters: Parameters<typeof StorageWriter.start>): Promise<StorageWriter> {
  const writer = await StorageWriter.start(...parameters);
  writers.push(writer);
  return writer;
}

/** What the log of the directory holds when it is opened again, and what is wrong with it. */
async function stored(directory: string): Promise<{ readonly ids: readonly string[]; readonly problems: readonly unknown[] }> {
  const storage = await LmdbStorage.open({ directory });
  const store = new LmdbEventStore(storage);
  const [ids, problems]: [string[], unknown[]] = [[], []];
  for await (const problem of store.verify()) problems.push(problem);
  const ended = new AbortController();
  if ((await store.head()) !== '')
    for await (const records of store.subscribe('', ended.signal)) {
      ids.push(...records.map(({ id }) => id));
      if (records.at(-1)!.position === (await store.head())) break;
    }
  await storage.close();
  return { ids, problems };
}

const warningsOf = ({ lines }: KeptLog): readonly string[] => lines.filter(({ level }) => level === 'warn').map(({ sentence }) => sentence);
const idsOf = (...of: readonly StorageWriter[]): readonly string[] => of.flatMap(({ acknowledged }) => acknowledged.map(({ id }) => id));

describe('the lock on a data directory', () => {
  it.each([
    ['of the same network', []],
    ['of another network', OTHER_NETWORK],
    ['of another container', OTHER_CONTAINER],
  ])('keeps a process %s away, and loses nothing', async (_, through) => {
    const directory = await newDirectory();
    const first = await startWriter(directory, { through: OTHER_CONTAINER });
    await first.tell('append 3');
    const second = await startWriter(directory, { through });
    await second.tell('append 3');
    await first.tell('append 2');
    expect([idsOf(first).length, idsOf(second).length]).toEqual([5, 0]);
    expect(await second.ended).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Another process works on .*strategy: Recreate.*\n$/) });
    first.child.stdin!.end();
    expect(await first.ended).toMatchObject({ code: 0, stderr: '' });
    expect(await stored(directory)).toEqual({ ids: idsOf(first), problems: [] });
  });

  it('is one of the kernel, on a file that stays and that only its owner may open', async () => {
    const directory = await newDirectory();
    const lock = await lockDirectory(directory);
    const { ino, mode } = await stat(join(directory, 'lock'));
    expect(mode & 0o777).toBe(0o600);
    const isKnown = async (): Promise<boolean> =>
      (await readFile('/proc/locks', 'utf8')).split('\n').some((line) => / (OFDLCK|FLOCK) .*:(\d+) /.exec(line)?.[2] === String(ino));
    if (process.platform === 'linux') expect(await isKnown()).toBe(true);
    lock.release();
    if (process.platform === 'linux') expect(await isKnown()).toBe(false);
    expect((await stat(join(directory, 'lock'))).ino).toBe(ino);
  });

  it('is free again when its process was killed', async () => {
    const directory = await newDirectory();
    const first = await startWriter(directory, { through: OTHER_CONTAINER });
    await first.tell('append 1');
    await expect(LmdbStorage.open({ directory })).rejects.toThrow(DirectoryHeld);
    await first.kill();
    expect(await stored(directory)).toEqual({ ids: idsOf(first), problems: [] });
  });

  it('is waited for as long as was said, and the wait is told', async () => {
    const directory = await newDirectory();
    const held = await LmdbStorage.open({ directory });
    const log = new KeptLog();
    const began = performance.now();
    await expect(LmdbStorage.open({ directory, wait: 300, log })).rejects.toThrow(/strategy: Recreate/);
    expect(performance.now() - began).toBeGreaterThanOrEqual(300);
    expect(warningsOf(log)).toEqual([expect.stringMatching(/waits up to 0.3 s/)]);
    const waiting = LmdbStorage.open({ directory, wait: 60_000 });
    await pause(50);
    await held.close();
    await (await waiting).close();
  });

  it('is the same by whatever path the directory comes', async () => {
    const directory = await newDirectory();
    const link = `${directory}-link`;
    directories.push(link);
    await symlink(directory, link);
    const storage = await LmdbStorage.open({ directory });
    for (const path of [directory, link, `${directory}/.`]) await expect(LmdbStorage.open({ directory: path })).rejects.toThrow(DirectoryHeld);
    expect(await startLogWriter(link).ended).toMatchObject({ code: 1, acknowledged: [], stderr: expect.stringMatching(/^Another process works on .*\n$/) });
    await storage.close();
    await (await LmdbStorage.open({ directory })).close();
  });

  it('is taken on the directory that is there when the wait is over', async () => {
    const directory = await newDirectory();
    const held = await lockDirectory(directory);
    const waiting = lockDirectory(directory, { wait: 60_000 });
    await rename(directory, `${directory}-before`);
    directories.push(`${directory}-before`);
    await mkdir(directory);
    const present = await lockDirectory(directory);
    held.release();
    await expect(Promise.race([waiting, pause(400, 'still waits')])).resolves.toBe('still waits');
    present.release();
    (await waiting).release();
  });
});

describe('a file system without locks', () => {
  const unlocked = { locks: 'unlocked' } as const;

  it('is told of, and used', async () => {
    const log = new KeptLog();
    const tryLock = (): never => {
      throw new Error('no locks available');
    };
    const storage = await LmdbStorage.open({ directory: await newDirectory(), log, tryLock });
    expect(warningsOf(log)).toEqual([expect.stringMatching(/^No lock can be had on .*lock: let only one process use this directory\./)]);
    await storage.close();
  });

  it.each([
    ['of the same network', []],
    ['of another network', OTHER_NETWORK],
  ])('keeps what a second process %s was acknowledged, and stops the first before it writes', async (_, through) => {
    const directory = await newDirectory();
    const first = await startWriter(directory, unlocked);
    await first.tell('append 3');
    const second = await startWriter(directory, { ...unlocked, through });
    await second.tell('append 3');
    expect(await first.tell('append 2')).toBeNull();
    expect([idsOf(first).length, idsOf(second).length]).toEqual([3, 3]);
    expect(await first.ended).toMatchObject({ code: 1, stderr: expect.stringMatching(TAKEN_OVER) });
    await second.tell('append 1');
    second.child.stdin!.end();
    expect(await second.ended).toMatchObject({ code: 0, stderr: '' });
    expect(await stored(directory)).toEqual({ ids: idsOf(first, second), problems: [] });
  });

  it('stops a process that writes only to its views', async () => {
    const directory = await newDirectory();
    const first = await startWriter(directory, unlocked);
    await first.tell('row early');
    const second = await startWriter(directory, unlocked);
    expect(await first.tell('row late')).toBeNull();
    expect(await first.ended).toMatchObject({ code: 1, stderr: expect.stringMatching(TAKEN_OVER) });
    expect(await second.tell('row own')).toMatchObject({ done: 'row' });
    second.child.stdin!.end();
    await second.ended;
    const storage = await LmdbStorage.open({ directory });
    expect([...storage.views.db('view', byteTextKeys).getKeys()]).toEqual(['early', 'own']);
    await storage.close();
  });

  it('stops a process at a transaction that it does not wait for', async () => {
    const directory = await newDirectory();
    const first = await startWriter(directory, unlocked);
    const second = await startWriter(directory, unlocked);
    expect(await first.tell('tree things')).toBeNull();
    expect(await first.ended).toMatchObject({ code: 1, stderr: expect.stringMatching(TAKEN_OVER) });
    await second.kill();
    const { log } = new LogForReading(directory);
    expect(log.db('things', byteTextKeys)).toBeUndefined();
    await log.close();
  });

  it('stops a process that does nothing', async () => {
    const directory = await newDirectory();
    const first = await startWriter(directory, unlocked);
    const second = await startWriter(directory, unlocked);
    expect(await first.ended).toMatchObject({ code: 1, stderr: expect.stringMatching(TAKEN_OVER) });
    expect(await second.tell('append 1')).toMatchObject({ done: 'append' });
  });

  it('leaves the marks of its successor alone when it ends well', async () => {
    const directory = await newDirectory();
    const first = await startWriter(directory, unlocked);
    const second = await startWriter(directory, unlocked);
    await second.tell('append 1');
    first.child.stdin!.end();
    await first.ended;
    await second.kill();
    const storage = await LmdbStorage.open({ directory });
    expect(storage.afterCrash).toBe(true);
    await storage.close();
  });
});

it('leaves the owner alone when somebody only looks', async () => {
  const directory = await newDirectory();
  const writer = await startWriter(directory);
  await writer.tell('append 1');
  await probe(join(directory, 'log'));
  await probe(join(directory, 'views'));
  const looking = new LogForReading(directory);
  expect(await new LmdbEventStore(looking).head()).toBe(writer.acknowledged[0]!.position);
  await looking.log.close();
  expect(await writer.tell('append 1')).toMatchObject({ done: 'append' });
});

// Windows has no such modes.
const describeModes = process.platform === 'win32' ? describe.skip : describe;
describeModes('a directory that others may enter', () => {
  it('is closed to them', async () => {
    for (const mode of [0o755, 0o770, 0o2775, 0o701]) {
      const directory = await newDirectory();
      await chmod(directory, mode);
      const log = new KeptLog();
      await (await LmdbStorage.open({ directory, log })).close();
      expect((await stat(directory)).mode & 0o777).toBe(0o700);
      expect(warningsOf(log)).toEqual([expect.stringContaining(mode.toString(8))]);
    }
  });

  it('is refused where it cannot be closed to them', async () => {
    const isRoot = process.getuid!() === 0;
    // Root may close every directory, so for a moment it is nobody; and nobody else may close the root of the file system.
    const directory = isRoot ? await newDirectory() : '/';
    if (isRoot) await chmod(directory, 0o777);
    const before = await readdir(directory);
    if (isRoot) process.seteuid!(65_534);
    const opening = LmdbStorage.open({ directory });
    const refused = expect(opening).rejects.toThrow(/^Other users may enter .* 'chmod 700' it, or set DATA_DIR to a directory below it\.$/);
    if (isRoot) process.seteuid!(0);
    await refused;
    expect(await readdir(directory)).toEqual(before);
  });
});
