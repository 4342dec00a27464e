import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { givenMongodb } from '#libs/testing/src/engines/given';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { MongodbShortLived } from './mongodb.short-lived.ts';
import { shortLivedContract } from './short-lived.contract.ts';

const isThere = (await givenMongodb()) !== null;
const log = new PinoLog({ level: 'silent', readable: false });
const newDatabase = async (): Promise<string> => (await givenMongodb())!;

(isThere ? describe : describe.skip)('short-lived entries', () => {
  shortLivedContract(
    'MongoDB',
    async (clock) => {
      const url = await newDatabase();
      return async () => {
        const storage = await MongodbStorage.connect({ url, log });
        return { shortLived: new MongodbShortLived(storage, clock), close: () => storage.close() };
      };
    },
    // MongoDB removes by its own clock what has expired.
    () => new SettableClock(Date.now()),
  );
});
