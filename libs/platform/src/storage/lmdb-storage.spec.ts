import { cp, lstat, mkdir, mkdtemp, open, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { WrongVersion } from '#libs/event-sourcing/src/log/event-store';
import { newEvent, take } from '#libs/event-sourcing/src/log/event-store.contract';
import { startLogWriter } from '#libs/testing/src/log-writer-process';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import type { DomainError } from '../domain-error.ts';
import { DirectoryHeld } from './kernel-lock.ts';
import { byteText, byteTextKeys } from './lmdb-keys.ts';
import { DamagedData, FORMATS, LmdbStorage, NewerFormat } from './lmdb-storage.ts';

const directories: string[] = [];
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'storage-'));
  directories.push(directory);
  return directory;
}

async function append(storage: LmdbStorage, count: number): Promise<string> {
  const store = new LmdbEventStore(storage);
  await Promise.all(Array.from({ length: count }, () => newEvent()).map((event) => store.append(`thing-${event.id}`, 0, [event])));
  return store.head();
}

async function problems(storage: LmdbStorage): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const problem of new LmdbEventStore(storage).verify()) found.push(problem);
  return found;
}

describe('the storage of a data directory', () => {
  it('refuses what a later release wrote', async () => {
    const directory = await newDirectory();
    await writeFile(join(directory, 'format'), '4\n');
    await expect(LmdbStorage.open({ directory })).rejects.toThrow(NewerFormat);
    await writeFile(join(directory, 'format'), '1\n');
    const storage = await LmdbStorage.open({ directory });
    await storage.close();
    const fresh = await newDirectory();
    await (await LmdbStorage.open({ directory: fresh })).close();
    expect(await readFile(join(fresh, 'format'), 'utf8')).toBe('3\n');
  });

  it('keeps earlier releases out from the first change on that they could not read, and its backup with it', async () => {
    const directory = await newDirectory();
    const formatOf = (path: string) => readFile(join(path, 'format'), 'utf8');
    const backup = async (name: string): Promise<string> => {
      await storage.backup(join(directory, name));
      return formatOf(join(directory, name));
    };
    await writeFile(join(directory, 'format'), '1\n');
    let storage = await LmdbStorage.open({ directory });
    // Whatever refuses the start now, the release before can still go on, and be given what it wrote.
    expect([await formatOf(directory), await backup('of-1')]).toEqual(['1\n', '1\n']);
    storage.leaveReleasesBefore(FORMATS.keysTogether);
    expect([await formatOf(directory), await backup('of-2')]).toEqual(['2\n', '2\n']);
    await storage.close();
    storage = await LmdbStorage.open({ directory });
    await expect(new LmdbEventStore(storage).append('thing-1', 7, [newEvent()])).rejects.toThrow(WrongVersion);
    expect(await formatOf(directory)).toBe('2\n');
    await append(storage, 1);
    storage.leaveReleasesBefore(FORMATS.keysTogether);
    expect([await formatOf(directory), await backup('of-3')]).toEqual(['3\n', '3\n']);
    await storage.close();
  });

  it('knows a clean end from a crash', async () => {
    const directory = await newDirectory();
    const first = await LmdbStorage.open({ directory });
    await append(first, 3);
    await first.close();
    const second = await LmdbStorage.open({ directory });
    expect(second.afterCrash).toBe(false);
    second.fail('tried out');
    await second.close();
    const third = await LmdbStorage.open({ directory });
    expect(third.afterCrash).toBe(true);
    await third.close();
  });

  it('refuses writes while the disk is nearly full, and goes on reading', async () => {
    const directory = await newDirectory();
    const roomy = await LmdbStorage.open({ directory });
    await append(roomy, 1);
    await roomy.close();
    const storage = await LmdbStorage.open({ directory, minFree: Number.MAX_SAFE_INTEGER });
    await expect(append(storage, 1)).rejects.toMatchObject({ kind: 'unavailable', code: 'storage_full' });
    expect(await take(new LmdbEventStore(storage), 1)).toHaveLength(1);
    await storage.close();
  });

  it('shows what is on disk to whoever was told so', async () => {
    const storage = await LmdbStorage.open({ directory: await newDirectory() });
    const tree = storage.log.db('things', byteTextKeys);
    const missed: string[] = [];
    const write = async (writer: number): Promise<void> => {
      const chosen = seededNumbers(seedOf(`writer ${writer}`));
      for (let count = 0; count < 300; count++) {
        const key = `${writer}-${count}`;
        // Reading leaves a snapshot behind, which lives for some turns.
        tree.get('nothing');
        if (chosen(10) < 3) await nextTurn();
        tree.put(key, Buffer.alloc(300));
        await storage.log.flushed();
        if (tree.get(key) === undefined) missed.push(key);
      }
    };
    await Promise.all(Array.from({ length: 6 }, (_, writer) => write(writer)));
    expect(missed).toEqual([]);
    await storage.close();
  });

  it('copies itself as of one moment while it is written', async () => {
    const storage = await LmdbStorage.open({ directory: await newDirectory() });
    const before = await append(storage, 100);
    let isWriting = true;
    const writing = (async () => {
      while (isWriting) await append(storage, 20);
    })();
    const target = join(await newDirectory(), 'copy');
    await storage.backup(target);
    isWriting = false;
    await writing;
    const after = await new LmdbEventStore(storage).head();
    await storage.close();
    const copy = await LmdbStorage.open({ directory: target });
    expect(await problems(copy)).toEqual([]);
    const head = await new LmdbEventStore(copy).head();
    expect(head >= before && head <= after).toBe(true);
    await append(copy, 1);
    await copy.close();
  });

  it('copies neither views nor a tree that is no more, nor the bytes that they had', async () => {
    const storage = await LmdbStorage.open({ directory: await newDirectory() });
    await append(storage, 100);
    const trees = [storage.views.db('view', byteTextKeys), storage.log.db('left-out', byteTextKeys), storage.log.db('kept', byteTextKeys)];
    for (const [index, tree] of trees.entries())
      for (let count = 0; count < 100; count++) tree.put(`key ${count}`, Buffer.from(`content of ${['a view', 'what is left out', 'what is kept'][index]}`));
    await Promise.all([storage.log.flushed(), storage.views.committed()]);
    const target = join(await newDirectory(), 'copy');
    storage.log.dropWhereThere('left-out');
    storage.log.dropWhereThere('never-was');
    await storage.log.flushed();
    expect(storage.log.db('kept', byteTextKeys).getKeysCount()).toBe(100);
    await storage.backup(target);
    await storage.close();
    expect((await readdir(target)).sort()).toEqual(['format', 'log', 'log.state']);
    const bytes = await readFile(join(target, 'log', 'data.mdb'), 'latin1');
    expect(['a view', 'what is left out', 'what is kept'].map((content) => bytes.includes(`content of ${content}`))).toEqual([false, false, true]);
    const copy = await LmdbStorage.open({ directory: target });
    expect(await problems(copy)).toEqual([]);
    expect([copy.log.db('kept', byteTextKeys).getKeysCount(), copy.log.db('left-out', byteTextKeys).getKeysCount()]).toEqual([100, 0]);
    await copy.close();
  });

  it('keeps views after kill -9, and drops them when the machine has started anew', async () => {
    const directory = await newDirectory();
    const fill = async (): Promise<void> => {
      const storage = await LmdbStorage.open({ directory });
      storage.views.db('view', byteTextKeys).put('key', Buffer.from('value'));
      await storage.views.committed();
      storage.fail('tried out');
      await storage.close();
    };
    const found = async (): Promise<boolean> => {
      const storage = await LmdbStorage.open({ directory });
      const value = storage.views.db('view', byteTextKeys).get('key');
      storage.fail('tried out');
      await storage.close();
      return value !== undefined;
    };
    await fill();
    expect(await found()).toBe(true);
    await writeFile(join(directory, 'views.state'), 'another boot');
    expect(await found()).toBe(false);
  });
});

