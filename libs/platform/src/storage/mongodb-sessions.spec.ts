import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { givenMongodb, givenSmallReplicaSet, givenStepDown } from '#libs/testing/src/engines/given';
import type { SmallReplicaSet } from '#libs/testing/src/engines/mongodb-set/small-replica-set';
import { until } from '#libs/testing/src/until';
import { PinoLog } from '../pino.log.ts';
import { MongodbStorage } from './mongodb-storage.ts';

const url = await givenMongodb();
const stepDown = await givenStepDown();
const log = new PinoLog({ level: 'silent', readable: false });

interface Thing {
  readonly _id: string;
  readonly state: string;
}

(url === null ? describe.skip : describe)('what is answered by a replica set', () => {
  let set: SmallReplicaSet;
  let storage: MongodbStorage;
  const opened: MongodbStorage[] = [];

  const open = async (options: { readonly looked?: number } = {}): Promise<MongodbStorage> => {
    const next = await MongodbStorage.connect({ url: set.url, log, ...options });
    opened.push(next);
    return next;
  };
  beforeEach(async () => {
    set = (await givenSmallReplicaSet())!;
    storage = await open();
    await put('old');
  });
  afterEach(() => Promise.all(opened.splice(0).map((each) => each.close())));

  const put = (state: string, to = storage) =>
    to.answer((inSession) => to.collection<Thing>('things').updateOne({ _id: 'a' }, { $set: { state } }, { upsert: true, ...inSession }));
  const get = async (from = storage): Promise<string | undefined> =>
    (await from.answer((inSession) => from.collection<Thing>('things').findOne({ _id: 'a' }, inSession)))?.state;

  it('may be old, where a new primary does not know yet what was committed', async () => {
    set.fallBehind();
    await put('new');
    set.stepDown();
    const client = new MongoClient(set.url);
    expect(await client.db().collection<Thing>('things').findOne({ _id: 'a' })).toMatchObject({ state: 'old' });
    await client.close();
  });

  it('is not older than what was acknowledged here', async () => {
    set.fallBehind();
    await put('new');
    set.stepDown();
    expect(await get()).toBe('new');
  });

  it('is not older than what was read here', async () => {
    const writer = await open();
    set.fallBehind();
    await put('new', writer);
    expect(await get()).toBe('new');
    set.stepDown();
    expect(await get()).toBe('new');
  });

  it('is not older where it comes in parts', async () => {
    set.fallBehind();
    await put('new');
    set.stepDown();
    const states: string[] = [];
    for await (const { state } of storage.answers((inSession) => storage.collection<Thing>('things').find({}, inSession))) states.push(state);
    expect(states).toEqual(['new']);
    set.fallBehind();
    await put('newest');
    for await (const { state } of storage.answers((inSession) => storage.collection<Thing>('things').find({}, inSession))) states.push(state);
    set.stepDown();
    expect([...states, await get()]).toEqual(['new', 'newest', 'newest']);
  });

  it('is not older than what stood in the way of something', async () => {
    set.fallBehind();
    const [writer, reader] = [await open(), await open()];
    await put('new', writer);
    const things = reader.collection<Thing>('things');
    await expect(reader.answer((inSession) => things.insertOne({ _id: 'a', state: 'first' }, inSession))).rejects.toMatchObject({ code: 11_000 });
    set.stepDown();
    expect(await get(reader)).toBe('new');
  });

  it('is not older where another driver has taken the place of the first', async () => {
    const replaced = await open({ looked: 0 });
    set.fallBehind();
    await put('new', replaced);
    const before = replaced.collection('things');
    const isReplaced = (): boolean => replaced.collection('things') !== before;
    set.isAway = true;
    while (!isReplaced()) await expect(get(replaced)).rejects.toMatchObject({ code: 'service_unavailable' });
    set.isAway = false;
    set.stepDown();
    expect(await get(replaced)).toBe('new');
  }, 30_000);

  it('waits for nothing that a majority never heard of', async () => {
    const before = set.commands.length;
    set.isAlone = true;
    await expect(put('lost')).rejects.toMatchObject({ code: 'service_unavailable' });
    set.isAlone = false;
    await get();
    const [lost, read] = set.commands.slice(before);
    expect(read!.after).toBe(lost!.after);
  });

  it('comes again after the set was put back to an earlier time', async () => {
    set.putBack();
    await expect(get()).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(await get()).toBe('old');
    await put('new');
    expect(await get()).toBe('new');
  });

  it('comes in sessions, of which each has one question at a time, at a majority', async () => {
    await Promise.all(Array.from({ length: 8 }, () => get()));
    const reads = set.commands.filter(({ name }) => name === 'find');
    expect(new Set(reads.map(({ session }) => session)).size).toBe(8);
    expect(reads.map(({ level }) => level)).toEqual(reads.map(() => 'majority'));
    await get();
    expect(new Set(set.commands.map(({ session }) => session)).size).toBe(8);
  });
});

(url === null || stepDown !== null ? describe.skip : describe)('what is answered by a server that stands alone', () => {
  it('needs no sessions', async () => {
    const storage = await MongodbStorage.connect({ url: url!, log });
    const sessions = await Promise.all([1, 2].map(() => storage.answer(async (inSession) => inSession)));
    expect(sessions).toEqual([{}, {}]);
    await storage.close();
  });
});

(url === null ? describe.skip : describe)('connections to each server', () => {
  it.each([
    ['are bounded', '', 32],
    ['are as many as the connection string says', '&maxPoolSize=7', 7],
  ])('%s', async (_how, option, most) => {
    const set = (await givenSmallReplicaSet())!;
    const storage = await MongodbStorage.connect({ url: `${set.url}${option}`, log });
    const passing = set.hold(({ name }) => name === 'find');
    const asked = Promise.all(Array.from({ length: 60 }, () => storage.answer((inSession) => storage.collection('things').findOne({}, inSession))));
    await until(() => set.underWay >= most);
    await pause(100);
    expect(set.underWay).toBe(most);
    await passing();
    await asked;
    await storage.close();
  });
});
