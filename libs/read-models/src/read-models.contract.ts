import {
  atTime,
  Fenced,
  LAST,
  MAX_ROW_BYTES,
  type PageRequest,
  type ReadModels,
  type RowPage,
  RowTooLarge,
  type Table,
  type TableDefinition,
  UnknownCursor,
  type Write,
} from './read-models.ts';

interface Person {
  readonly id: string;
  readonly name: string;
  readonly tags: readonly string[];
}

const byId: TableDefinition<Person> = {
  name: 'people',
  rebuildable: true,
  indexes: [
    { name: 'tag', keys: (row) => row.tags },
    { name: 'name', keys: (row) => [row.name] },
  ],
};
const byName: TableDefinition<Person> = { ...byId, name: 'people-by-name', sortKey: (row) => row.name };
const kept: TableDefinition<Person> = { ...byId, name: 'people-kept', rebuildable: false };
const withoutIndexes: TableDefinition<Person> = { ...byId, name: 'people-without-indexes', indexes: [] };

interface Opened {
  readonly readModels: ReadModels;
  /** Rows read from `table` since the last call. */
  rowsRead(table: Table<Person>): number;
  close(): Promise<void>;
}

/** Opens the read models of one place; opening again after `close` finds what was written. */
export type OpenReadModels = () => Promise<Opened>;

let clock = 0;
const nextPosition = (): string => String(++clock).padStart(16, '0');

function write(environment: string, row: Person, position = nextPosition()): Write {
  return { environment, id: row.id, position, revision: 1, text: JSON.stringify(row) };
}

function removal(environment: string, id: string, position = nextPosition()): Write {
  return { environment, id, position, revision: 2, text: null };
}

const person = (id: string, name = `name of ${id}`, ...tags: string[]): Person => ({ id, name, tags });
const numbered = (number: number): string => `person_${String(number).padStart(4, '0')}`;

