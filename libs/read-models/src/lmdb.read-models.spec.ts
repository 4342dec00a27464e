import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels, type LmdbTable } from './lmdb.read-models.ts';
import { readModelsContract } from './read-models.contract.ts';

const directories: string[] = [];
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

readModelsContract('LMDB', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'read-models-'));
  directories.push(directory);
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
