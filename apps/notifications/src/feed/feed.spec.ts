import type { Event } from '#libs/contracts/src/feed/event';
import { ListEvents } from '#libs/contracts/src/feed/operations';
import type { FeedPage } from '#libs/contracts/src/operation';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { differences, type Difference } from '#libs/event-sourcing/src/views/rebuild';
import { ViewFold } from '#libs/event-sourcing/src/views/view-fold';
import type { DomainError } from '#libs/platform/src/domain-error';
import { FeedReader } from '../readers/feed-reader.ts';
import { ENVIRONMENT, GivenNotifications, viewsBrought } from '../testing/given-notifications.ts';
import { feedView } from '../views/feed.view.ts';
import { Feed } from './feed.ts';

const DAY = 86_400_000;

describe('the events feed', () => {
  let given: GivenNotifications;
  beforeEach(async () => {
    given = await GivenNotifications.start();
  });
  afterEach(() => given.stop());

  const read = async (query: Partial<ListEvents> = {}, feed = given.feed): Promise<FeedPage<Event>> =>
    JSON.parse((await feed.list(Object.assign(new ListEvents(), { context: given.context(), limit: 10, ...query }))).json) as FeedPage<Event>;
  const ids = ({ data }: FeedPage<Event>): readonly string[] => data.map(({ id }) => id);
  const readerAt = (now: number): FeedReader => new FeedReader({ now: () => now }, { EVENTS_RETENTION: 90 * DAY } as never, given.readModels);
  const feedAt = (now: number, upToDate = async (): Promise<void> => {}): Feed => new Feed(readerAt(now), viewsBrought(upToDate));
  const refusalOf = async (query: Partial<ListEvents>): Promise<unknown> =>
    read(query).catch((error: DomainError) => ({ code: error.code, errors: error.details.errors?.map(({ code, field }) => ({ code, field })) }));
  const found = async (): Promise<readonly Difference[]> => {
    const all: Difference[] = [];
    for await (const difference of differences([feedView as never], given)) all.push(difference);
    return all;
  };
  const recorded = async (...times: readonly number[]): Promise<readonly string[]> => {
    const records = [];
    for (const time of times) records.push(...(await given.record(1, time)));
    await given.project(records);
    return records.map((record) => record.public[0]!.id);
  };

  it('reads upwards, and names the last event of each page', async () => {
    const all = await recorded(...Array.from({ length: 25 }, () => Date.now()));
    const first = await read();
    expect(ids(first)).toEqual(all.slice(0, 10));
    expect(first.list_metadata).toEqual({ after: all[9] });
    const last = await read({ after: all[19] });
    expect(ids(last)).toEqual(all.slice(20));
    expect(last.list_metadata).toEqual({ after: all[24] });
    expect(await read({ after: all[24] })).toEqual({ object: 'list', data: [], list_metadata: { after: null } });
  });

  describe('is read as the log stands', () => {
    let missing: readonly string[];
    let waited: number;
    let feed: Feed;

    beforeEach(async () => {
      waited = 0;
      await recorded(...Array.from({ length: 3 }, () => Date.now()));
      const records = [...(await given.record(1)), ...(await given.record(1))];
      missing = records.map((record) => record.public[0]!.id);
      feed = feedAt(Date.now(), async () => {
        waited++;
        await given.project(records);
      });
    });

    it.each([
      ['upwards', {}],
      ['downwards', { order: 'desc' }],
      ['mirrored', { order: 'normal' }],
    ] as const)('%s', async (_, query) => {
      expect(ids(await read(query, feed))).toEqual(expect.arrayContaining(missing as string[]));
    });

    it('after an event that is the last for now, and after one that is not there yet', async () => {
      const last = ids(await read()).at(-1);
      expect(ids(await read({ after: last }, feed))).toEqual(missing);
      const fresh = await given.record(1);
      const later = feedAt(Date.now(), () => given.project(fresh));
      expect(ids(await read({ after: fresh[0]!.public[0]!.id }, later))).toEqual([]);
    });

    it('but nobody waits for more than a page', async () => {
      const [first] = ids(await read());
      expect(ids(await read({ after: first, limit: 2 }, feed))).toHaveLength(2);
      expect(waited).toBe(0);
    });
  });

  it('reads downwards and mirrored when asked to', async () => {
    const all = await recorded(...Array.from({ length: 5 }, () => Date.now()));
    const down = [...all].reverse();
    expect(ids(await read({ order: 'desc', limit: 3 }))).toEqual(down.slice(0, 3));
    expect(ids(await read({ order: 'desc', after: all[2] }))).toEqual(down.slice(3));
    expect(ids(await read({ order: 'desc', before: all[2] }))).toEqual(down.slice(0, 2));
    expect(ids(await read({ order: 'normal', before: all[2] }))).toEqual(down.slice(3));
    expect(ids(await read({ before: all[2] }))).toEqual(all.slice(0, 2));
  });

  it('skips and repeats nothing while it grows, also where times go back', async () => {
    const written: string[] = [];
    const seen: string[] = [];
    const writer = (async () => {
      for (let batch = 0; batch < 20; batch++) written.push(...(await recorded(...Array.from({ length: 10 }, (_, index) => Date.now() - (index % 3) * 40))));
    })();
    let isWriting = true;
    void writer.then(() => (isWriting = false));
    for (let after: string | undefined, more = true; more;) {
      const page = await read({ limit: 7, after });
      seen.push(...ids(page));
      after = page.list_metadata.after ?? after;
      more = isWriting || page.data.length > 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await writer;
    expect(seen).toEqual(written);
  });

  it('has an index for every filter', async () => {
    const all = await recorded(...Array.from({ length: 30 }, () => Date.now()));
    const { data } = await read({ limit: 100 });
    const organization_id = (data[7]!.data as { id: string }).id;
    const table = given.readModels.table(tableOf(feedView));
    for (const [filter, expected] of [
      [{ events: ['organization.created', 'organization.deleted'] }, all],
      [{ events: ['organization.deleted'] }, []],
      [{ organization_id }, [all[7]]],
      [{ organization_id, events: ['organization.created', 'user.created'] }, [all[7]]],
      [{ organization_id, events: ['user.created'] }, []],
      [{ organization_id: 'org_of_nobody' }, []],
    ] as const) {
      const before = table.rowsRead;
      expect(ids(await read({ ...filter, limit: 100 }))).toEqual(expected);
      expect(table.rowsRead - before).toBeLessThanOrEqual(expected.length + 2);
    }
  });

  it('finds the ends of a range without a search', async () => {
    const start = Date.now() - 60_000;
    const all = await recorded(...Array.from({ length: 50 }, (_, index) => start + index * 1_000));
    const at = (index: number): string => new Date(start + index * 1_000).toISOString();
    const table = given.readModels.table(tableOf(feedView));
    const before = table.rowsRead;
    expect(ids(await read({ range_start: at(20), range_end: at(24) }))).toEqual(all.slice(20, 25));
    expect(table.rowsRead - before).toBeLessThanOrEqual(7);
    expect(ids(await read({ range_start: at(48) }))).toEqual(all.slice(48));
    expect(ids(await read({ range_end: at(1) }))).toEqual(all.slice(0, 2));
    expect(ids(await read({ after: all[20], range_end: at(22) }))).toEqual(all.slice(21, 23));
    // As clients do that page by themselves.
    const again = table.rowsRead;
    expect(ids(await read({ range_start: at(20), after: all[24], limit: 5 }))).toEqual(all.slice(25, 30));
    expect(ids(await read({ range_start: at(20), range_end: at(26), after: all[24], limit: 5 }))).toEqual(all.slice(25, 27));
    expect(table.rowsRead - again).toBeLessThanOrEqual(14);
    expect(ids(await read({ range_start: at(20), after: all[3], limit: 2 }))).toEqual(all.slice(20, 22));
    expect(ids(await read({ range_start: at(20), range_end: at(22), after: all[40] }))).toEqual([]);
    expect(ids(await read({ range_start: at(20), after: all[22], order: 'desc' }))).toEqual([all[21], all[20]]);
  });

  it('counts an event that was recorded late with those beside it, so that ranges that follow each other hold all', async () => {
    const start = Date.now() - 60_000;
    const all = await recorded(start, start + 2_000, start + 1_000, start + 3_000);
    const range = async (from: number, to: number) =>
      ids(await read({ range_start: new Date(start + from).toISOString(), range_end: new Date(start + to).toISOString() }));
    expect(await range(0, 1_999)).toEqual([all[0]]);
    expect(await range(2_000, 3_000)).toEqual(all.slice(1));
  });

  it('goes on in the same order from batch to batch, and reads no entries but those it writes', async () => {
    const start = Date.now() - 60_000;
    const table = given.readModels.table(tableOf(feedView));
    const fold = new ViewFold(feedView, table);
    const all = [];
    for (const late of [0, 5_000, 1_000, 3_000]) {
      const before = table.rowsRead;
      const records = await given.record(2, start + late);
      await fold.apply(records);
      if (late > 0) expect(table.rowsRead - before).toBe(records.length);
      all.push(...records.map((record) => record.public[0]!.id));
    }
    expect(ids(await read())).toEqual(all);
  });

  it('goes on in the same order after a restart', async () => {
    const now = Date.now();
    const first = await recorded(now);
    given = await given.restart();
    const second = await recorded(now - 5_000);
    expect(ids(await read())).toEqual([...first, ...second]);
  });

  it('refuses what cannot be', async () => {
    const [id] = await recorded(Date.now());
    const cursor = (field: string) => ({ code: 'invalid_request_parameters', errors: [{ code: 'invalid_cursor', field }] });
    expect(await refusalOf({ after: 'event_01J00000000000000000000000' })).toEqual(cursor('after'));
    expect(await refusalOf({ before: 'nonsense' })).toEqual(cursor('before'));
    expect(await refusalOf({ after: id, before: id })).toEqual(cursor('before'));
    expect(await refusalOf({ range_start: '2026-01-15T12:00:00.000Z', range_end: '2026-02-15T12:00:00.000Z' })).toMatchObject({ code: 'bad_request' });
    expect(await refusalOf({ range_start: '2026-01-15T12:00:00.000Z', range_end: '2026-01-14T12:00:00.000Z' })).toMatchObject({
      errors: [{ field: 'range_end' }],
    });
  });

  it('forgets events after 90 days, and their cursors 30 days later', async () => {
    const now = Date.now();
    const [old, young] = await recorded(now - 2 * DAY, now);
    const later = feedAt(now + 89 * DAY);
    expect(ids(await read({}, later))).toEqual([young]);
    expect(await readerAt(now + 89 * DAY).sweep(ENVIRONMENT, 10)).toBe(1);
    expect(await readerAt(now + 89 * DAY).sweep(ENVIRONMENT, 10)).toBe(0);
    expect(await readerAt(now + 89 * DAY).texts(ENVIRONMENT, [old!, young!])).toEqual([null, { body: expect.stringContaining(young!), holders: [] }]);
    expect(ids(await read({ after: old }, later))).toEqual([young]);
    expect(await found()).toEqual([]);
    const muchLater = feedAt(now + 119 * DAY);
    expect(await readerAt(now + 119 * DAY).sweep(ENVIRONMENT, 10)).toBe(2);
    await expect(read({ after: old }, muchLater)).rejects.toMatchObject({ code: 'invalid_request_parameters' });
    expect(await read({ after: young }, muchLater)).toMatchObject({ data: [] });
    // By the clock of today, one of these is not old enough to be gone.
    expect(await found()).toMatchObject([{ id: old, stored: null }]);
  });
});
