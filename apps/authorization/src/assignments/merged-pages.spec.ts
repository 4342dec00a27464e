import fc from 'fast-check';
import { UnknownCursor } from '#libs/read-models/src/read-models';
import { seedOf } from '#libs/testing/src/seed';
import { MergedPages, type Source } from './merged-pages.ts';

interface Item {
  readonly id: string;
}

const ENVIRONMENT = 'environment_01J00000000000000000000000';

/** A source that says how much of it was read. */
function sourceOf(ids: readonly string[], onRead: () => void = () => {}): Source<Item> {
  return async function* ({ from, isAscending }): AsyncGenerator<Item> {
    for (const id of [...ids].sort((one, other) => (one < other === isAscending ? -1 : 1))) {
      if (from !== null && id !== from && id > from !== isAscending) continue;
      onRead();
      yield { id };
    }
  };
}

const textsOf = async (items: readonly Item[]): Promise<readonly string[]> => items.map(({ id }) => `"${id}"`);

const ids = fc.uniqueArray(fc.integer({ min: 100, max: 999 }).map(String), { maxLength: 40 });

async function readAll(pages: MergedPages<Item>, order: 'asc' | 'desc', limit: number): Promise<readonly string[]> {
  const all: string[] = [];
  for (let after: string | undefined; ;) {
    const page = await pages.page(ENVIRONMENT, { order, limit, after });
    expect(page.hasBefore).toBe(all.length > 0);
    all.push(...page.rows.map(({ id }) => id));
    if (!page.hasAfter) return all;
    expect(page.rows).toHaveLength(limit);
    after = all.at(-1);
  }
}

const seed = seedOf('merged pages');

describe('pages of several sources', () => {
  it('show each item once, in order, whatever the sources and the size of the page', () =>
    fc.assert(
      fc.asyncProperty(
        ids,
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom('asc', 'desc'),
        async (given, count, limit, order) => {
          const parts = Array.from({ length: count }, (_, part) => given.filter((_id, index) => index % count === part));
          const pages = new MergedPages(
            parts.map((part) => sourceOf(part)),
            async () => true,
            textsOf,
          );
          const sorted = [...given].sort();
          expect(await readAll(pages, order, limit)).toEqual(order === 'asc' ? sorted : sorted.reverse());
        },
      ),
      { seed },
    ));

  it('lead back the way that they came', () =>
    fc.assert(
      fc.asyncProperty(ids, fc.integer({ min: 1, max: 7 }), fc.integer({ min: 100, max: 999 }), async (given, limit, place) => {
        const pages = new MergedPages([sourceOf(given.slice(0, 10)), sourceOf(given.slice(10))], async () => true, textsOf);
        const cursor = String(place);
        const before = given.filter((id) => id < cursor).sort();
        const page = await pages.page(ENVIRONMENT, { order: 'asc', limit, before: cursor });
        expect(page.rows.map(({ id }) => id)).toEqual(before.slice(-limit));
        expect(page.hasBefore).toBe(before.length > limit);
        expect(page.hasAfter).toBe(given.some((id) => id >= cursor));
      }),
      { seed },
    ));

  it('go on from what is gone meanwhile', async () => {
    const gone = new MergedPages([sourceOf(['100', '300'])], async () => true, textsOf);
    expect((await gone.page(ENVIRONMENT, { order: 'asc', limit: 10, after: '200' })).rows.map(({ id }) => id)).toEqual(['300']);
  });

  it('refuse what was never on such a list', async () => {
    const pages = new MergedPages([sourceOf(['100'])], async (id) => id === '100', textsOf);
    await expect(pages.page(ENVIRONMENT, { order: 'asc', limit: 10, after: '200' })).rejects.toThrow(new UnknownCursor('after'));
    await expect(pages.page(ENVIRONMENT, { order: 'asc', limit: 10, before: '200' })).rejects.toThrow(new UnknownCursor('before'));
  });

  it('read no more of a source than they show', async () => {
    let reads = 0;
    const many = Array.from({ length: 500 }, (_, index) => String(1000 + index));
    const pages = new MergedPages([sourceOf(many, () => reads++), sourceOf(['9999'])], async () => true, textsOf);
    await pages.page(ENVIRONMENT, { order: 'asc', limit: 10 });
    expect(reads).toBeLessThanOrEqual(12);
  });
});
