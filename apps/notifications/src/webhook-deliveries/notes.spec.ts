import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { ReadModels, type PageRequest, type Table, type TableDefinition } from '#libs/read-models/src/read-models';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { Notes } from './notes.ts';

/** Rows that note from where they are read. */
class NotedRows extends ReadModels {
  readonly begins: PageRequest['from'][] = [];

  constructor(private readonly rows: ReadModels) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    const table = this.rows.table(definition);
    const page: Table<Row>['page'] = (environment, request) => {
      this.begins.push(request.from);
      return table.page(environment, request);
    };
    return new Proxy(table, { get: (target, name) => (name === 'page' ? page : (Reflect.get(target, name) as unknown)) });
  }

  drop(table: string): Promise<void> {
    return this.rows.drop(table);
  }
}

describe('notes', () => {
  let directory: string;
  let storage: LmdbStorage;
  let clock: SettableClock;
  let rows: NotedRows;
  let notes: Notes<number>;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'notes-'));
    storage = await LmdbStorage.open({ directory });
    clock = new SettableClock(Date.now());
    rows = new NotedRows(new LmdbReadModels(storage));
    notes = new Notes('notes', rows, clock);
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  it('are each taken once, read on from where others were taken, and now and then from the front', async () => {
    const taken: number[] = [];
    for (let number = 0; number < 100; number++) {
      clock.forward(1_000);
      await notes.leave([number]);
      taken.push(...(await notes.take()).notes);
    }
    expect(taken).toEqual(Array.from({ length: 100 }, (_, number) => number));
    // 100 s: the front at first and after a minute, and about ten windows that follow the notes.
    expect(rows.begins.filter((begin) => begin === undefined).length).toBeLessThan(15);
    expect(new Set(rows.begins.slice(20, 60)).size).toBeGreaterThan(2);
    expect(new Set(rows.begins).size).toBeLessThan(15);
  });

  it('of a clock that is far behind are found within a minute', async () => {
    await notes.leave([1]);
    for (let second = 0; second < 30; second++) {
      clock.forward(1_000);
      await notes.take();
    }
    // As if a process whose clock is an hour behind had left it.
    await rows
      .table<number>({ name: 'notes', indexes: [], rebuildable: false })
      .write([{ environment: 'system', id: '0', position: '1', revision: 0, text: '2' }]);
    expect((await notes.take()).notes).toEqual([]);
    clock.forward(60_000);
    expect((await notes.take()).notes).toEqual([2]);
  });
});
