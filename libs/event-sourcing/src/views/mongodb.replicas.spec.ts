import { basename } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { MongodbReadModels } from '#libs/read-models/src/mongodb.read-models';
import { MongodbShortLived } from '#libs/read-models/src/mongodb.short-lived';
import { givenMongodb } from '#libs/testing/src/engines/given';
import { replicasContract } from './replicas.contract.ts';

const mongodb = await givenMongodb();
(mongodb === null ? describe.skip : describe)('replicas with rows in MongoDB', () =>
  replicasContract(
    async (directory) => {
      const url = new URL(mongodb!);
      url.pathname = `/${basename(directory)}`;
      const storage = await MongodbStorage.connect({ url: url.href, log: new PinoLog({ level: 'silent', readable: false }) });
      return { readModels: new MongodbReadModels(storage), shortLived: new MongodbShortLived(storage, new SystemClock()), close: () => storage.close() };
    },
    { isShared: true },
  ),
);
