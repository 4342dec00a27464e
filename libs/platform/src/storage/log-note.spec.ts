import { randomUUID } from 'node:crypto';
import { MongoServerError } from 'mongodb';
import { givenMongodb } from '#libs/testing/src/engines/given';
import { PinoLog } from '../pino.log.ts';
import { StartRefused } from '../start-refused.ts';
import { type Belonging, type LogIdentity, requireSameLog } from './log-note.ts';
import { MongodbStorage } from './mongodb-storage.ts';

const url = await givenMongodb();

(url === null ? describe.skip : describe)('what belongs to a log', () => {
  const opened: MongodbStorage[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((storage) => storage.close())));

  async function connect(at: string): Promise<MongodbStorage> {
    const storage = await MongodbStorage.connect({ url: at, log: new PinoLog({ level: 'silent', readable: false }) });
    opened.push(storage);
    return storage;
  }
  const newLog = (): LogIdentity => ({ installation: 'gatehouse', id: randomUUID() });
  const belonging = (title: string, storage: MongodbStorage): Belonging => ({
    storage,
    title,
    collection: 'notes',
    _id: title,
    used: { collection: 'things', filter: { _id: title } },
    wayOut: `Mend ${title}.`,
  });
  const notesIn = async (storage: MongodbStorage): Promise<readonly unknown[]> => storage.collection('notes').find().toArray();

  it('notes it once, and only that one is right from then on', async () => {
    const storage = await connect((await givenMongodb())!);
    const [log, other] = [newLog(), { ...newLog(), installation: 'gatehouse-2' }];
    const rows = belonging('Rows', storage);
    await requireSameLog(log, [rows]);
    await requireSameLog(log, [rows]);
    expect(await notesIn(storage)).toEqual([{ _id: 'Rows', ...log }]);
    await expect(requireSameLog(other, [rows])).rejects.toThrow(
      new StartRefused(
        `Rows belongs to the log ${log.id} of the installation gatehouse, and EVENTSTORE_URL with INSTALLATION names the log ${other.id} of the installation gatehouse-2. Mend Rows.`,
      ),
    );
    expect(await notesIn(storage)).toHaveLength(1);
  });

  it('notes one log where several come first, and refuses the others', async () => {
    const at = (await givenMongodb())!;
    const storages = await Promise.all(Array.from({ length: 6 }, () => connect(at)));
    const logs = [newLog(), newLog()];
    const outcomes = await Promise.allSettled(storages.map((storage, index) => requireSameLog(logs[index % 2]!, [belonging('Rows', storage)])));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(StartRefused);
    expect(await notesIn(storages[0]!)).toHaveLength(1);
  });

  it('is right where another process noted it, and used it, after it was looked for', async () => {
    const storage = await connect((await givenMongodb())!);
    const log = newLog();
    const things = storage.collection<{ readonly _id: string }>('things');
    const findOne = async (filter: { readonly _id: string }): Promise<unknown> => {
      await requireSameLog(log, [belonging('Rows', storage)]);
      await things.insertOne({ _id: 'Rows' });
      return things.findOne(filter);
    };
    const late = Object.assign(Object.create(storage) as MongodbStorage, {
      collection: (name: string) => (name === 'things' ? { findOne } : storage.collection(name)),
    });
    await requireSameLog(log, [belonging('Rows', late)]);
    expect(await notesIn(storage)).toHaveLength(1);
  });

  it('notes nothing where one of them is refused, and says all that are', async () => {
    const storage = await connect((await givenMongodb())!);
    const [log, other] = [newLog(), newLog()];
    await requireSameLog(log, [belonging('Rows', storage)]);
    await storage.collection<{ readonly _id: string }>('things').insertOne({ _id: 'Keys' });
    const all = ['Rows', 'Keys', 'New'].map((title) => belonging(title, storage));
    await expect(requireSameLog(other, all)).rejects.toThrow(
      /^Rows belongs to the log .* Mend Rows\. Keys holds something and does not say of which log, .* Mend Keys\.$/,
    );
    expect(await notesIn(storage)).toEqual([{ _id: 'Rows', ...log }]);
  });

  it('that may not be noted refuses with what the user has to be allowed', async () => {
    const storage = await connect((await givenMongodb())!);
    const refused = new MongoServerError({ message: 'not authorized', code: 13 });
    const refusing = Object.assign(Object.create(storage) as MongodbStorage, { collection: () => ({ findOne: () => Promise.reject(refused) }) });
    await expect(requireSameLog(newLog(), [belonging('Rows', refusing)])).rejects.toThrow(
      new StartRefused('Rows cannot note its log: the user has to be allowed to find and insert in notes, and to find in things. docs/operations.md says how.'),
    );
  });

  it('lies in the database that the connection string names, and in the one that is asked for where it names none', async () => {
    const log = new PinoLog({ level: 'silent', readable: false });
    const { host, pathname } = new URL(url!);
    for (const [at, name] of [
      [url!, pathname.slice(1)],
      [`mongodb://${host}`, 'gatehouse-2'],
      [`mongodb://${host}/`, 'gatehouse-2'],
      [`mongodb://${host}/?maxPoolSize=5`, 'gatehouse-2'],
      [`mongodb://${host}?maxPoolSize=5`, 'gatehouse-2'],
    ] as const) {
      const storage = await MongodbStorage.connect({ url: at, database: 'gatehouse-2', log });
      opened.push(storage);
      expect([at, storage.name]).toEqual([at, name]);
    }
  });
});
