import { basename } from 'node:path';
import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { MongodbReadModels } from '#libs/read-models/src/mongodb.read-models';
import { givenMongodb } from '#libs/testing/src/engines/given';
import { erasureContract } from './erasure.contract.ts';

const mongodb = await givenMongodb();
(mongodb === null ? describe.skip : describe)('an erasure, with rows in MongoDB,', () =>
  erasureContract(
    async (directory) => {
      const url = new URL(mongodb!);
      url.pathname = `/${basename(directory)}`;
      const storage = await MongodbStorage.connect({ url: url.href, log: new PinoLog({ level: 'silent', readable: false }) });
      return { readModels: new MongodbReadModels(storage), close: () => storage.close() };
    },
    { histories: 4 },
  ),
);