describe('a storage that closes', () => {
  // The binding goes on as if it were open while it waits for what is being written, and then throws where nobody can catch it.
  it('refuses reads and writes with a code, and takes what was written before', async () => {
    const directory = await newDirectory();
    const storage = await LmdbStorage.open({ directory });
    const tree = storage.log.db('things', byteTextKeys);
    for (let number = 0; number < 50; number++) storage.log.db(`tree ${number}`, byteTextKeys).put(byteText('one'), Buffer.alloc(100_000));
    tree.put(byteText('one'), Buffer.from('1'));
    await storage.log.committed();
    tree.put(byteText('two'), Buffer.from('2'));
    let isClosed = false;
    const closed = storage.close().then(() => (isClosed = true));
    const outcomes = new Set<unknown>();
    while (!isClosed) {
      outcomes.add(tried(() => tree.get(byteText('one'))?.toString()));
      outcomes.add(tried(() => [...tree.getRange()].length > 0));
      await nextTurn();
    }
    await closed;
    for (const read of [() => tree.get(byteText('one')), () => tree.getRange(), () => tree.getKeys(), () => tree.getKeysCount()])
      outcomes.add(tried(() => read() !== undefined));
    outcomes.add(tried(() => tree.put(byteText('three'), Buffer.of(3))));
    expect([...outcomes].sort()).toEqual(['1', 'service_unavailable', true]);
    const opened = await LmdbStorage.open({ directory });
    expect(opened.log.db('things', byteTextKeys).get(byteText('two'))?.toString()).toBe('2');
    await opened.close();
  });
});

