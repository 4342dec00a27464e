import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PageQuery } from '#libs/contracts/src/pages';
import { derivedId, newCommandId } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from './lmdb.read-models.ts';
import { pageOf, pageOfIds, filteredPage } from './pages.ts';
import type { Table } from './read-models.ts';

interface Thing {
  readonly id: string;
  readonly colour: string;
}
class ListThings extends PageQuery<Thing> {}

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const command = newCommandId(Date.now());
const ids = Array.from({ length: 5 }, (_, index) => `thing_${derivedId(command, index)}`);
const unknown = `thing_${derivedId(command, 99)}`;

describe.each(['rows', 'ids', 'shown rows'] as const)('a page of %s', (kind) => {
  let directory: string;
  let storage: LmdbStorage;
  let table: Table<Thing>;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pages-'));
    storage = await LmdbStorage.open({ directory });
    table = new LmdbReadModels(storage).table<Thing>({ name: 'things-v1', indexes: [{ name: 'colour', keys: ({ colour }) => [colour] }], rebuildable: true });
    await table.write(
      ids.map((id, index) => ({
        environment: ENVIRONMENT,
        id,
        position: `00${index}`,
        revision: 1,
        text: JSON.stringify({ id, colour: index % 2 === 0 ? 'red' : 'blue' }),
      })),
    );
  });
  afterAll(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  async function page(given: Partial<ListThings>, colour?: string) {
    const query = Object.assign(new ListThings(), { limit: 10, context: systemContext(ENVIRONMENT, Date.now()), ...given });
    const where = colour === undefined ? undefined : { index: 'colour', values: [colour] };
    const { json } = await (kind === 'rows'
      ? pageOf(table, query, { idPrefix: 'thing', where })
      : kind === 'ids'
        ? pageOfIds(query, keptIn(query.context.environment, colour))
        : filteredPage(table, query, { idPrefix: 'thing', textsOf: async (rows) => rows.map(({ text }) => ofColour(text, colour)) }));
    const { data, list_metadata } = JSON.parse(json) as { data: readonly Thing[]; list_metadata: { before: string | null; after: string | null } };
    const index = (id: string | null) => (id === null ? null : ids.indexOf(id));
    return { ids: data.map(({ id }) => index(id)), before: index(list_metadata.before), after: index(list_metadata.after) };
  }

  function ofColour(text: string, colour?: string): string | null {
    return colour !== undefined && (JSON.parse(text) as Thing).colour !== colour ? null : text;
  }

  /** The same things, of which those of another colour are found not to be there. */
  function keptIn(environment: string, colour?: string) {
    const textsOf = async (wanted: readonly string[]) => {
      const rows = await table.getMany(environment, wanted);
      return rows.map((row) => (row === null ? null : ofColour(row.text, colour)));
    };
    return { idPrefix: 'thing', ids, isKnown: async (id: string) => (await table.get(environment, id)) !== null, textsOf };
  }

  it.each([
    [{}, { ids: [4, 3, 2, 1, 0], before: null, after: null }],
    [{ order: 'asc' }, { ids: [0, 1, 2, 3, 4], before: null, after: null }],
    [{ limit: 2 }, { ids: [4, 3], before: null, after: 3 }],
    [
      { limit: 2, after: ids[3] },
      { ids: [2, 1], before: 2, after: 1 },
    ],
    [
      { limit: 2, before: ids[1] },
      { ids: [3, 2], before: 3, after: 2 },
    ],
    [
      { limit: 2, order: 'asc', before: ids[1] },
      { ids: [0], before: null, after: 0 },
    ],
    [
      { limit: 2, order: 'normal' },
      { ids: [4, 3], before: 3, after: null },
    ],
    [
      { limit: 2, order: 'normal', before: ids[3] },
      { ids: [2, 1], before: 1, after: 2 },
    ],
    [
      { limit: 2, order: 'normal', after: ids[1] },
      { ids: [3, 2], before: 2, after: 3 },
    ],
    [{ after: ids[0] }, { ids: [], before: null, after: null }],
  ] as const)('answers %j', async (given, expected) => expect(await page(given)).toEqual(expected));

  it('has only what a filter finds, and fills the page with it', async () => {
    expect(await page({ limit: 2 }, 'red')).toEqual({ ids: [4, 2], before: null, after: 2 });
    expect(await page({ limit: 2, after: ids[2] }, 'red')).toEqual({ ids: [0], before: 0, after: null });
    // What a row before the page is found to be, is found out when it is asked for.
    const before = kind === 'shown rows' ? 1 : null;
    expect(await page({ limit: 2, order: 'asc', after: ids[0] }, 'blue')).toEqual({ ids: [1, 3], before, after: null });
  });

  it.each([
    ['unknown', { after: unknown }, 'after'],
    ['unknown in its normal order', { order: 'normal', after: unknown }, 'after'],
    ['unknown before', { before: unknown }, 'before'],
    ['malformed', { after: 'thing_1' }, 'after'],
    ['of another kind', { before: ids[0]!.replace('thing', 'thing_part') }, 'before'],
    ['given twice', { after: ids[0], before: ids[1] }, 'before'],
  ] as const)('refuses a cursor that is %s', async (_, given, field) => {
    await expect(page(given)).rejects.toMatchObject({ code: 'invalid_request_parameters', details: { errors: [{ code: 'invalid_cursor', field }] } });
  });

  it('refuses a cursor of another environment', async () => {
    const context = systemContext('environment_01HZZZZZZZZZZZZZZZZZZZZZZX', Date.now());
    await expect(page({ context, after: ids[0] })).rejects.toMatchObject({ details: { errors: [{ code: 'invalid_cursor', field: 'after' }] } });
  });
});
