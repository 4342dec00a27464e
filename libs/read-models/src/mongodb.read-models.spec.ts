import { setImmediate as nextTurn } from 'node:timers/promises';
import { DomainError } from '#libs/platform/src/domain-error';
import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { givenEngine, givenMongodb, givenSmallReplicaSet } from '#libs/testing/src/engines/given';
import { mongodb } from '#libs/testing/src/engines/mongodb';
import { MongodbQuestions } from '#libs/testing/src/engines/mongodb-questions';
import type { SeenCommand } from '#libs/testing/src/engines/mongodb-set/small-replica-set';
import { mayTake, until } from '#libs/testing/src/until';
import { MongodbReadModels, type MongodbTable } from './mongodb.read-models.ts';
import { readModelsContract } from './read-models.contract.ts';
import { Fenced, RowTooLarge, type Table, type TableDefinition, type Write } from './read-models.ts';

const isThere = (await givenMongodb()) !== null;
/** One that may be hurt: that there is one to share says nothing of whether another can be started. */
const own = await givenEngine(mongodb);
const log = new PinoLog({ level: 'silent', readable: false });
const newDatabase = async (): Promise<string> => (await givenMongodb())!;

(isThere ? describe : describe.skip)('with MongoDB', () => {
  const questions = new MongodbQuestions();
  afterEach(() => expect(questions.unserved(questions.take())).toEqual([]));

  const openedAt = async (url: string) => {
    const storage = await MongodbStorage.connect({ url, log });
    await storage.collectionNames();
    questions.watch(storage);
    return {
      readModels: new MongodbReadModels(storage),
      rowsRead: (table: Table<never>) => {
        const mongodb = table as MongodbTable<never>;
        const { rowsRead } = mongodb;
        mongodb.rowsRead = 0;
        return rowsRead;
      },
      close: () => storage.close(),
    };
  };

  readModelsContract('MongoDB', async () => {
    const url = MongodbQuestions.of(await newDatabase());
    return () => openedAt(url);
  });

  readModelsContract(
    'a replica set of MongoDB, which is asked for nothing older than it has answered',
    async () => {
      const set = (await givenSmallReplicaSet())!;
      return async () => {
        const opened = await openedAt(set.url);
        const close = async (): Promise<void> => {
          await opened.close();
          expect(set.careless).toEqual([]);
        };
        return { ...opened, close };
      };
    },
    // The questions are those of above; each takes the way through two more servers.
    120,
  );

  interface Thing {
    readonly id: string;
    readonly tags: readonly string[];
  }
  const TAGS = Array.from({ length: 7 }, (_, number) => `tag${number}`);
  const byId: TableDefinition<Thing> = { name: 'things', rebuildable: true, indexes: [{ name: 'tag', keys: ({ tags }) => tags }] };
  const sorted: TableDefinition<Thing> = { ...byId, name: 'sorted things', sortKey: ({ id }) => id.slice(-1) };

  it('believes no record that an earlier release has left beside a checkpoint which it stored, and reads checkpoints of before', async () => {
    const storage = await MongodbStorage.connect({ url: await newDatabase(), log });
    try {
      const table = new MongodbReadModels(storage).table(byId);
      const stored = storage.collection<{ readonly _id: string; readonly position: string; readonly fence: number }>('checkpoints');
      await stored.insertOne({ _id: byId.name, position: '0000000000000041', fence: 3 });
      expect([await table.checkpoint(), await table.recordAt('0000000000000041')]).toEqual(['0000000000000041', null]);
      await table.write([], { position: '0000000000000042', record: 'seen' }, 3);
      expect(await table.recordAt('0000000000000042')).toBe('seen');
      await stored.updateOne({ _id: byId.name, fence: { $lte: 3 } }, { $set: { position: '0000000000000043', fence: 3 } });
      expect([await table.checkpoint(), await table.recordAt('0000000000000043'), await table.recordAt('0000000000000042')]).toEqual([
        '0000000000000043',
        null,
        null,
      ]);
    } finally {
      await storage.close();
    }
  });

  it('says of a row that is more than a document with what it is found under, alone as among others', async () => {
    const storage = await MongodbStorage.connect({ url: await newDatabase(), log });
    try {
      const table = new MongodbReadModels(storage).table(byId);
      const tags = Array.from({ length: 40_000 }, (_, number) => `${String(number).padStart(6, '0')}${'x'.repeat(450)}`);
      const row = { id: 'thing_large', tags };
      const large: Write = { environment: 'one', id: row.id, position: '1', revision: 1, text: '{}', row };
      await expect(table.write([large])).rejects.toThrow(RowTooLarge);
      await expect(table.write([{ ...large, id: 'thing_small', text: '', row: { ...row, tags: [] } }, large], '1')).rejects.toMatchObject({
        id: 'thing_large',
      });
      expect([await table.get('one', 'thing_large'), await table.checkpoint()]).toEqual([null, '']);
    } finally {
      await storage.close();
    }
  });

  const positionOf = (number: number): string => String(number).padStart(16, '0');
  const numberOf = (text: string): number => Number(/"tags":\["tag\d","at(\d+)"\]/.exec(text)?.[1]);

  /** Says in its text at which position it was written. */
  function write(number: number, at: number): Write {
    const id = `thing_${String(number).padStart(4, '0')}`;
    return { environment: 'one', id, position: positionOf(at), revision: at, text: JSON.stringify({ id, tags: [TAGS[at % TAGS.length], `at${at}`] }) };
  }

  /** Every row is found under its tags, and under no other. Answers the position of each. */
  async function expectWhole(table: Table<Thing>): Promise<ReadonlyMap<string, number>> {
    const written = new Map<string, number>();
    const tagged = new Map<string, string[]>();
    for await (const { id, text } of table.dump()) {
      const at = numberOf(text!);
      expect((await table.get('one', id))!.position).toBe(positionOf(at));
      written.set(id, at);
      const tag = TAGS[at % TAGS.length]!;
      tagged.set(tag, [...(tagged.get(tag) ?? []), id]);
    }
    for (const tag of TAGS) {
      const { rows } = await table.page('one', { order: 'asc', limit: 10_000, where: { index: 'tag', values: [tag] } });
      expect(rows.map(({ id }) => id).sort()).toEqual((tagged.get(tag) ?? []).sort());
    }
    return written;
  }

  it('clears a table from the last row that went on, and not from the front over what is gone already', async () => {
    const asked = new MongodbQuestions();
    const storage = await MongodbStorage.connect({ url: MongodbQuestions.of(await newDatabase()), log });
    asked.watch(storage);
    const table = new MongodbReadModels(storage).table(byId);
    const rows = Array.from({ length: 10_500 }, (_, number): Write => ({
      environment: 'one',
      id: String(number).padStart(6, '0'),
      position: '1',
      revision: 0,
      text: null,
    }));
    await table.write(rows);
    asked.take();
    await table.clear();
    const begins = asked.take().flatMap(({ filter }) => (filter['_id'] as { readonly $gt?: string } | undefined)?.$gt ?? []);
    expect(begins).toEqual(['', 'one\0' + '009999']);
    for await (const row of table.dump()) throw new Error(`${row.id} is still there.`);
    await storage.close();
  }, 30_000);

  describe('replicas that write the same table', () => {
    const storages: MongodbStorage[] = [];
    afterEach(() => Promise.all(storages.splice(0).map((storage) => storage.close())));

    async function replicas<Row>(definition: TableDefinition<Row>, count: number): Promise<readonly Table<Row>[]> {
      const url = await newDatabase();
      return Promise.all(
        Array.from({ length: count }, async () => {
          const storage = await MongodbStorage.connect({ url, log });
          storages.push(storage);
          return new MongodbReadModels(storage).table(definition);
        }),
      );
    }

    it.each([byId, sorted])('create it and its indexes at once', async (definition) => {
      const tables = await replicas(definition, 4);
      await Promise.all(tables.map((table, index) => table.write([write(index, index + 1)])));
      expect((await expectWhole(tables[0]!)).size).toBe(4);
      const [storage] = storages;
      const [name] = (await storage!.collectionNames()).filter((each) => each.startsWith('rows.'));
      const indexes = await storage!.collection(name!).indexes();
      const place = definition.sortKey ? 'rank' : '_id';
      expect(indexes.map(({ key }) => Object.keys(key as object).join(' ')).sort()).toEqual(['_id', `row.environment ${place}`, `row.keys.tag ${place}`]);
    });

    it.each([byId, sorted])('leave the latest write of each row, whoever was faster', async (definition) => {
      const tables = await replicas(definition, 3);
      const rows = Array.from({ length: 100 }, (_, number) => number);
      // Each writes every row at positions of its own: one by one, in bulk, and in bulk backwards.
      const at = (number: number, round: number, replica: number): number => 1 + number + 100 * (3 * round + replica);
      await Promise.all(
        tables.map(async (table, replica) => {
          for (const round of replica === 0 ? [0, 1, 2] : [2, 0, 1]) {
            const writes = rows.map((number) => write(number, at(number, round, replica)));
            // Fewer at once than there are connections: what waits for one is another matter.
            if (replica === 0)
              for (let from = 0; from < writes.length; from += 10) await Promise.all(writes.slice(from, from + 10).map((each) => table.write([each])));
            else await table.write(replica === 1 ? writes : writes.reverse());
          }
        }),
      );
      const written = await expectWhole(tables[0]!);
      expect([...written.values()]).toEqual(rows.map((number) => at(number, 2, 2)));
    });

    it('keep a checkpoint from all but the latest holder of the lease', async () => {
      const tables = await replicas(byId, 4);
      const outcomes = await Promise.allSettled(tables.map((table, index) => table.write([], positionOf(index), 10 - index)));
      expect(outcomes[0]).toMatchObject({ status: 'fulfilled' });
      for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(Fenced);
      expect(await tables[1]!.checkpoint()).toBe(positionOf(0));
    });

    it('make its indexes again where another dropped them: before it is filled, after it was cleared, and when a page misses one', async () => {
      const [table] = await replicas(sorted, 1);
      const [storage] = storages;
      const collection = storage!.collection(`rows.${encodeURIComponent(sorted.name)}`);
      const indexes = async (): Promise<number> => (await collection.indexes()).length;
      await table!.write([write(1, 1)]);
      for (const again of [
        () => table!.prepare(),
        () => table!.page('one', { order: 'asc', limit: 1, where: { index: 'tag', values: ['tag1'] } }),
        () => table!.clear(),
      ]) {
        await collection.dropIndexes();
        expect(await indexes()).toBe(1);
        await again();
        expect(await indexes()).toBe(3);
      }
    });

    it('fill it anew where another dropped it', async () => {
      const [one, other] = await replicas(byId, 2);
      await one!.write([write(1, 1)], positionOf(1));
      await new MongodbReadModels(storages[1]!).drop('things');
      expect([await one!.checkpoint(), await one!.get('one', 'thing_0001')]).toEqual(['', null]);
      await other!.write([write(2, 2)], positionOf(2));
      await one!.write([write(1, 3)], positionOf(3));
      expect((await expectWhole(one!)).size).toBe(2);
    });

    it('keep no checkpoint of one who comes back after another dropped it, under a later token', async () => {
      const [one, other] = await replicas(byId, 2);
      await one!.write([write(1, 1)], positionOf(1), 1);
      await new MongodbReadModels(storages[1]!).drop('things', 2);
      await expect(one!.write([], positionOf(2), 1)).rejects.toBeInstanceOf(Fenced);
      expect(await other!.checkpoint()).toBe('');
      await other!.write([write(1, 3)], positionOf(3), 3);
      await expect(new MongodbReadModels(storages[1]!).drop('things', 2)).rejects.toBeInstanceOf(Fenced);
      expect([await other!.checkpoint(), (await expectWhole(other!)).size]).toEqual([positionOf(3), 1]);
    });
  });

  it('what is filled anew keeps its checkpoint, when what was given up before is carried out late', async () => {
    const set = (await givenSmallReplicaSet())!;
    const storage = await MongodbStorage.connect({ url: set.url, log });
    const table = new MongodbReadModels(storage).table(byId);
    await table.write([write(1, 1)], positionOf(1), 1);
    const isCheckpoint = ({ name, collection }: SeenCommand): boolean => name === 'update' && collection === 'checkpoints';
    const comeLate = set.hold(isCheckpoint);
    // Neither that it is to be forgotten nor how far it came is heard of in time.
    const given = [table.clear(1), table.write([], positionOf(5), 1)];
    for (const up of given) await expect(up).rejects.toMatchObject({ code: 'service_unavailable' });
    set.passNew();
    await table.clear(2);
    await table.write([write(1, 1), write(2, 2)], positionOf(2), 2);
    await comeLate();
    expect(await table.checkpoint()).toBe(positionOf(2));
    await storage.close();
  }, 15_000);

  (own === null ? describe.skip : describe)('while MongoDB fails', () => {
    const engine = own!;
    let storage: MongodbStorage;

    beforeAll(async () => void (storage = await MongodbStorage.connect({ url: engine.address, log })), 60_000);
    afterAll(() => storage.close());

    it.each([
      ['stopped and started', byId, () => engine.stop(), () => engine.restart()],
      ['paused and resumed', sorted, () => engine.pause(), () => engine.resume()],
    ])(
      'a view that is %s is never ahead of its rows, and goes on',
      async (_how, definition, fail, recover) => {
        const table = new MongodbReadModels(storage).table(definition);
        let at = 0;
        let refusals = 0;
        let slowest = 0;
        let isWriting = true;
        // What a projector does: rows and checkpoint, and after a failure from the stored checkpoint on.
        const projecting = (async () => {
          while (isWriting) {
            const start = performance.now();
            try {
              const news = Array.from({ length: 50 }, (_, index) => write((at + index) % 300, at + index + 1));
              await table.write(news, positionOf(at + 50), 1);
              at += 50;
            } catch (error) {
              if (!(error instanceof DomainError)) throw error;
              refusals++;
              slowest = Math.max(slowest, performance.now() - start);
              at = Number(await table.checkpoint().catch(() => positionOf(at)));
            }
            await nextTurn();
          }
        })();
        await until(() => at >= 1_000);
        await fail();
        await until(() => refusals > 0);
        const start = performance.now();
        await expect(table.get('one', 'thing_0001')).rejects.toMatchObject({ kind: 'unavailable' });
        await expect(table.page('one', { order: 'asc', limit: 1 })).rejects.toMatchObject({ kind: 'unavailable' });
        expect(performance.now() - start).toBeLessThan(mayTake(10_000));
        await recover();
        const reached = at;
        await until(() => at >= reached + 500);
        isWriting = false;
        await projecting;
        expect(slowest).toBeLessThan(5_000);
        const written = await expectWhole(table);
        const filledTo = Number(await table.checkpoint());
        // Of the last 300 positions, each is the latest of its row; none of them is missing.
        const positions = [...written.values()].sort((one, other) => one - other);
        expect(positions).toEqual(Array.from({ length: 300 }, (_, index) => filledTo - 299 + index));
      },
      60_000,
    );
  });
});