export function readModelsContract(name: string, given: () => Promise<OpenReadModels>, steps = 600): void {
  describe(`read models in ${name}`, () => {
    let open: OpenReadModels;
    let opened: Opened;
    let table: Table<Person>;
    const ids = async (request: PageRequest, environment = 'one', from = table): Promise<string[]> =>
      (await from.page(environment, request)).rows.map(({ id }) => id);
    const reopen = async (definition: TableDefinition<Person> = byId): Promise<void> => {
      await opened.close();
      opened = await open();
      table = opened.readModels.table(definition);
    };

    beforeEach(async () => {
      open = await given();
      opened = await open();
      table = opened.readModels.table(byId);
    });
    afterEach(() => opened.close());

    it('holds rows up to a size, and refuses to write more', async () => {
      const sized = (id: string, bytes: number): Write => {
        const row = person(id, '');
        // Characters of two bytes, and one more.
        const left = bytes - Buffer.byteLength(JSON.stringify(row));
        return { ...write('one', row), text: JSON.stringify(row).replace('"name":""', `"name":"${'é'.repeat(left / 2)}${'x'.repeat(left % 2)}"`), row };
      };
      await table.write([sized('a', MAX_ROW_BYTES)], '1');
      await expect(table.write([write('one', person('b')), sized('c', MAX_ROW_BYTES + 1)], '2')).rejects.toMatchObject({ id: 'c' });
      await expect(table.write([sized('c', MAX_ROW_BYTES + 1)], '2')).rejects.toThrow(RowTooLarge);
      await reopen();
      expect(Buffer.byteLength((await table.get('one', 'a'))!.text)).toBe(MAX_ROW_BYTES);
      expect([await table.get('one', 'c'), await table.checkpoint()]).toEqual([null, '1']);
    });

    it('writes to several tables at once, and what one of them refuses stops no other', async () => {
      const tables = [byId, byName, kept].map((definition) => opened.readModels.table(definition)) as unknown as readonly Table<never>[];
      await tables[1]!.write([], '1', 5);
      const large = { ...write('one', person('c')), text: JSON.stringify({ ...person('c'), name: 'x'.repeat(MAX_ROW_BYTES) }) };
      const outcomes = await opened.readModels.writeAll([
        { table: tables[0]!, writes: [write('one', person('a'))], checkpoint: '2', fence: 3 },
        { table: tables[1]!, writes: [write('one', person('b'))], checkpoint: '2', fence: 4 },
        { table: tables[2]!, writes: [], checkpoint: '2' },
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect((outcomes[1] as PromiseRejectedResult).reason).toBeInstanceOf(Fenced);
      const [refused, stored] = await opened.readModels.writeAll([
        { table: tables[0]!, writes: [large], checkpoint: '3', fence: 3 },
        { table: tables[2]!, writes: [write('one', person('d'))], checkpoint: '3' },
      ]);
      expect([(refused as PromiseRejectedResult).reason, stored!.status]).toEqual([expect.any(RowTooLarge), 'fulfilled']);
      expect(await Promise.all(tables.map((one) => one.checkpoint()))).toEqual(['2', '1', '3']);
      expect([(await table.get('one', 'a'))?.id, await table.get('one', 'c'), (await tables[2]!.get('one', 'd'))?.id]).toEqual(['a', null, 'd']);
      expect(await opened.readModels.writeAll([])).toEqual([]);
    });

    it('gives back exactly the text that was written', async () => {
      const text = '{"id":"a",  "name":"Zoë 日本 \\u0000 😀","tags":[]}';
      await table.write([{ environment: 'one', id: 'a', position: '5', revision: 7, text }]);
      expect(await table.get('one', 'a')).toEqual({ id: 'a', text, position: '5', revision: 7 });
      await reopen();
      expect(await table.get('one', 'a')).toEqual({ id: 'a', text, position: '5', revision: 7 });
      expect(await table.get('one', 'b')).toBeNull();
    });

    it('finds a row by its id, and the last one under an index, as whoever reads them does', async () => {
      const one = { environment: 'one', deadline: Date.now() + 1_000 };
      await table.write([write('one', person('a', 'Ann', 'tall')), write('one', person('b', 'Bob', 'tall')), write('two', person('c', 'Cleo', 'tall'))]);
      expect(await table.find(one, 'a')).toEqual(await table.get('one', 'a'));
      expect(await table.find(one, 'c')).toBeNull();
      expect((await table.findBy(one, { index: 'tag', values: ['tall'] }))?.id).toBe('b');
      expect(await table.findBy(one, { index: 'tag', values: ['small'] })).toBeNull();
      expect(await table.findBy(one, { index: 'tag', values: [] })).toBeNull();
    });

    it('knows which ids it has held in an environment', async () => {
      await table.write([write('one', person('a')), write('one', person('b'))]);
      await table.write([removal('one', 'b')]);
      const held = async (environment: string) => Promise.all(['a', 'b', 'c'].map((id) => table.hasHeld(environment, id)));
      expect([await held('one'), await held('two')]).toEqual([
        [true, true, false],
        [false, false, false],
      ]);
    });

    it('gives several rows in the order asked for', async () => {
      await table.write([write('one', person('a')), write('one', person('b'))]);
      expect((await table.getMany('one', ['b', 'x', 'a'])).map((row) => row?.id)).toEqual(['b', undefined, 'a']);
    });

    it('says which ids are there, and which an index finds, without their rows', async () => {
      await table.write(['a', 'b', 'c', 'd'].map((id) => write('one', person(id, id, 'tall'))));
      await table.write([write('two', person('e', 'e', 'tall')), write('one', person('b', 'b', 'small')), removal('one', 'c'), write('one', person('f'))]);
      const look = async (): Promise<void> => {
        expect([...(await table.presentAmong('one', ['f', 'c', 'x', 'a', 'e']))].sort()).toEqual(['a', 'f']);
        const where = { index: 'tag', values: ['tall', 'small'] };
        const first = await table.idPage('one', { where, limit: 2 });
        expect(first).toEqual({ ids: ['a', 'b'], hasAfter: true });
        expect(await table.idPage('one', { where, limit: 2, after: 'b' })).toEqual({ ids: ['d'], hasAfter: false });
        // Whoever left the list is a cursor all the same.
        expect(await table.idPage('one', { where, limit: 2, after: 'c' })).toEqual({ ids: ['d'], hasAfter: false });
        expect(await table.idPage('one', { where: { index: 'tag', values: ['tall'] }, limit: 2 })).toEqual({ ids: ['a', 'd'], hasAfter: false });
        await expect(table.idPage('one', { where, limit: 2, after: 'e' })).rejects.toThrow(UnknownCursor);
      };
      await look();
      await reopen();
      await look();
    });

    it('gives rows that are asked for at once, each as it was when it was asked for or later', async () => {
      await table.write([write('one', person('a', 'Ann')), write('two', person('a', 'Bob')), write('one', person('b'))]);
      const asked = [table.get('one', 'a'), table.get('two', 'a'), table.get('two', 'b'), table.get('one', 'a')];
      expect((await Promise.all(asked)).map((row) => row && (JSON.parse(row.text) as Person).name)).toEqual(['Ann', 'Bob', null, 'Ann']);
      for (let round = 0; round < 20; round++) {
        const early = table.get('one', 'b');
        await table.write([write('one', person('b', `name ${round}`))]);
        expect((await table.get('one', 'b'))!.text).toContain(`name ${round}"`);
        await early;
      }
    });

    it('keeps environments apart', async () => {
      await table.write([write('one', person('a', 'Ann', 'x')), write('two', person('b', 'Bob', 'x'))]);
      expect(await table.get('two', 'a')).toBeNull();
      expect(await ids({ order: 'asc', limit: 10 }, 'two')).toEqual(['b']);
      expect(await ids({ order: 'asc', limit: 10, where: { index: 'tag', values: ['x'] } })).toEqual(['a']);
      await expect(table.page('two', { order: 'asc', limit: 10, after: 'a' })).rejects.toThrow(UnknownCursor);
    });

    it('ignores a write that is not later than the stored one', async () => {
      await table.write([write('one', person('a', 'new'), '0000000000000009')]);
      await table.write([write('one', person('a', 'old'), '0000000000000008'), write('one', person('a', 'same'), '0000000000000009')]);
      await reopen();
      await table.write([write('one', person('a', 'old'), '0000000000000008')]);
      expect((await table.get('one', 'a'))!.text).toContain('new');
    });

    it.each([
      ['position', [nextPosition(), nextPosition(), nextPosition()]],
      [
        'time',
        [atTime(Date.parse('1970-01-01T00:00:00.009Z')), atTime(Date.parse('2001-09-09T01:46:40.000Z')), atTime(Date.parse('2286-11-20T17:46:40.000Z'))],
      ],
    ] as const)('under a %s as its guard keeps the latest write whatever the order, and what is last for ever', async (guard, [early, middle, late]) => {
      for (const [number, definition] of [byId, byName, withoutIndexes].entries()) {
        const guarded = { ...definition, name: `guarded-${guard}-${number}`, guard };
        table = opened.readModels.table(guarded);
        const textAt = async (id: string): Promise<string | null> => (await table.get('one', id))?.text.match(/"tags":\["(.*)"\]/)?.[1] ?? null;
        const at = (id: string, position: string, tag: string): Write => write('one', person(id, 'x', tag), position);
        await table.write([at('a', middle, 'middle'), at('b', middle, 'middle'), at('c', LAST, 'last')]);
        await table.write([removal('one', 'b', LAST), at('a', early, 'early')]);
        expect([await textAt('a'), await textAt('b')]).toEqual(['middle', null]);
        for (const again of [false, true]) {
          if (again) await reopen(guarded);
          await table.write([at('a', late, 'late'), at('a', middle, 'same'), at('b', late, 'late'), at('c', late, 'late')]);
          expect([await textAt('a'), await textAt('b'), await textAt('c')]).toEqual(['late', null, 'last']);
          expect(await ids({ order: 'asc', limit: 9 })).toEqual(['a', 'c']);
        }
      }
    });

    it('without a guard replaces what is there with each write, a tombstone too', async () => {
      for (const [number, definition] of [byId, byName].entries()) {
        const unguarded: TableDefinition<Person> = { ...definition, name: `unguarded-${number}`, guard: 'none', rebuildable: false };
        table = opened.readModels.table(unguarded);
        for (const position of ['', '', '9', '1', '']) {
          const tag = `tag of ${position}`;
          await table.write([write('one', person('a', 'x', tag), position), write('one', person('b', 'x', tag), position)]);
          expect((await table.get('one', 'a'))!.text).toContain(tag);
          expect(await ids({ order: 'asc', limit: 9, where: { index: 'tag', values: [tag] } })).toEqual(['a', 'b']);
          await table.write([removal('one', 'b', '')]);
          expect([await table.get('one', 'b'), await ids({ order: 'asc', limit: 9 })]).toEqual([null, ['a']]);
          await reopen(unguarded);
        }
      }
    });

    it('keeps a deleted row deleted when a late write comes, and its id a valid cursor', async () => {
      await table.write(['a', 'b', 'c'].map((id) => write('one', person(id, 'x', 'tag'))));
      const late = nextPosition();
      await table.write([removal('one', 'b')]);
      for (const again of [false, true]) {
        if (again) await reopen();
        await table.write([write('one', person('b', 'late', 'tag'), late)]);
        expect(await table.get('one', 'b')).toBeNull();
        expect(await ids({ order: 'asc', limit: 10 })).toEqual(['a', 'c']);
        expect(await ids({ order: 'asc', limit: 10, after: 'b' })).toEqual(['c']);
        expect(await ids({ order: 'asc', limit: 10, before: 'b', where: { index: 'tag', values: ['tag'] } })).toEqual(['a']);
      }
    });

    it('rewrites rows wherever they are in the log, and no write of before brings back what they said', async () => {
      for (const definition of [byId, byName]) {
        table = opened.readModels.table({ ...definition, name: `${definition.name}-rewritten` });
        const positions = Array.from({ length: 4 }, nextPosition) as [string, string, string, string];
        const [before, at, behind, last] = positions;
        const told = (id: string, position: string): Write => write('one', person(id, 'x', 'told'), position);
        await table.write([told('a', before), told('b', behind), told('d', before), told('e', before), write('two', person('a', 'x', 'told'), before)]);
        await table.write([removal('one', 'd', behind)]);
        const silent = ({ text }: { readonly text: string }): string => text.replace('told', 'silent');
        await table.rewrite('one', { where: { index: 'tag', values: ['told'] } }, at, silent);
        await table.rewrite('one', { ids: ['a', 'd', 'none'] }, at, silent);
        for (const again of [false, true]) {
          if (again) await reopen({ ...definition, name: `${definition.name}-rewritten` });
          // Those that were on their way, of the position of the row among them.
          await table.write([told('a', before), told('a', at), told('b', behind), told('d', before)]);
          expect(await ids({ where: { index: 'tag', values: ['silent'] }, order: 'asc', limit: 9 })).toEqual(['a', 'b', 'e']);
          expect(await ids({ where: { index: 'tag', values: ['told'] }, order: 'asc', limit: 9 })).toEqual([]);
          expect((await table.getMany('one', ['a', 'b', 'e'])).map((row) => [row!.position, row!.revision])).toEqual([
            [at, 1],
            [behind, 1],
            [at, 1],
          ]);
          expect(await ids({ where: { index: 'tag', values: ['told'] }, order: 'asc', limit: 9 }, 'two')).toEqual(['a']);
        }
        await table.write([told('a', last)]);
        expect((await table.get('one', 'a'))!.text).toContain('told');
      }
    });

    it('rewrites only what is still as it was seen, and all that is written meanwhile', async () => {
      await table.write([write('one', person('a', 'x', '1'))]);
      const seen = (await table.get('one', 'a'))!;
      const newer = write('one', person('a', 'x', '2'));
      await table.write([newer]);
      expect(await table.replace('one', seen, JSON.stringify(person('a', 'x', 'lost')), nextPosition())).toBe(false);
      let changes = 0;
      const racing = Promise.all(Array.from({ length: 5 }, (_, number) => table.write([write('one', person('a', 'x', `3.${number}`))])));
      await table.rewrite('one', { ids: ['a'] }, nextPosition(), ({ text }) => {
        changes += 1;
        return text.replace(/"tags":\[.*\]/, '"tags":["silent"]');
      });
      await racing;
      expect(changes).toBeGreaterThan(0);
      expect((await table.get('one', 'a'))!.text).toMatch(/silent/);
    });

    it('stores a row again that was deleted, when the write is later', async () => {
      await table.write([write('one', person('a', 'first', 'old'))]);
      await table.write([removal('one', 'a')]);
      await reopen();
      await table.write([write('one', person('a', 'second', 'new'))]);
      await reopen();
      expect(await ids({ order: 'asc', limit: 10, where: { index: 'tag', values: ['new'] } })).toEqual(['a']);
      expect(await ids({ order: 'asc', limit: 10, where: { index: 'tag', values: ['old'] } })).toEqual([]);
    });

    it('finds rows by their index keys as they are now', async () => {
      await table.write([write('one', person('a', 'Ann', 'x', 'y', 'x')), write('one', person('b', 'Bob', 'y'))]);
      await reopen();
      await table.write([write('one', person('a', 'Ann', 'z'))]);
      const under = (...values: string[]): Promise<string[]> => ids({ order: 'asc', limit: 10, where: { index: 'tag', values } });
      for (const again of [false, true]) {
        if (again) await reopen();
        expect([await under('x'), await under('y'), await under('z'), await under('y', 'z', 'y', 'none'), await under()]).toEqual([
          [],
          ['b'],
          ['a'],
          ['a', 'b'],
          [],
        ]);
      }
    });

    it('takes any text as an index value', async () => {
      const values = ['', '\0', 'a\0b', '\x01', '\x03', '\x03\x04', 'ß', '日本', '😀', 'x'.repeat(5_000), `${'x'.repeat(4_999)}y`];
      await table.write(values.map((value, index) => write('one', person(numbered(index), 'x', value))));
      for (const again of [false, true]) {
        if (again) await reopen();
        for (const [index, value] of values.entries())
          expect(await ids({ order: 'asc', limit: 10, where: { index: 'tag', values: [value] } })).toEqual([numbered(index)]);
      }
    });

    it('orders by the sort key where one is declared, then by id', async () => {
      const sorted = opened.readModels.table(byName);
      await sorted.write([
        write('one', person('c', 'Ann', 'x')),
        write('one', person('b', 'Bob', 'x')),
        write('one', person('a', 'Bob')),
        write('one', person('d', 'Änne', 'x')),
      ]);
      for (const again of [false, true]) {
        if (again) await reopen(byName);
        const current = opened.readModels.table(byName);
        expect(await ids({ order: 'asc', limit: 10 }, 'one', current)).toEqual(['c', 'a', 'b', 'd']);
        expect(await ids({ order: 'desc', limit: 2, after: 'd' }, 'one', current)).toEqual(['b', 'a']);
        expect(await ids({ order: 'asc', limit: 10, from: 'Bob', to: 'Bob' }, 'one', current)).toEqual(['a', 'b']);
        expect(await ids({ order: 'asc', limit: 10, after: 'c', where: { index: 'tag', values: ['x'] } }, 'one', current)).toEqual(['b', 'd']);
      }
    });

    it('says whether rows lie before and behind a page', async () => {
      await table.write([1, 2, 3].map((number) => write('one', person(numbered(number)))));
      const sides = async (request: PageRequest): Promise<unknown> => {
        const { rows, hasBefore, hasAfter } = await table.page('one', request);
        return [rows.length, hasBefore, hasAfter];
      };
      expect(await sides({ order: 'asc', limit: 2 })).toEqual([2, false, true]);
      expect(await sides({ order: 'asc', limit: 3 })).toEqual([3, false, false]);
      expect(await sides({ order: 'asc', limit: 1, after: numbered(1) })).toEqual([1, true, true]);
      expect(await sides({ order: 'desc', limit: 1, after: numbered(2) })).toEqual([1, true, false]);
      expect(await sides({ order: 'desc', limit: 1, before: numbered(1) })).toEqual([1, true, true]);
      expect(await sides({ order: 'asc', limit: 9, after: numbered(3) })).toEqual([0, true, false]);
    });

    it('refuses a cursor that it never held', async () => {
      await table.write([write('one', person('a')), write('one', person('b'))]);
      await table.purge('one', ['b']);
      for (const cursor of ['never', 'b', '']) {
        await expect(table.page('one', { order: 'asc', limit: 1, after: cursor })).rejects.toMatchObject({ parameter: 'after' });
        await expect(table.page('one', { order: 'asc', limit: 1, before: cursor })).rejects.toMatchObject({ parameter: 'before' });
      }
    });

    it.each([byId, withoutIndexes])('leaves nothing of purged rows', async (definition) => {
      table = opened.readModels.table(definition);
      await table.write([write('one', person('a', 'x', 'tag')), write('one', person('b', 'x', 'tag')), write('one', person('c'))]);
      await table.write([removal('one', 'c')]);
      await reopen(definition);
      await table.purge('one', ['a', 'c', 'never']);
      for (const again of [false, true]) {
        if (again) await reopen(definition);
        const where = definition === byId ? { index: 'tag', values: ['tag'] } : undefined;
        expect(await ids({ order: 'asc', limit: 9, ...(where && { where }) })).toEqual(['b']);
      }
      const dumped = [];
      for await (const row of table.dump()) dumped.push(row.id);
      expect(dumped).toEqual(['b']);
      await table.write([write('one', person('a', 'again'), '0000000000000000')]);
      expect(await table.get('one', 'a')).not.toBeNull();
    });

    it('keeps a checkpoint with the rows, and forgets both', async () => {
      expect(await table.checkpoint()).toBe('');
      await table.write([write('one', person('a'))], '0000000000000042');
      await table.write([], '0000000000000043');
      expect(await table.checkpoint()).toBe('0000000000000043');
      await reopen();
      expect(await table.checkpoint()).toBe('0000000000000043');
      await table.clear();
      expect([await table.checkpoint(), await table.get('one', 'a'), await ids({ order: 'asc', limit: 1 })]).toEqual(['', null, []]);
      await table.write([write('one', person('a', 'again'), '0000000000000001')]);
      await reopen();
      expect([await table.checkpoint(), await ids({ order: 'asc', limit: 1 })]).toEqual(['', ['a']]);
    });

    it('keeps the record that was seen at a checkpoint, for as long as that is the checkpoint', async () => {
      const [first, second] = [
        { position: '0000000000000042', record: 'first' },
        { position: '0000000000000043', record: 'second' },
      ] as const;
      const seen = (): Promise<readonly (string | null)[]> =>
        Promise.all([table.checkpoint(), table.recordAt(first.position), table.recordAt(second.position)]);
      expect([await table.recordAt(''), await seen()]).toEqual([null, ['', null, null]]);
      await table.write([write('one', person('a'))], first, 7);
      expect(await seen()).toEqual([first.position, 'first', null]);
      const [outcome] = await opened.readModels.writeAll([{ table, writes: [], checkpoint: second, fence: 7 }]);
      expect(outcome).toMatchObject({ status: 'fulfilled' });
      await reopen();
      expect(await seen()).toEqual([second.position, null, 'second']);
      await table.write([], second.position, 7);
      expect(await seen()).toEqual([second.position, null, null]);
      await table.write([], first);
      await table.clear(8);
      expect(await seen()).toEqual(['', null, null]);
      await table.write([], first.position, 8);
      expect(await seen()).toEqual([first.position, null, null]);
    });

    it('keeps a checkpoint from whoever lost the lease under which it would be stored', async () => {
      await table.write([write('one', person('a'))], '0000000000000042', 7);
      await table.write([write('one', person('b'))], '0000000000000043', 7);
      await table.write([], '0000000000000044', 9);
      await expect(table.write([write('one', person('c'))], '0000000000000045', 8)).rejects.toThrow(Fenced);
      await expect(table.write([], '0000000000000001', 7)).rejects.toThrow(Fenced);
      expect(await table.checkpoint()).toBe('0000000000000044');
      // Whoever holds the lease may go back, to fill the table anew.
      await table.write([], '0000000000000040', 9);
      expect(await table.checkpoint()).toBe('0000000000000040');
    });

    it('knows the latest lease after it was opened again, and after everything was forgotten', async () => {
      await table.write([], '0000000000000042', 7);
      await reopen();
      await expect(table.write([], '0000000000000043', 6)).rejects.toThrow(Fenced);
      await table.write([], '0000000000000044');
      await expect(table.write([], '0000000000000045', 6)).rejects.toThrow(Fenced);
      await table.clear();
      await expect(table.write([], '0000000000000046', 6)).rejects.toThrow(Fenced);
      expect(await table.checkpoint()).toBe('');
      await table.write([], '0000000000000047', 7);
      expect(await table.checkpoint()).toBe('0000000000000047');
    });

    it('forgets nothing for whoever lost the lease, and fences who was there before it forgot', async () => {
      await table.write([write('one', person('a'))], '0000000000000042', 7);
      await expect(table.clear(6)).rejects.toThrow(Fenced);
      expect([(await table.get('one', 'a'))?.id, await table.checkpoint()]).toEqual(['a', '0000000000000042']);
      await table.clear(8);
      expect([await table.get('one', 'a'), await table.checkpoint()]).toEqual([null, '']);
      await expect(table.write([], '0000000000000042', 7)).rejects.toThrow(Fenced);
      await reopen();
      await expect(table.clear(7)).rejects.toThrow(Fenced);
      await table.write([], '0000000000000001', 8);
      expect(await table.checkpoint()).toBe('0000000000000001');
    });

    it('keeps the rows of tables that no rebuild gives back', async () => {
      const delivered = opened.readModels.table(kept);
      await delivered.write([write('one', person('a', 'x', 'tag'))]);
      await reopen(kept);
      expect(await ids({ order: 'asc', limit: 1, where: { index: 'tag', values: ['tag'] } })).toEqual(['a']);
    });

    it('drops a table, and none whose name begins with its own', async () => {
      const [old, current] = ['people@1', 'people@10'].map((name) => opened.readModels.table({ ...byId, name }));
      await old!.write([write('one', person('a'))], '0000000000000007');
      await current!.write([write('one', person('b'))], '0000000000000008');
      await reopen();
      await opened.readModels.drop('people@1');
      await opened.readModels.drop('never');
      await reopen();
      const [again, other] = ['people@1', 'people@10'].map((name) => opened.readModels.table({ ...byId, name }));
      expect([await again!.checkpoint(), await again!.get('one', 'a')]).toEqual(['', null]);
      expect([await other!.checkpoint(), (await other!.get('one', 'b'))?.id]).toEqual(['0000000000000008', 'b']);
    });

    it('begins anew under the name of a table that was dropped while it was open', async () => {
      const definition = { ...byId, name: 'people@3' };
      await opened.readModels.table(definition).write([write('one', person('a'))], '0000000000000007');
      await opened.readModels.drop('people@3');
      const again = opened.readModels.table(definition);
      await again.write([write('one', person('b'))], '0000000000000001');
      expect([await again.get('one', 'a'), (await again.get('one', 'b'))?.id, await again.checkpoint()]).toEqual([null, 'b', '0000000000000001']);
      await reopen();
      expect((await opened.readModels.table(definition).get('one', 'b'))?.id).toBe('b');
    });

    it('dumps every row and tombstone in one order, whatever the order of the writes', async () => {
      const dump = async (): Promise<unknown[]> => {
        const rows = [];
        for await (const { environment, id, position, text } of table.dump()) rows.push([environment, id, position, text !== null]);
        return rows;
      };
      await table.write([
        write('two', person('b'), '0000000000000004'),
        write('one', person('c'), '0000000000000003'),
        write('one', person('a'), '0000000000000001'),
        removal('one', 'b', '0000000000000002'),
      ]);
      const expected = [
        ['one', 'a', '0000000000000001', true],
        ['one', 'b', '0000000000000002', false],
        ['one', 'c', '0000000000000003', true],
        ['two', 'b', '0000000000000004', true],
      ];
      expect(await dump()).toEqual(expected);
      await reopen();
      expect(await dump()).toEqual(expected);
    });

    it('reads hardly more rows than it answers', async () => {
      const rows = Array.from({ length: 3_000 }, (_, number) =>
        write('one', person(numbered(number), 'x', number % 3 === 0 ? 'third' : 'rest', number === 1_500 ? 'one' : 'many')),
      );
      await table.write(rows);
      for (const id of ['person_0000', 'person_1000']) await table.write([removal('one', id)]);
      await reopen();
      const requests: PageRequest[] = [
        { order: 'desc', limit: 100 },
        { order: 'asc', limit: 100, after: 'person_0999' },
        { order: 'desc', limit: 10, before: 'person_0500', where: { index: 'tag', values: ['third'] } },
        { order: 'desc', limit: 100, where: { index: 'tag', values: ['third', 'one', 'none', 'many'] } },
      ];
      for (const request of requests) {
        opened.rowsRead(table);
        expect(await ids(request)).toHaveLength(request.limit);
        expect(opened.rowsRead(table)).toBeLessThanOrEqual(2 * request.limit + 100);
      }
    });

    it.each([byId, byName])('merges what hundreds of values find into pages in one order, each row once', async (definition) => {
      table = opened.readModels.table(definition);
      const names = ['a', 'b', 'z', 'é', '日'];
      const random = seeded(20_261_122);
      const alive = Array.from({ length: 400 }, (_, number) =>
        person(`${names[number % names.length]!}${numbered(number)}`, names[(number * 7) % 5], ...tagsOf(random)),
      );
      await table.write(alive.map((row) => write('one', row)));
      await reopen(definition);
      const place = ({ id, name }: Person): Buffer => Buffer.from(definition.sortKey ? `${name}\0${id}` : id);
      for (const count of [200, 201, 420]) {
        const values = Array.from({ length: count }, (_, number) => `tag${number % 410}`);
        const expected = alive
          .filter(({ tags }) => tags.some((tag) => values.includes(tag)))
          .sort((one, other) => Buffer.compare(place(one), place(other)))
          .map(({ id }) => id);
        const where = { index: 'tag', values };
        for (const order of ['asc', 'desc'] as const) {
          const inOrder = order === 'asc' ? expected : [...expected].reverse();
          const found: string[] = [];
          for (let page: RowPage | null = null; page?.hasAfter !== false; found.push(...page.rows.map(({ id }) => id))) {
            page = await table.page('one', { where, order, limit: 97, ...(found.length > 0 && { after: found.at(-1)! }) });
            expect([page.rows.length <= 97, page.hasBefore]).toEqual([true, found.length > 0]);
          }
          expect(found).toEqual(inOrder);
          const middle = inOrder[Math.floor(inOrder.length / 2)]!;
          const { rows, hasBefore, hasAfter } = await table.page('one', { where, order, limit: 50, before: middle });
          expect([rows.map(({ id }) => id), hasBefore, hasAfter]).toEqual([inOrder.slice(inOrder.indexOf(middle) - 50, inOrder.indexOf(middle)), true, true]);
          expect((await table.page('one', { where, order, limit: 5, after: inOrder.at(-1)! })).rows).toEqual([]);
        }
      }
      opened.rowsRead(table);
      await table.page('one', { where: { index: 'tag', values: Array.from({ length: 410 }, (_, number) => `tag${number}`) }, order: 'asc', limit: 100 });
      expect(opened.rowsRead(table)).toBeLessThanOrEqual(3 * (2 * 100 + 100));
    });

    it('answers like a list that is sorted and filtered, whatever is written', async () => {
      for (const definition of [byId, byName, withoutIndexes]) {
        table = opened.readModels.table(definition);
        const alive = new Map<string, Person>();
        const held = new Set<string>();
        const random = seeded(20_261_121);
        for (let step = 0; step < steps; step++) {
          const id = numbered(random(120));
          if (random(5) === 0 && held.has(id)) {
            await table.write([removal('one', id)]);
            alive.delete(id);
          } else {
            // The sort key of a row never changes.
            const row = person(id, `name ${Number(id.slice(-4)) % 7}`, ...Array.from({ length: random(4) }, () => `tag${random(6)}`));
            await table.write([write('one', row)]);
            alive.set(id, row);
          }
          held.add(id);
          if (step % 100 === 99) await reopen(definition);
          else if (step % 7 === 0) await new Promise((resolve) => setTimeout(resolve, random(40)));
          const values = definition === withoutIndexes || random(2) === 0 ? undefined : Array.from({ length: 1 + random(3) }, () => `tag${random(6)}`);
          const order = random(2) === 0 ? ('asc' as const) : ('desc' as const);
          const cursor = [...held][random(held.size)]!;
          const limit = 1 + random(30);
          const place = [{}, { after: cursor }, { before: cursor }][random(3)]!;
          const request: PageRequest = { order, limit, ...place, ...(values && { where: { index: 'tag', values } }) };
          const { rows, hasBefore, hasAfter } = await table.page('one', request);
          expect({ ids: rows.map((row) => row.id), hasBefore, hasAfter }).toEqual(expectedPage(definition, [...alive.values()], request));
        }
      }
      // Thousands of round trips, where there are any.
    }, 90_000);
  });
}

/** A few of 410 tags, some of which are in different parts of a list of hundreds. */
function tagsOf(random: (below: number) => number): readonly string[] {
  return Array.from({ length: 1 + random(3) }, () => `tag${random(410)}`);
}

/** What a page must be, worked out on a plain list. */
function expectedPage(definition: TableDefinition<Person>, rows: readonly Person[], { where, order, limit, after, before }: PageRequest): unknown {
  const place = (id: string): string => (definition.sortKey ? `name ${Number(id.slice(-4)) % 7} ${id}` : id);
  const matching = rows
    .filter(({ tags }) => !where || tags.some((tag) => where.values.includes(tag)))
    .map(({ id }) => id)
    .sort((one, other) => (place(one) < place(other) === (order === 'asc') ? -1 : 1));
  const precedes = (one: string, other: string): boolean => place(one) < place(other) === (order === 'asc') && one !== other;
  const start =
    after !== undefined
      ? matching.filter((id) => !precedes(after, id)).length
      : before !== undefined
        ? Math.max(0, matching.filter((id) => precedes(id, before)).length - limit)
        : 0;
  const end = before !== undefined ? matching.filter((id) => precedes(id, before)).length : start + limit;
  const page = matching.slice(start, end);
  return { ids: page, hasBefore: start > 0, hasAfter: end < matching.length };
}

/** A small generator, so that a failure can be repeated. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fff_ffff;
    return Math.floor((state / 0x8000_0000) * below);
  };
}
