import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { LmdbReadModels, type LmdbTable } from '#libs/read-models/src/lmdb.read-models';
import { MongodbReadModels } from '#libs/read-models/src/mongodb.read-models';
import type { Table } from '#libs/read-models/src/read-models';
import { givenMongodb, givenSmallReplicaSet, givenStepDown } from '#libs/testing/src/engines/given';
import type { SmallReplicaSet } from '#libs/testing/src/engines/mongodb-set/small-replica-set';
import { FaultyRows } from '#libs/testing/src/faulty-rows';
import { mayTake } from '#libs/testing/src/until';
import type { RecordedEvent } from '../log/event-store.ts';
import { FoldedRows } from './folded-rows.ts';
import { Unfoldable, ViewFold } from './view-fold.ts';
import { tableOf, type View } from './view.ts';

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';

interface Sum {
  readonly total: number;
}

const sums: View<Sum> = {
  name: 'sums',
  version: 1,
  handles: ['sum.added', 'sum.removed'],
  indexes: [{ name: 'all', keys: () => ['all'] }],
  idsOf: ({ data }) => [(data as { readonly id: string }).id],
  evolve: (row, { type, data }) => (type === 'sum.removed' ? null : { total: (row?.total ?? 0) + (data as { readonly amount: number }).amount }),
};

const positionOf = (number: number): string => String(number).padStart(16, '0');

function event(number: number, id: string, amount = 1, type = 'sum.added'): RecordedEvent {
  const meta = {
    environment: ENVIRONMENT,
    actor: { id: 'spec', source: 'system', name: null },
    requestId: 'request',
    commandId: 'command',
    at: number,
  } as const;
  const position = positionOf(number);
  return { id: `event_${number}`, stream: `sum-${id}`, version: number, position, type, shape: 1, data: { id, amount }, subject: null, public: [], meta };
}

const isThere = (await givenMongodb()) !== null;
const stepDown = await givenStepDown();
const opened: MongodbStorage[] = [];
afterEach(() => Promise.all(opened.splice(0).map((storage) => storage.close())));

async function tableAt(url: string): Promise<Table<Sum>> {
  const storage = await MongodbStorage.connect({ url, log: new PinoLog({ level: 'silent', readable: false }) });
  opened.push(storage);
  return new MongodbReadModels(storage).table(tableOf(sums));
}

async function totalOf(table: Table<Sum>, id: string): Promise<number | undefined> {
  const row = await table.get(ENVIRONMENT, id);
  return row === null ? undefined : (JSON.parse(row.text) as Sum).total;
}

(isThere ? describe : describe.skip)('a fold over rows that are older than it left them', () => {
  let set: SmallReplicaSet;
  let table: Table<Sum>;
  let fold: ViewFold<Sum>;

  beforeEach(async () => {
    set = (await givenSmallReplicaSet())!;
    table = await tableAt(set.url);
    fold = new ViewFold(sums, table);
    await fold.apply([event(1, 'a')]);
    set.fallBehind();
  });

  it('reads them again', async () => {
    await fold.apply([event(2, 'a')]);
    set.forgetful = 3;
    await fold.apply([event(3, 'a')]);
    expect(await totalOf(table, 'a')).toBe(3);
  });

  it('reads them again where it did not write them, but found them done', async () => {
    await table.write([{ environment: ENVIRONMENT, id: 'a', position: positionOf(2), revision: 2, text: '{"total":2}' }]);
    await fold.apply([event(2, 'a')]);
    set.forgetful = 3;
    await fold.apply([event(3, 'a')]);
    expect(await totalOf(table, 'a')).toBe(3);
  });

  it('reads those again that are not there yet', async () => {
    await fold.apply([event(2, 'b', 5)]);
    set.forgetful = 4;
    await fold.apply([event(3, 'b')]);
    expect(await totalOf(table, 'b')).toBe(6);
  });

  it('reads those again that it deleted', async () => {
    await fold.apply([event(2, 'a', 1, 'sum.removed')]);
    set.forgetful = 3;
    await fold.apply([event(3, 'a', 7)]);
    expect(await totalOf(table, 'a')).toBe(7);
  });

  it('takes rows as they are that others deleted since', async () => {
    await table.write([{ environment: ENVIRONMENT, id: 'a', position: positionOf(2), revision: 2, text: null }]);
    const start = performance.now();
    await fold.apply([event(2, 'a', 1, 'sum.removed'), event(3, 'a', 7)]);
    expect(await totalOf(table, 'a')).toBe(7);
    expect(performance.now() - start).toBeLessThan(mayTake(4_000));
  });

  it('folds nothing on them as long as they stay so, also where it began again', async () => {
    const known = new FoldedRows();
    await new ViewFold(sums, table, new Set(), known).apply([event(2, 'a')]);
    set.forgetful = Infinity;
    await expect(new ViewFold(sums, table, new Set(), known).apply([event(3, 'a')])).rejects.toMatchObject({ code: 'service_unavailable' });
    // A store that was put back to the first event has the others told again.
    known.forgetAfter(positionOf(1));
    set.stepDown();
    await new ViewFold(sums, table, new Set(), known).apply([event(2, 'a'), event(3, 'a')]);
    set.forgetful = 0;
    expect(await totalOf(table, 'a')).toBe(3);
  }, 15_000);
});

interface Elected {
  readonly url: string;
  /** What is written from here on may not be known to who is elected next. */
  readonly begin: () => void;
  /** Another member is primary, or is about to be. */
  readonly elect: () => Promise<void>;
}

async function small(): Promise<Elected> {
  const set = (await givenSmallReplicaSet())!;
  return { url: set.url, begin: () => set.fallBehind(), elect: async () => set.stepDown() };
}

