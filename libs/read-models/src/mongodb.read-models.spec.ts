import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { givenMongodb } from '#libs/testing/src/engines/given';
import { MongodbReadModels, type MongodbTable } from './mongodb.read-models.ts';
import { readModelsContract } from './read-models.contract.ts';

const isThere = (await givenMongodb()) !== null;
const log = new PinoLog({ level: 'silent', readable: false });
const newDatabase = async (): Promise<string> => (await givenMongodb())!;

(isThere ? describe : describe.skip)('tables', () => {
  readModelsContract('MongoDB', async () => {
    const url = await newDatabase();
    return async () => {
      const storage = await MongodbStorage.connect({ url, log });
      return {
        readModels: new MongodbReadModels(storage),
        rowsRead: (table) => {
          const mongodb = table as unknown as MongodbTable<never>;
          const { rowsRead } = mongodb;
          mongodb.rowsRead = 0;
          return rowsRead;
        },
        close: () => storage.close(),
      };
    };
  });
});
