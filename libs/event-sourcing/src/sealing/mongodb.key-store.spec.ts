import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { givenMongodb, givenSmallReplicaSet } from '#libs/testing/src/engines/given';
import type { SmallReplicaSet } from '#libs/testing/src/engines/mongodb-set/small-replica-set';
import { MongodbQuestions } from '#libs/testing/src/engines/mongodb-questions';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { keyStoreContract, newMasterKey } from './key-store.contract.ts';
import { KeyMissing } from './key-store.ts';
import { MongodbKeyStore } from './mongodb.key-store.ts';

const isThere = (await givenMongodb()) !== null;
const opened: MongodbStorage[] = [];
afterEach(() => Promise.all(opened.splice(0).map((storage) => storage.close())));

async function connect(url: string): Promise<MongodbStorage> {
  const storage = await MongodbStorage.connect({ url, log: new PinoLog({ level: 'silent', readable: false }) });
  opened.push(storage);
  return storage;
}

(isThere ? describe : describe.skip)('with MongoDB', () => {
  const questions = new MongodbQuestions();
  afterEach(() => expect(questions.unserved(questions.take())).toEqual([]));

  keyStoreContract('MongoDB', async () => {
    const url = MongodbQuestions.of((await givenMongodb())!);
    return async (masterKeys, clock) => {
      const storage = await connect(url);
      questions.watch(storage);
      return MongodbKeyStore.open(storage, masterKeys, clock);
    };
  });

  describe('of which members take over', () => {
    let set: SmallReplicaSet;
    keyStoreContract('a replica set of MongoDB, which is asked for nothing older than it has answered', async () => {
      set = (await givenSmallReplicaSet())!;
      return async (masterKeys, clock) => {
        const storage = await connect(set.url);
        await storage.collectionNames();
        return MongodbKeyStore.open(storage, masterKeys, clock);
      };
    });
    afterEach(() => expect(set.careless).toEqual([]));
  });

  it('data keys lie wrapped', async () => {
    const storage = await connect((await givenMongodb())!);
    const store = await MongodbKeyStore.open(storage, [newMasterKey()]);
    const { bytes } = await store.obtain('person.user-environment_1-user_1');
    const [stored] = await storage.collection('keys').find().toArray();
    const text = JSON.stringify(stored);
    for (const encoding of ['base64', 'hex', 'latin1'] as const) expect(text).not.toContain(bytes.toString(encoding));
  });

  it('no record of erasures is believed, where an earlier release has gone on and left the one that it does not know', async () => {
    const storage = await connect((await givenMongodb())!);
    const store = await MongodbKeyStore.open(storage, [newMasterKey()]);
    await store.setErasedUpTo('0000000000000017', 'seen');
    await storage.collection<{ readonly _id: string }>('keys').updateOne({ _id: 'eraser' }, { $set: { position: '0000000000000018' } });
    expect([await store.erasedUpTo(), await store.erasedRecordAt('0000000000000018'), await store.erasedRecordAt('0000000000000017')]).toEqual([
      '0000000000000018',
      null,
      null,
    ]);
  });

  it('a key is not known for longer than a minute while nobody answers, and not called erased or missing', async () => {
    const [clock, purpose] = [new SettableClock(), 'person.user-environment_1-user_1' as const];
    const storage = await connect((await givenMongodb())!);
    const store = await MongodbKeyStore.open(storage, [newMasterKey()], clock);
    const key = await store.obtain(purpose);
    await storage.close();
    expect(await store.find(purpose)).toBe(key);
    clock.forward(60_000);
    await expect(store.find(purpose)).rejects.toMatchObject({ kind: 'unavailable' });
    await expect(store.find(purpose)).rejects.not.toBeInstanceOf(KeyMissing);
  });

  it('no key is kept without a master key', async () => {
    const storage = await connect((await givenMongodb())!);
    await expect(MongodbKeyStore.open(storage, [])).rejects.toThrow('MASTER_KEYS is not set');
  });
});
