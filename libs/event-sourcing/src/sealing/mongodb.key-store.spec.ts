import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { givenMongodb } from '#libs/testing/src/engines/given';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { keyStoreContract, newMasterKey } from './key-store.contract.ts';
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
  keyStoreContract('MongoDB', async () => {
    const url = (await givenMongodb())!;
    return async (masterKeys) => MongodbKeyStore.open(await connect(url), masterKeys);
  });

  it('data keys lie wrapped', async () => {
    const storage = await connect((await givenMongodb())!);
    const store = await MongodbKeyStore.open(storage, [newMasterKey()]);
    const bytes = (await store.obtain('person.user-environment_1-user_1')).export();
    const [stored] = await storage.collection('keys').find().toArray();
    const text = JSON.stringify(stored);
    for (const encoding of ['base64', 'hex', 'latin1'] as const) expect(text).not.toContain(bytes.toString(encoding));
  });

  it('a key that another process destroyed is forgotten within a minute, and no other, also while nobody answers', async () => {
    const [clock, masters, url] = [new SettableClock(), [newMasterKey()], (await givenMongodb())!];
    const storage = await connect(url);
    const [one, other] = [await MongodbKeyStore.open(storage, masters, clock), await MongodbKeyStore.open(await connect(url), masters)];
    const [destroyed, kept] = ['person.user-environment_1-user_1', 'person.user-environment_1-user_2'] as const;
    for (const purpose of [destroyed, kept]) await one.obtain(purpose);
    await other.destroy(destroyed);
    clock.forward(60_000);
    expect(await one.find(destroyed)).toBeNull();
    const before = await one.find(kept);
    clock.forward(60_000);
    await storage.close();
    expect(await one.find(kept)).toBe(before);
    await expect(one.find(destroyed)).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('no key is kept without a master key', async () => {
    const storage = await connect((await givenMongodb())!);
    await expect(MongodbKeyStore.open(storage, [])).rejects.toThrow('MASTER_KEYS is not set');
  });
});