/** What it answers, or the code of its refusal. */
function tried(access: () => unknown): unknown {
  try {
    return access();
  } catch (error) {
    return (error as DomainError).code;
  }
}

describe('a full disk', () => {
  it('ends the process with one sentence, and loses nothing that was acknowledged', async () => {
    const directory = await newDirectory();
    for (const kilobytes of [1_024, 3_000, 6_000]) {
      const { code, signal, stderr, acknowledged } = await startLogWriter(directory, { kilobytes, padding: 2_000 }).ended;
      expect([code, signal]).toEqual([1, null]);
      expect(stderr).toMatch(/^The data in .* cannot be relied on any more \(.+\): the server stops\./m);
      const storage = await LmdbStorage.open({ directory });
      expect(await problems(storage)).toEqual([]);
      const store = new LmdbEventStore(storage);
      for (const { stream, version, id } of acknowledged) expect((await store.read(stream, version))[0]).toMatchObject({ id });
      expect(acknowledged.length).toBeGreaterThan(0);
      await append(storage, 3);
      await storage.close();
    }
  });
});

describe('a damaged data file', () => {
  /** Length of a page, and of the two at the beginning that lead to all others. */
  const PAGE = 4_096;
  const filled = async (): Promise<string> => {
    const directory = await newDirectory();
    const storage = await LmdbStorage.open({ directory });
    await append(storage, 2_000);
    await storage.close();
    return directory;
  };
  const damage = async (directory: string, change: (file: string, length: number) => Promise<void>): Promise<string> => {
    const copy = await newDirectory();
    await cp(directory, copy, { recursive: true });
    const file = join(copy, 'log', 'data.mdb');
    await change(file, (await stat(file)).size);
    return copy;
  };
  const overwrite = async (file: string, start: number, bytes: Buffer): Promise<void> => {
    const handle = await open(file, 'r+');
    await handle.write(bytes, 0, bytes.length, start);
    await handle.close();
  };

  it('is found at the start, said in one sentence, and left as it is', async () => {
    const directory = await filled();
    const damages = {
      cut: await damage(directory, (file, length) => truncate(file, Math.floor(length / 4 / PAGE) * PAGE)),
      'cut to nothing': await damage(directory, (file) => truncate(file, 100)),
      'garbled at the beginning': await damage(directory, (file) => overwrite(file, 0, Buffer.alloc(2 * PAGE, 0xa5))),
      'garbled all over': await damage(directory, (file, length) => overwrite(file, 2 * PAGE, Buffer.alloc(length - 2 * PAGE, 0xa5))),
      'zeroed all over': await damage(directory, (file, length) => overwrite(file, 2 * PAGE, Buffer.alloc(length - 2 * PAGE))),
    };
    for (const [kind, copy] of Object.entries(damages)) {
      const before = await readFile(join(copy, 'log', 'data.mdb'));
      const outcome = await LmdbStorage.open({ directory: copy }).then(
        () => null,
        (error: unknown) => error,
      );
      expect([kind, outcome]).toEqual([kind, expect.any(DamagedData)]);
      expect((await readFile(join(copy, 'log', 'data.mdb'))).equals(before)).toBe(true);
      const { code, signal, stderr, acknowledged } = await startLogWriter(copy).ended;
      expect([kind, code, signal, acknowledged.length]).toEqual([kind, 1, null, 0]);
      expect(stderr).toMatch(/^The data in .* is damaged .*\n$/);
    }
  });

  it('costs no more than a refill where it holds views', async () => {
    const directory = await filled();
    const storage = await LmdbStorage.open({ directory });
    const view = storage.views.db('view', byteTextKeys);
    for (let key = 0; key < 1_000; key++) view.put(String(key), Buffer.alloc(100));
    await storage.views.committed();
    storage.fail('tried out');
    await storage.close();
    const file = join(directory, 'views', 'data.mdb');
    await overwrite(file, 2 * PAGE, Buffer.alloc((await stat(file)).size - 2 * PAGE, 0xa5));
    const again = await LmdbStorage.open({ directory });
    expect(again.views.db('view', byteTextKeys).getKeysCount()).toBe(0);
    expect(await problems(again)).toEqual([]);
    await again.close();
  });
});

