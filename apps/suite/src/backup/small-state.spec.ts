import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { SystemClock } from '#libs/platform/src/clock';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { ListedReadModels } from '#libs/read-models/src/listed.read-models';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import type { Table, TableDefinition, Write } from '#libs/read-models/src/read-models';
import { RestoreMark } from '#libs/runtime/src/restore-mark';
import { expectCheckpoints, expectNoState, putSmallState, smallState, summaryOf, unknownTables, type SmallStateStores } from './small-state.ts';

const root = mkdtempSync(join(tmpdir(), 'gatehouse-small-state-'));
const opened: LmdbStorage[] = [];
afterAll(async () => {
  for (const storage of opened) await storage.close();
  rmSync(root, { recursive: true });
});

type Definition = TableDefinition<never>;
const kept = (name: string): Definition => ({ name, indexes: [], rebuildable: false });
const [deliveries, replays] = [kept('deliveries'), kept('replays')];
const madeAnew: Definition = { ...kept('queue'), isMadeAnew: true };
const view: Definition = { ...kept('users'), rebuildable: true };
const later = Date.now() + 3_600_000;

async function givenStores(definitions: readonly Definition[]): Promise<SmallStateStores & { table(definition: Definition): Table<never> }> {
  const storage = await LmdbStorage.open({ directory: join(root, String(opened.length)), minFree: 0 });
  opened.push(storage);
  const readModels = new ListedReadModels(new LmdbReadModels(storage));
  for (const definition of definitions) readModels.table(definition);
  return {
    tables: readModels.tables,
    shortLived: new LmdbShortLived(storage, new SystemClock()),
    events: new LmdbEventStore(storage),
    log: { installation: 'gatehouse', id: 'log_1' },
    table: (definition) => readModels.table(definition),
  };
}

const row = (id: string, text: string | null = `{"id":"${id}"}`, position = '0001'): Write => ({ environment: 'one', id, position, revision: 3, text });

/** `meanwhile` happens when it was read how far everybody is. */
async function linesOf(stores: SmallStateStores, meanwhile: () => Promise<void> = async () => {}): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of smallState(stores)) {
    lines.push(line);
    if (line.includes('"checkpoint"')) await meanwhile();
  }
  return lines;
}

async function* of(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

describe('the small state', () => {
  const all = [deliveries, madeAnew, replays, view];

  it('is how far everybody is, and then what came of it: what was handed on meanwhile is in it, and what was done meanwhile is not taken for done', async () => {
    const stores = await givenStores(all);
    await stores.table(deliveries).write([row('a')], '0005');
    await stores.table(replays).write([row('r', '{"slices":1}', '0001')]);
    const lines = await linesOf(stores, async () => {
      await stores.table(deliveries).write([row('b')], '0009');
    });
    expect(lines.map((line) => Object.keys(JSON.parse(line) as object)[0])).toEqual(['log', 'checkpoint', 'row', 'row', 'row', 'end']);
    expect(JSON.parse(lines[1]!)).toEqual({ checkpoint: '0005', table: 'deliveries' });
    // Replays were opened after the deliveries that they make.
    expect(lines.slice(2, 5).map((line) => (JSON.parse(line) as { row: { id: string } }).row.id)).toEqual(['r', 'a', 'b']);
  });

  it('is nothing that the log can refill, that follows from the rest, or that is over', async () => {
    const stores = await givenStores(all);
    for (const definition of [view, madeAnew]) await stores.table(definition).write([row('secret')], '0001');
    await stores.shortLived.put('codes', 'over', 'secret', Date.now() - 1);
    await new RestoreMark(stores.shortLived).set('secret');
    await stores.shortLived.lease('secret', 'secret', 60_000);
    expect((await linesOf(stores)).join()).not.toContain('secret');
  });

  it('is put back as it was, twice as once, where nothing is, and only there', async () => {
    const before = await givenStores(all);
    const many = Array.from({ length: 1_200 }, (_, number) => row(`d${String(number).padStart(4, '0')}`));
    await before.table(deliveries).write([...many, row('gone', null)], '0007');
    await before.table(replays).write([row('r')], '0003');
    for (let number = 0; number < 250; number++) await before.shortLived.put('codes', String(number), `value ${number}`, later);
    const lines = await linesOf(before);
    const summary = await summaryOf(of(lines));
    expect(summary).toMatchObject({ log: { id: 'log_1' }, end: '' });

    const after = await givenStores(all);
    await expectNoState(after);
    for (let times = 0; times < 2; times++) await putSmallState(of(lines), summary, after);
    await expectCheckpoints(summary, after);
    // A deleted row keeps no revision here.
    expect(await linesOf(after)).toEqual(lines);
    await expect(expectNoState(after)).rejects.toThrow('The database of MONGODB_URL is not empty, the table deliveries has something');
    await after.table(replays).write([], '0004');
    await expect(expectCheckpoints(summary, after)).rejects.toThrow('are at work on the database');
  });

  it.each([
    ['a row of a view', (stores: Awaited<ReturnType<typeof givenStores>>) => stores.table(view).write([row('a')]), 'the table users'],
    ['a checkpoint', (stores: Awaited<ReturnType<typeof givenStores>>) => stores.table(replays).write([], '0001'), 'the table replays'],
    ['an entry', (stores: Awaited<ReturnType<typeof givenStores>>) => stores.shortLived.put('codes', 'a', 'x', later), 'the short-lived collection codes'],
  ])('is put back into no database that has %s', async (_what, leave, named) => {
    const stores = await givenStores(all);
    await leave(stores);
    await expect(expectNoState(stores)).rejects.toThrow(`${named} has something`);
  });

  it('of another release is put back without the tables that this one does not know, by name', async () => {
    const before = await givenStores(all);
    for (const definition of [deliveries, replays]) await before.table(definition).write([row('a')], '0002');
    const lines = await linesOf(before);
    const [summary, after] = [await summaryOf(of(lines)), await givenStores([deliveries])];
    expect(unknownTables(summary, after)).toEqual(['replays']);
    await putSmallState(of(lines), summary, after);
    expect((await after.table(deliveries).get('one', 'a'))?.text).toBe('{"id":"a"}');
  });

  it('without its end is none', async () => {
    const lines = await linesOf(await givenStores(all));
    await expect(summaryOf(of(lines.slice(0, -1)))).rejects.toThrow('is not what was written');
    await expect(summaryOf(of(lines.slice(1)))).rejects.toThrow('is not what was written');
  });
});
