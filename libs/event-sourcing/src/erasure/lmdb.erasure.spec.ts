import { join } from 'node:path';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { erasureContract } from './erasure.contract.ts';

describe('an erasure, with rows in LMDB,', () =>
  erasureContract(
    async (directory) => {
      const storage = await LmdbStorage.open({ directory: join(directory, 'rows') });
      return { readModels: new LmdbReadModels(storage), close: () => storage.close() };
    },
    { histories: 12 },
  ));