describe('a restore into a data directory', () => {
  let source: string;
  let head: string;
  beforeAll(async () => {
    source = await newDirectory();
    const storage = await LmdbStorage.open({ directory: source });
    head = await append(storage, 3);
    await storage.backup(join(source, 'backup'));
    await storage.close();
  });

  const copy = (into: string): Promise<void> => cp(join(source, 'backup'), into, { recursive: true, preserveTimestamps: true });
  const headOf = async (directory: string): Promise<string> => {
    const storage = await LmdbStorage.open({ directory });
    const found = await new LmdbEventStore(storage).head();
    await storage.close();
    return found;
  };

  it('keeps away whoever would begin on it meanwhile, by whatever path', async () => {
    const [directory, link] = [await newDirectory(), join(await newDirectory(), 'link')];
    await symlink(directory, link);
    const { ino } = await stat(directory);
    await LmdbStorage.restore({ directory: link }, async (into) => {
      for (const path of [directory, link]) await expect(LmdbStorage.open({ directory: path })).rejects.toThrow(DirectoryHeld);
      await expect(LmdbStorage.restore({ directory }, copy)).rejects.toThrow(DirectoryHeld);
      await copy(into);
    });
    // A volume, or a way to one, cannot be replaced.
    expect([(await lstat(link)).isSymbolicLink(), (await stat(directory)).ino]).toEqual([true, ino]);
    expect(await headOf(directory)).toBe(head);
  });

  it('leaves alone what is there, and whoever begins on it', async () => {
    const directory = await newDirectory();
    const storage = await LmdbStorage.open({ directory });
    const own = await append(storage, 1);
    await expect(LmdbStorage.restore({ directory }, copy)).rejects.toThrow('is not empty');
    await storage.close();
    const foreign = await newDirectory();
    await writeFile(join(foreign, 'notes'), 'of somebody');
    await expect(LmdbStorage.restore({ directory: foreign }, copy)).rejects.toThrow('is not empty');
    expect([await headOf(directory), await readdir(foreign)]).toEqual([own, ['notes']]);
  });

  it('that was cut short is no data to begin on, and can be done again', async () => {
    const cutShort: readonly ((into: string) => Promise<void>)[] = [
      () => Promise.resolve(),
      (into) => writeFile(join(into, 'format'), '1\n'),
      // Killed while what was copied was put in its place.
      async (into) => {
        await copy(into);
        await mkdir(join(into, '..', 'log'));
      },
    ];
    for (const cut of cutShort) {
      const directory = await newDirectory();
      const killed = async (into: string): Promise<void> => {
        await cut(into);
        throw new Error('killed');
      };
      await expect(LmdbStorage.restore({ directory }, killed)).rejects.toThrow('killed');
      await expect(LmdbStorage.open({ directory })).rejects.toThrow('holds a restore that was cut short');
      await LmdbStorage.restore({ directory }, copy);
      expect(await headOf(directory)).toBe(head);
    }
  });
});
