import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { START } from '#libs/event-sourcing/src/log/event-store';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { Fenced, type Table } from '#libs/read-models/src/read-models';
import { seedOf } from '#libs/testing/src/seed';
import { DueWork } from './due-work.ts';

const at = (place: number): string => String(place).padStart(16, '0');

/** A step of whoever holds the lease: it comes to a record of a stream, finishes what one has due, stores how far it is, or another takes over. */
type Step = readonly ['note' | 'done', stream: string] | readonly ['write' | 'takeover'];

describe('due work', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-due-work-'));
  let storage: LmdbStorage;
  let stored: Table<never>;
  let tables = 0;
  beforeAll(async () => {
    storage = await LmdbStorage.open({ directory });
  });
  beforeEach(() => {
    stored = new LmdbReadModels(storage).table({ name: `due_${(tables += 1)}`, indexes: [], rebuildable: false, isMadeAnew: true });
  });
  afterAll(async () => {
    await storage.close();
    rmSync(directory, { recursive: true });
  });

  /** Begins where the one before has stored that it was, as a leased follower does. */
  const begun = async (token: number, work = new DueWork<object>(stored)): Promise<DueWork<object>> => {
    await work.table.write([], await work.table.checkpoint(), token);
    work.begin();
    return work;
  };
  const note = (work: DueWork<object>, stream: string, place: number): object => {
    const item = { stream, place };
    work.note({ stream, position: at(place) }, () => item);
    return item;
  };
  const streamsOf = (work: DueWork<object>): readonly string[] => [...work.items()].map(([stream]) => stream);

  it('is stored as done up to where all of it is', async () => {
    const work = await begun(1);
    const [one, two] = [note(work, 'one', 3), note(work, 'two', 5)];
    await work.table.write([], at(9), 1);
    expect(await work.table.checkpoint()).toBe(START);
    work.done('one', one);
    await work.table.write([], at(9), 1);
    expect(await work.table.checkpoint()).toBe(at(3));
    work.done('two', two);
    await work.table.write([], at(9), 1);
    expect(await work.table.checkpoint()).toBe(at(9));
    note(work, 'three', 12);
    await work.table.write([], at(14), 1);
    expect(await work.table.checkpoint()).toBe(at(9));
  });

  it('keeps the place of the first record of a stream, and what came meanwhile', async () => {
    const work = await begun(1);
    const first = note(work, 'one', 3);
    work.note({ stream: 'one', position: at(5) }, (known) => known!);
    await work.table.write([], at(6), 1);
    expect(await work.table.checkpoint()).toBe(START);
    // While it was being done, something else came to be due.
    const second = note(work, 'one', 7);
    work.done('one', first);
    expect([...work.items()]).toEqual([['one', second]]);
    // Nothing is left of it.
    work.note({ stream: 'one', position: at(8) }, () => null);
    expect(work.size).toBe(0);
    await work.table.write([], at(8), 1);
    expect(await work.table.checkpoint()).toBe(at(8));
  });

  it('that is noted while the checkpoint is stored is not passed', async () => {
    const write = stored.write.bind(stored);
    let letThrough = (): void => {};
    const held = new Promise<void>((resolve) => (letThrough = resolve));
    stored.write = async (...given) => {
      await held;
      return write(...given);
    };
    const work = new DueWork<object>(stored);
    const storing = work.table.write([], at(4), 1);
    note(work, 'one', 5);
    letThrough();
    await storing;
    expect(await work.table.checkpoint()).toBe(at(4));
    await work.table.write([], at(9), 1);
    expect(await work.table.checkpoint()).toBe(at(4));
  });

  it('of a holder who was fenced counts for nothing: what it had is met by the next, and what it says is done is not stored', async () => {
    const first = await begun(1);
    const item = note(first, 'one', 3);
    const second = await begun(2);
    note(second, 'one', 3);
    first.done('one', item);
    await expect(first.table.write([], at(9), 1)).rejects.toBeInstanceOf(Fenced);
    expect(await second.table.checkpoint()).toBe(START);
    second.done('one', [...second.items()][0]![1]);
    note(second, 'two', 11);
    await second.table.write([], at(12), 2);
    expect(await second.table.checkpoint()).toBe(at(3));
    for (const [stream, due] of [...second.items()]) second.done(stream, due);
    await second.table.write([], at(12), 2);
    // It comes back: what it remembers was done by another since, and holds nothing up.
    note(first, 'old', 10);
    await begun(3, first);
    expect(streamsOf(first)).toEqual([]);
    expect(await first.table.checkpoint()).toBe(at(12));
  });

  it('is met again by whoever begins where one stored that it was, in any order of what two holders do', async () => {
    const stream = fc.constantFrom('a', 'b', 'c');
    const step = fc.oneof<fc.Arbitrary<Step>[]>(
      fc.tuple(fc.constant('note' as const), stream),
      fc.tuple(fc.constant('done' as const), stream),
      fc.constant(['write'] as const),
      fc.constant(['takeover'] as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        stored = new LmdbReadModels(storage).table({ name: `due_${(tables += 1)}`, indexes: [], rebuildable: false, isMadeAnew: true });
        const log: string[] = [];
        /** Places of records whose stream has something due because of them. */
        const open = new Map<string, number>();
        let [token, place] = [1, 0];
        const holders = [new DueWork<object>(stored), new DueWork<object>(stored)];
        let work = await begun(token, holders[0]);
        for (const [kind, name = ''] of steps) {
          if (kind === 'note') {
            log.push(name);
            place = log.length;
            if (!open.has(name)) open.set(name, place);
            note(work, name, place);
          } else if (kind === 'done') {
            for (const [known, item] of [...work.items()]) if (known === name) work.done(name, item);
            open.delete(name);
          } else if (kind === 'write') {
            await work.table.write([], place === 0 ? START : at(place), token);
          } else {
            token += 1;
            work = await begun(token, holders[token % 2]);
            const from = Number(await work.table.checkpoint());
            for (const [index, each] of log.entries()) if (index + 1 > from) note(work, each, index + 1);
            // What lies behind the checkpoint and was done is done again.
            for (const [known, item] of [...work.items()]) if (!open.has(known)) work.done(known, item);
            expect(new Set(streamsOf(work))).toEqual(new Set(open.keys()));
          }
          const reached = Number(await work.table.checkpoint());
          for (const first of open.values()) expect(first).toBeGreaterThan(reached);
        }
      }),
      { numRuns: 200, seed: seedOf('due work') },
    );
  });
});
