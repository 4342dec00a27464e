import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { replicasContract } from './replicas.contract.ts';

describe('replicas with rows in LMDB', () =>
  replicasContract(
    async (directory) => {
      const storage = await LmdbStorage.open({ directory: join(directory, 'rows') });
      return { readModels: new LmdbReadModels(storage), shortLived: new LmdbShortLived(storage, new SystemClock()), close: () => storage.close() };
    },
    { isShared: false },
  ));
