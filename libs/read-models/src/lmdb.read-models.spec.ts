import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { byteTextKeys } from '#libs/platform/src/storage/lmdb-keys';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import { LmdbReadModels, type LmdbTable } from './lmdb.read-models.ts';
import { readModelsContract } from './read-models.contract.ts';
import type { TableDefinition } from './read-models.ts';

const PROGRAM = fileURLToPath(new URL('../../../dist/libs/testing/src/row-writer.js', import.meta.url));
const directories: string[] = [];
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'read-models-'));
  directories.push(directory);
  return directory;
}

readModelsContract('LMDB', async () => {
  const directory = await newDirectory();
  return async () => {
    const storage = await LmdbStorage.open({ directory });
    return {
      readModels: new LmdbReadModels(storage),
      rowsRead: (table) => {
        const lmdb = table as unknown as LmdbTable<never>;
        const { rowsRead } = lmdb;
        lmdb.rowsRead = 0;
        return rowsRead;
      },
      close: () => storage.close(),
    };
  };
});

describe('tables in LMDB', () => {
  interface Thing {
    readonly id: string;
    readonly tags: readonly string[];
  }
  const definition: TableDefinition<Thing> = { name: 'things', rebuildable: true, indexes: [{ name: 'tag', keys: ({ tags }) => tags }] };
  const sorted: TableDefinition<Thing> = { ...definition, name: 'sorted', rebuildable: false, sortKey: ({ id }) => id.slice(-1) };
  const byIndexes: TableDefinition<Thing> = { ...sorted, name: 'by-indexes', isReadByIndexes: true };

  /** Every row is found under its tags, and under no other. */
  async function expectWhole(storage: LmdbStorage): Promise<number> {
    let count = 0;
    for (const table of [definition, sorted, byIndexes].map((each) => new LmdbReadModels(storage).table(each))) {
      const tagged = new Map<string, string[]>();
      for await (const { id, text } of table.dump()) {
        if (text === null) continue;
        for (const tag of (JSON.parse(text) as Thing).tags) tagged.set(tag, [...(tagged.get(tag) ?? []), id]);
        count++;
      }
      for (let tag = 0; tag < 20; tag++) {
        const { rows } = await table.page('one', { order: 'asc', limit: 10_000, where: { index: 'tag', values: [`tag${tag}`] } });
        const backwards = await table.page('one', { order: 'desc', limit: 10_000, where: { index: 'tag', values: [`tag${tag}`] } });
        expect(rows.map(({ id }) => id).sort()).toEqual((tagged.get(`tag${tag}`) ?? []).sort());
        expect(backwards.rows.map(({ id }) => id).reverse()).toEqual(rows.map(({ id }) => id));
      }
    }
    return count;
  }

  it('are whole after a crash at any moment, and stay so when they are written on', async () => {
    let directory = await newDirectory();
    let position = 0;
    const chosen = seededNumbers(seedOf('crashes'));
    for (let round = 0; round < 8; round++) {
      const storage = await LmdbStorage.open({ directory });
      const readModels = new LmdbReadModels(storage);
      const tables = [definition, sorted, byIndexes].map((each) => readModels.table(each));
      let isWriting = true;
      const writing = (async () => {
        while (isWriting) {
          const writes = Array.from({ length: 60 }, () => {
            const id = `thing_${chosen(3_000)}`;
            const tags = Array.from({ length: chosen(5) }, () => `tag${chosen(20)}`);
            return {
              environment: 'one',
              id,
              position: String(++position).padStart(16, '0'),
              revision: 1,
              text: chosen(10) === 0 ? null : JSON.stringify({ id, tags: [...new Set(tags)] }),
            };
          });
          for (const table of tables) await table.write(writes);
          await nextTurn();
        }
      })();
      const compacting = tables.map(async (table) => {
        for (; isWriting; await nextTurn()) await table.compact();
      });
      await pause(30 + chosen(100));
      // What a copy has of one moment is what a crash at that moment would leave.
      const copy = join(await newDirectory(), 'copy');
      await storage.backup(copy);
      isWriting = false;
      await Promise.all([writing, ...compacting]);
      // The tables that look are others than those that wrote.
      for (const table of tables) await table.settle();
      await expectWhole(storage);
      await storage.close();
      directory = copy;
      const crashed = await LmdbStorage.open({ directory });
      expect(await expectWhole(crashed)).toBeGreaterThan(0);
      await crashed.close();
    }
  });

  it('without lists keep nothing in memory of what is saved, and want nothing of the notes of releases that did', async () => {
    const directory = await newDirectory();
    const plain: TableDefinition<Thing> = { name: 'plain', rebuildable: false, indexes: [] };
    const written = (text: string | null, position: string) => ({ environment: 'one', id: 'a', position, revision: 1, text });
    let storage = await LmdbStorage.open({ directory });
    await new LmdbReadModels(storage).table({ ...plain, indexes: definition.indexes }).write([written('{"id":"a","tags":[]}', '2')]);
    const copy = join(await newDirectory(), 'copy');
    await storage.backup(copy);
    await storage.close();
    storage = await LmdbStorage.open({ directory: copy });
    const runs = storage.log.db('plain/runs', byteTextKeys);
    expect(runs.getKeysCount({ start: '\0', end: '\xff' })).toBe(1);
    const table = new LmdbReadModels(storage).table(plain);
    expect((await table.get('one', 'a'))?.position).toBe('2');
    await table.write([written('{"id":"a","tags":["x"]}', '1')]);
    await table.write([written('{"id":"a","tags":["y"]}', '3')]);
    await storage.log.flushed();
    expect([(await table.get('one', 'a'))?.text, runs.getKeysCount({ start: '\0', end: '\xff' })]).toEqual(['{"id":"a","tags":["y"]}', 0]);
    await storage.close();
  });

  it.each<TableDefinition<Thing>>([definition, sorted, byIndexes, { name: 'plain', rebuildable: false, indexes: [] }])(
    'know rows and deletions of before again, whichever ids come first ($name)',
    async (given) => {
      const directory = await newDirectory();
      const written = (number: number, position: string, isThere = true) => {
        const id = `thing_${number}`;
        return { environment: 'one', id, position, revision: 1, text: isThere ? JSON.stringify({ id, tags: ['x'] }) : null };
      };
      let storage = await LmdbStorage.open({ directory });
      let table = new LmdbReadModels(storage).table(given);
      const found = async (): Promise<readonly (string | null)[]> =>
        (await table.getMany('one', ['thing_2', 'thing_4', 'thing_5', 'thing_7', 'thing_9'])).map((row) => row?.position ?? null);
      for (const number of [2, 4, 5]) await table.write([written(number, '1')]);
      await table.write([written(5, '3', false)]);
      await storage.close();
      storage = await LmdbStorage.open({ directory });
      table = new LmdbReadModels(storage).table(given);
      // Of the deleted row, which is the last of its kind, nothing is left but when that was.
      for (const [number, position] of [
        [2, '2'],
        [4, '0'],
        [5, '2'],
        [9, '4'],
        [7, '5'],
      ] as const)
        await table.write([written(number, position)]);
      expect(await found()).toEqual(['2', '1', null, '5', '4']);
      await table.settle();
      await storage.log.flushed();
      await table.write([written(7, '4'), written(9, '3')]);
      expect(await found()).toEqual(['2', '1', null, '5', '4']);
      expect([...(await table.presentAmong('one', ['thing_5', 'thing_7', 'thing_8', 'thing_9', 'thing_99']))]).toEqual(['thing_7', 'thing_9']);
      await storage.close();
    },
  );

  it.each([definition, sorted, { ...definition, name: 'without-lists', indexes: [] }])(
    'say of a row what was said last, before it is saved, while it is, and afterwards: $name',
    async (described) => {
      const storage = await LmdbStorage.open({ directory: await newDirectory() });
      const table = new LmdbReadModels(storage).table(described);
      const write = (position: number, tags: readonly string[] | null): Promise<void> =>
        table.write([
          { environment: 'one', id: 'é1', position: String(position).padStart(4, '0'), revision: position, text: tags && JSON.stringify({ id: 'é1', tags }) },
        ]);
      const expectSaid = async (tags: readonly string[] | null): Promise<void> => {
        const said = tags === null ? [] : [JSON.stringify({ id: 'é1', tags })];
        const row = await table.get('one', 'é1');
        const { rows } = await table.page('one', { order: 'asc', limit: 10 });
        expect([row === null ? [] : [row.text], rows.map(({ text }) => text), [...(await table.presentAmong('one', ['é1']))].length]).toEqual([
          said,
          said,
          said.length,
        ]);
      };
      for (const [index, tags] of [['first'], ['second', 'ü'], null, ['third']].entries()) {
        await write(3 * index + 1, ['earlier']);
        const saving = table.save();
        await write(3 * index + 2, ['other']);
        await expectSaid(['other']);
        await write(3 * index + 3, tags);
        await expectSaid(tags);
        await saving;
        await expectSaid(tags);
        await table.save();
        await expectSaid(tags);
        if (index % 2 === 1) await table.compact();
        await expectSaid(tags);
      }
      await storage.close();
    },
  );

  it('that are read by indexes alone have no page of all rows', async () => {
    const storage = await LmdbStorage.open({ directory: await newDirectory() });
    const table = new LmdbReadModels(storage).table(byIndexes);
    await expect(table.page('one', { order: 'asc', limit: 1 })).rejects.toThrow('by its indexes alone');
    await storage.close();
  });

  it('are whole again after kill -9, as far as they were saved', async () => {
    const directory = await newDirectory();
    const chosen = seededNumbers(seedOf('killed tables'));
    for (let round = 0; round < 4; round++) {
      const child = spawn(process.execPath, [PROGRAM, directory, String(chosen(2 ** 31))]);
      await once(child.stdout, 'data');
      await pause(chosen(300));
      child.kill('SIGKILL');
      await once(child, 'close');
      const storage = await LmdbStorage.open({ directory });
      expect(await expectWhole(storage)).toBeGreaterThan(0);
      storage.fail('tried out');
      await storage.close();
    }
  });
});