async function real(): Promise<Elected> {
  return { url: (await givenMongodb())!, begin: () => {}, elect: stepDown! };
}

const SETS: readonly (readonly [string, () => Promise<Elected>])[] = [
  ['a small replica set', small],
  // The server for tests stands alone: it is none that is left out.
  ...(stepDown === null ? [] : [['the replica set in MONGODB_URL', real] as const]),
];
describe.each(SETS)('another member of %s takes over', (_which, given) => {
  const maybe = isThere ? it : it.skip;

  /** As whoever follows does: from the start again until it succeeds. */
  async function insisting<Answer>(attempt: () => Promise<Answer>): Promise<Answer> {
    for (const deadline = Date.now() + 60_000; ; await pause(100)) {
      try {
        return await attempt();
      } catch (error) {
        if (!isUnavailable(error) || Date.now() > deadline) throw error;
      }
    }
  }

  maybe(
    'between batches that are folded, and no event is lost',
    async () => {
      const { url, begin, elect } = await given();
      const table = await tableAt(url);
      const ids = ['a', 'b', 'c'];
      const events = Array.from({ length: 60 }, (_, index) => event(index + 1, ids[index % 3]!));
      const known = new FoldedRows();
      let fold: ViewFold<Sum> | null = null;
      let from = '';
      for (let end = 5; end <= events.length; end += 5) {
        begin();
        await insisting(async () => {
          try {
            if (fold === null) known.forgetAfter((from = await table.checkpoint()));
            fold ??= new ViewFold(sums, table, new Set(), known);
            await fold.apply(events.slice(0, end).filter(({ position }) => position > from));
            from = positionOf(end);
          } catch (error) {
            fold = null;
            throw error;
          }
        });
        if (end % 15 === 0) await elect();
      }
      for (const id of ids) expect(await insisting(() => totalOf(table, id))).toBe(20);
    },
    120_000,
  );

  maybe(
    'between a checkpoint and the rows that are loaded, which are not older',
    async () => {
      const { url, begin, elect } = await given();
      const [writing, loading] = [await tableAt(url), await tableAt(url)];
      const fold = new ViewFold(sums, writing);
      for (let round = 1; round <= 3; round++) {
        begin();
        await insisting(() => fold.apply([event(round, 'a')]));
        const checkpoint = await insisting(() => loading.checkpoint());
        await elect();
        const { rows } = await insisting(() => loading.page(ENVIRONMENT, { where: { index: 'all', values: ['all'] }, order: 'asc', limit: 10 }));
        expect(rows.map(({ position }) => position >= checkpoint)).toEqual([true]);
        expect(checkpoint).toBe(positionOf(round));
      }
    },
    120_000,
  );
});

interface Turn {
  readonly number: number;
}

/** In which turn each id came: what a row is depends on all rows before it. */
const turns: View<Turn> = {
  name: 'turns',
  version: 1,
  handles: ['sum.added'],
  indexes: [],
  sortKey: ({ number }) => String(number).padStart(4, '0'),
  idsOf: ({ data }) => [(data as { readonly id: string }).id],
  evolve: () => ({ number: 0 }),
  async evolveBatch(table, _events, remembered) {
    if (!remembered.has('last')) {
      const { rows } = await table.page(ENVIRONMENT, { order: 'desc', limit: 1 });
      remembered.set('last', rows[0] === undefined ? 0 : (JSON.parse(rows[0].text) as Turn).number);
    }
    return (_row, { data }) => {
      if ((data as { readonly amount: number }).amount < 0) throw new Error('Nothing is taken away.');
      const number = (remembered.get('last') as number) + 1;
      remembered.set('last', number);
      return { number };
    };
  },
};

describe('a fold of rows that depend on the rows before them', () => {
  let directory: string;
  let storage: LmdbStorage;
  let rows: FaultyRows;
  let table: LmdbTable<Turn>;
  let fold: ViewFold<Turn>;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fold-'));
    storage = await LmdbStorage.open({ directory });
    const readModels = new LmdbReadModels(storage);
    table = readModels.table(tableOf(turns));
    rows = new FaultyRows(readModels);
    fold = new ViewFold(turns, rows.table(tableOf(turns)));
    await fold.apply([event(1, 'a'), event(2, 'b')]);
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const inTurn = async (): Promise<readonly string[]> => (await table.page(ENVIRONMENT, { order: 'asc', limit: 10 })).rows.map(({ id, text }) => id + text);
  const turnsOf = (...ids: readonly string[]): readonly string[] => ids.map((id, index) => `${id}{"number":${index + 1}}`);

  it('goes on with what it remembers of the batch before, and reads no rows but those it touches', async () => {
    const before = table.rowsRead;
    await fold.apply([event(3, 'c')]);
    await fold.apply([event(4, 'd', 1, 'sum.removed')]);
    await fold.apply([event(5, 'e')]);
    expect(table.rowsRead - before).toBe(2);
    expect(await inTurn()).toEqual(turnsOf('a', 'b', 'c', 'e'));
  });

  it('remembers nothing of what was not stored', async () => {
    rows.isWritable = false;
    await expect(fold.apply([event(3, 'c'), event(4, 'd')])).rejects.toThrow('no room');
    rows.isWritable = true;
    await fold.apply([event(5, 'e', 1, 'sum.removed')]);
    await fold.apply([event(3, 'c'), event(4, 'd')]);
    expect(await inTurn()).toEqual(turnsOf('a', 'b', 'c', 'd'));
  });

  it('remembers nothing of a batch that it cannot fold', async () => {
    await expect(fold.apply([event(3, 'c'), event(4, 'd', -1)])).rejects.toThrow(Unfoldable);
    await fold.apply([event(5, 'e')]);
    expect(await inTurn()).toEqual(turnsOf('a', 'b', 'c', 'e'));
  });
});
