import { setTimeout as pause } from 'node:timers/promises';
import type { ServerHere } from '#libs/testing/src/engines/eventstore-server/given-server-here';
import { givenOwnServer, givenStore, opened } from '#libs/testing/src/given-event-store';
import { until } from '#libs/testing/src/until';
import { newEvent } from '../log/event-store.contract.ts';
import type { EventStore, Position, RecordedEvent } from '../log/event-store.ts';
import type { EventstoredbEventStore } from './eventstoredb.event-store.ts';
import { LogEnd } from './log-end.ts';
import type { LogEvent } from './wire.ts';

const FOREIGN = { data: 'of another product', metadata: '', contentType: '' };
const AT_ONCE = 1_000;

describe('the end of a log behind which others write', () => {
  let server: ServerHere;
  let store: EventstoredbEventStore;
  /** Records that the server has looked at for whoever reads or follows all of them. */
  let looked: number;
  /** Who asks for them waits for that, once the server knows what it will answer. */
  let held: Promise<void>;

  beforeEach(async () => {
    held = Promise.resolve();
    server = await givenOwnServer();
    const { log: whole } = server.streams;
    const subscribe = whole.subscribe.bind(whole);
    Object.assign(whole, {
      async *subscribe(...how: Parameters<EventStore['subscribe']>) {
        await held;
        for await (const batch of subscribe(...how)) {
          looked += batch.length;
          yield batch;
        }
      },
    });
    store = await givenStore(server.url);
    looked = 0;
  });

  let orders = 0;
  async function writeForeign(count: number): Promise<void> {
    for (const end = orders + count; orders < end; orders += AT_ONCE)
      await server.streams.log.append(
        'orders',
        orders,
        Array.from({ length: AT_ONCE }, () => newEvent(FOREIGN)),
      );
  }
  beforeEach(() => {
    orders = 0;
  });

  /** How much the server has to look at. */
  async function costOf(ask: () => Promise<unknown>): Promise<number> {
    const before = looked;
    await ask();
    return looked - before;
  }

  function follow(by: EventstoredbEventStore, after: Position): readonly RecordedEvent[] {
    const stopping = new AbortController();
    const seen: RecordedEvent[] = [];
    const following = (async () => {
      for await (const batch of by.subscribe(after, stopping.signal)) seen.push(...batch);
    })();
    opened.push(() => (stopping.abort(), following));
    return seen;
  }

  it('is found once at the start, and what lies behind it is not looked through again, by no call and no follower', async () => {
    const { position } = await store.append('thing-1', 0, [newEvent()]);
    await writeForeign(5_000);
    const fresh = await givenStore(server.url);
    expect(await fresh.head()).toBe(position);
    for (let count = 0; count < 5; count++) expect(await costOf(() => fresh.head())).toBeLessThan(5);
    let seen: readonly RecordedEvent[] = [];
    const cost = await costOf(async () => {
      seen = follow(fresh, position);
      const next = await fresh.append('thing-1', 1, [newEvent()]);
      await until(() => seen.at(-1)?.position === next.position);
    });
    expect(cost).toBeLessThan(50);
  }, 30_000);

  it('is found where there is none', async () => {
    await writeForeign(3_000);
    const fresh = await givenStore(server.url);
    expect(await fresh.head()).toBe('');
    expect(await costOf(() => fresh.head())).toBeLessThan(5);
    const seen = follow(fresh, '');
    const { position } = await fresh.append('thing-1', 0, [newEvent()]);
    await until(() => seen.length === 1);
    expect(seen[0]!.position).toBe(position);
  }, 30_000);

  it('is not passed over again, where it lies between two of ours, by a follower that begins anew in the middle of it', async () => {
    const first = await store.append('thing-1', 0, [newEvent()]);
    await writeForeign(10_000);
    const second = await store.append('thing-1', 1, [newEvent()]);
    const stopping = new AbortController();
    const before = looked;
    const interrupted = (async () => {
      for await (const batch of store.subscribe(first.position, stopping.signal)) expect(batch).toEqual([]);
    })();
    await until(() => looked - before >= 5_000);
    stopping.abort();
    await interrupted;
    let seen: readonly RecordedEvent[] = [];
    const cost = await costOf(async () => {
      seen = follow(store, first.position);
      await until(() => seen.length > 0);
    });
    expect(seen[0]!.position).toBe(second.position);
    expect(cost).toBeLessThan(7_500);
  }, 30_000);

  it('is known from what followers pass over', async () => {
    const first = await store.append('thing-1', 0, [newEvent()]);
    const seen = follow(store, '');
    await until(() => seen.length === 1);
    expect(await store.head()).toBe(first.position);
    await writeForeign(4_000);
    const second = await store.append('thing-1', 1, [newEvent()]);
    // Then all of them have come by.
    await until(() => seen.length === 2);
    await server.streams.log.append('baskets', 0, [newEvent(FOREIGN)]);
    expect(await costOf(async () => expect(await store.head()).toBe(second.position))).toBeLessThan(50);
  }, 30_000);

  it('is looked for only in what was written since, by who follows nothing', async () => {
    const first = await store.append('thing-1', 0, [newEvent()]);
    await writeForeign(5_000);
    expect(await store.head()).toBe(first.position);
    await writeForeign(1_000);
    expect(await costOf(() => store.head())).toBeLessThan(1_100);
    expect(await costOf(() => store.head())).toBeLessThan(5);
    const other = await givenStore(server.url);
    const second = await other.append('thing-2', 0, [newEvent()]);
    await writeForeign(1_000);
    expect(await costOf(async () => expect(await store.head()).toBe(second.position))).toBeLessThan(1_100);
    // Many of ours among them, more than are asked for at once.
    let last = second;
    for (let round = 0; round < 3; round++)
      last = await other.append(
        `thing-${round + 3}`,
        0,
        Array.from({ length: 400 }, () => newEvent()),
      );
    await writeForeign(1_000);
    expect(await store.head()).toBe(last.position);
    expect(await costOf(() => store.head())).toBeLessThan(5);
  }, 30_000);

  it('is not forgotten for an answer that comes later than that to a later question', async () => {
    const { position } = await store.append('thing-1', 0, [newEvent()]);
    await store.head();
    await writeForeign(5_000);
    await store.head();
    let release!: () => void;
    held = new Promise((resolve) => (release = resolve));
    const late = store.head();
    await pause(200);
    held = Promise.resolve();
    await writeForeign(1_000);
    expect(await store.head()).toBe(position);
    const cost = await costOf(async () => {
      release();
      expect(await late).toBe(position);
      expect(await store.head()).toBe(position);
    });
    // What the late answer was read with.
    expect(cost).toBeLessThan(1_100);
  }, 30_000);

  it('does not go back where the answer to an earlier question comes with that to a later one', async () => {
    const answers: ((events: readonly LogEvent[]) => void)[] = [];
    const end = new LogEnd({ prefixes: ['gatehouse.'], read: () => new Promise((resolve) => answers.push(resolve)) });
    const at = (position: Position): readonly LogEvent[] => [{ position, record: { position } } as LogEvent];
    const first = end.head(1_000);
    answers[0]!(at('1'));
    expect(await first).toBe('1');
    const [earlier, later] = [end.head(1_000), end.head(1_000)];
    answers[2]!(at('3'));
    answers[1]!(at('2'));
    expect(await later).toBe('3');
    expect((await earlier) >= '2').toBe(true);
    // What was put back to an earlier state is noticed all the same.
    const restored = end.head(1_000);
    answers[3]!(at('1'));
    expect(await restored).toBe('1');
  });

  it('is looked for by all who ask at once together', async () => {
    const { position } = await store.append('thing-1', 0, [newEvent()]);
    await store.head();
    await writeForeign(5_000);
    expect(
      await costOf(async () => expect(new Set(await Promise.all(Array.from({ length: 20 }, () => store.head())))).toEqual(new Set([position]))),
    ).toBeLessThan(5_200);
  }, 30_000);
});
