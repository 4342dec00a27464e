import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { newUlid } from '#libs/platform/src/ids';
import { appendBytes } from './append-bytes.ts';
import {
  AppendTooLarge,
  type EventStore,
  MAX_APPEND_BYTES,
  type NewEvent,
  PositionOfAnotherLog,
  type RecordedEvent,
  START,
  WrongVersion,
} from './event-store.ts';

/** Opens the log of one place; opening again after `close` finds what was appended. */
export type OpenEventStore = () => Promise<{ readonly store: EventStore; close(): Promise<void> }>;

export function newEvent(data: unknown = {}): NewEvent {
  const id = newUlid(Date.now());
  return {
    id,
    type: 'thing.happened',
    shape: 1,
    data,
    subject: null,
    public: [{ id: `event_${id}`, name: 'thing.happened' }],
    meta: { environment: 'environment_1', actor: { id: 'key_1', source: 'api', name: null }, requestId: id, commandId: id, at: 1 },
  };
}

/** The next `count` records of a subscription. */
export async function take(store: EventStore, count: number, after = START): Promise<readonly RecordedEvent[]> {
  const stop = new AbortController();
  const records: RecordedEvent[] = [];
  if (count === 0) return records;
  for await (const batch of store.subscribe(after, stop.signal)) {
    records.push(...batch);
    if (records.length >= count) stop.abort();
  }
  return records.slice(0, count);
}

/** Content included. */
const plain = (records: readonly RecordedEvent[]): unknown => JSON.parse(JSON.stringify(records));

/** The small EventStoreDB of these specs runs in the same process, and keeps what it stores as JSON around ours. */
const isOfServer = (text: string): boolean => text.includes('contentType');

const idsOf = (records: readonly { readonly id: string }[]): string[] => records.map(({ id }) => id);

/** `given` starts with an empty log. */
export function eventStoreContract(name: string, given: () => Promise<OpenEventStore>): void {
  describe(`an event store in ${name}`, () => {
    let open: OpenEventStore;
    let opened: Awaited<ReturnType<OpenEventStore>>;
    let store: EventStore;
    const reopen = async (): Promise<void> => {
      await opened.close();
      opened = await open();
      ({ store } = opened);
    };

    beforeEach(async () => {
      open = await given();
      opened = await open();
      ({ store } = opened);
    });
    afterEach(() => opened.close());

    it('is empty at first', async () => {
      expect(await store.head()).toBe(START);
      expect(await store.read('thing-1')).toEqual([]);
      expect(await store.read('thing-1', 5)).toEqual([]);
      expect(await store.last('thing-1')).toBeNull();
    });

    it('knows the last event of a stream, also before it is on disk', async () => {
      const [first, second] = [newEvent(), newEvent()];
      await store.append('thing-1', 0, [first]);
      await store.append('thing-10', 0, [newEvent()]);
      const appended = store.append('thing-1', 1, [second]);
      expect([first.id, second.id]).toContain((await store.last('thing-1'))!.id);
      await appended;
      const expected = { id: second.id, stream: 'thing-1', version: 2 };
      expect(await store.last('thing-1')).toMatchObject(expected);
      await reopen();
      expect(await store.last('thing-1')).toMatchObject(expected);
    });

    it('gives back what was appended, with stream, version and position', async () => {
      const event = { ...newEvent({ text: 'Zoë 日本 😀 \u0000 "\\', number: 1.5, nothing: null, list: [true, {}] }), subject: { object: 'thing' } };
      const { version, position } = await store.append('thing-1', 0, [event]);
      const expected = { ...event, stream: 'thing-1', version: 1, position };
      expect(version).toBe(1);
      for (const again of [false, true]) {
        if (again) await reopen();
        expect(plain(await store.read('thing-1'))).toEqual([expected]);
        expect(plain(await take(store, 1))).toEqual([expected]);
        expect(plain([(await store.last('thing-1'))!])).toEqual([expected]);
      }
    });

    it('gives back what is sealed for whom, and nothing where nothing is', async () => {
      const sealed = [
        { of: 'user.user_1', fields: ['data.name', 'subject.items.*.name'] },
        { of: 'organization.org_1.2026-11', fields: ['data.note'] },
      ];
      await store.append('thing-1', 0, [{ ...newEvent(), sealed }, newEvent(), { ...newEvent(), sealed: [] }]);
      for (const again of [false, true]) {
        if (again) await reopen();
        for (const records of [await store.read('thing-1'), await take(store, 3)])
          expect(records.map((record) => record.sealed)).toEqual([sealed, undefined, []]);
      }
    });

    it('keeps JSON, not objects: what JSON drops is gone, and later changes do not show', async () => {
      const data: Record<string, unknown> = { gone: undefined, date: new Date(0) };
      await store.append('thing-1', 0, [newEvent(data)]);
      data['later'] = true;
      const expected = { date: '1970-01-01T00:00:00.000Z' };
      expect((await store.read('thing-1'))[0]!.data).toStrictEqual(expected);
      expect((await take(store, 1))[0]!.data).toStrictEqual(expected);
    });

    it('decodes nothing of a record for who goes by its envelope, and each half once for all who ask', async () => {
      const event = { ...newEvent({ name: 'decoded' }), subject: { name: 'announced' } };
      await store.append('thing-1', 0, [event]);
      for (const again of [false, true]) {
        if (again) await reopen();
        const parsed: string[] = [];
        const { parse } = JSON;
        JSON.parse = (text: string): unknown => {
          if (/decoded|announced/.test(text) && !isOfServer(text)) parsed.push(text);
          return parse(text);
        };
        try {
          const [[followed], [read]] = [await take(store, 1), await store.read('thing-1')];
          for (const { type, shape, meta, public: announced, stream } of [followed!, read!])
            expect([type, shape, meta, announced, stream]).toEqual([event.type, 1, event.meta, event.public, 'thing-1']);
          expect(parsed).toEqual([]);
          expect(followed!.data).toEqual({ name: 'decoded' });
          expect(followed!.data).toBe(followed!.data);
          expect(parsed).toEqual(['{"name":"decoded"}']);
          expect(followed!.subject).toBe(followed!.subject);
          expect(parsed).toEqual(['{"name":"decoded"}', '{"name":"announced"}']);
        } finally {
          JSON.parse = parse;
        }
      }
    });

    it('takes as much at once as an append may come to, and nothing of more', async () => {
      const fill = (): string => 'é'.repeat(1_000);
      const events = [newEvent(fill()), newEvent(fill()), newEvent('')];
      const left = MAX_APPEND_BYTES - appendBytes(events);
      const largest = [...events.slice(0, 2), { ...events[2]!, data: 'x'.repeat(left) }];
      const tooLarge = [...events.slice(0, 2), { ...events[2]!, data: 'x'.repeat(left + 1) }];
      await expect(store.append('thing-1', 0, tooLarge)).rejects.toThrow(AppendTooLarge);
      expect([await store.last('thing-1'), await store.head()]).toEqual([null, START]);
      expect(await store.append('thing-1', 0, largest)).toMatchObject({ version: 3 });
      await expect(store.append('thing-1', 3, tooLarge)).rejects.toThrow(AppendTooLarge);
      await reopen();
      expect(idsOf(await store.read('thing-1'))).toEqual(idsOf(largest));
    });

    it('counts versions per stream and reads from any of them', async () => {
      const events = Array.from({ length: 5 }, () => newEvent());
      expect(await store.append('thing-1', 0, events.slice(0, 3))).toMatchObject({ version: 3 });
      expect(await store.append('thing-1', 3, events.slice(3))).toMatchObject({ version: 5 });
      for (const again of [false, true]) {
        if (again) await reopen();
        expect((await store.read('thing-1')).map(({ version }) => version)).toEqual([1, 2, 3, 4, 5]);
        for (const from of [1, 3, 5]) expect(idsOf(await store.read('thing-1', from))).toEqual(idsOf(events.slice(from - 1)));
        expect(await store.read('thing-1', 6)).toEqual([]);
      }
    });

    it('reads backwards from the end and from any version', async () => {
      expect(await store.readBackwards('thing-1', 100)).toEqual([]);
      const events = Array.from({ length: 7 }, () => newEvent());
      await store.append('thing-10', 0, [newEvent()]);
      await store.append('thing-1', 0, events.slice(0, 5));
      const appending = store.append('thing-1', 5, events.slice(5));
      // Whether the last two are there already or not: none is left out.
      expect(await store.readBackwards('thing-1', 3, 0)).toEqual([]);
      const found = await store.readBackwards('thing-1', 3);
      expect([idsOf(events.slice(4)), idsOf(events.slice(2, 5))]).toContainEqual(idsOf(found).reverse());
      await appending;
      const backwards = [...events].reverse();
      for (const again of [false, true]) {
        if (again) await reopen();
        expect(await store.readBackwards('thing-1', 100)).toEqual([...(await store.read('thing-1'))].reverse());
        for (const count of [1, 3, 7]) expect(idsOf(await store.readBackwards('thing-1', count))).toEqual(idsOf(backwards.slice(0, count)));
        for (const from of [1, 4, 6, 7])
          for (const count of [1, 2, 100])
            expect(idsOf(await store.readBackwards('thing-1', count, from))).toEqual(idsOf(backwards.slice(7 - from).slice(0, count)));
      }
    });

    it('keeps streams apart whose names begin alike', async () => {
      const streams = ['thing-1', 'thing-10', 'thing-1-1', 'thing'];
      for (const stream of streams) await store.append(stream, 0, [newEvent(stream)]);
      await reopen();
      for (const stream of streams) expect((await store.read(stream)).map(({ data }) => data)).toEqual([stream]);
    });

    it('knows new streams from old ones, whatever the order of their names', async () => {
      const names = Array.from({ length: 60 }, (_, number) => `thing-environment_${number % 3}-org_${String((number * 37) % 60).padStart(26, '0')}`);
      for (const [index, name] of names.entries()) {
        expect(await store.read(name)).toEqual([]);
        await store.append(name, 0, [newEvent(name)]);
        await expect(store.append(name, 0, [newEvent()])).rejects.toThrow(WrongVersion);
        if (index % 25 === 24) await reopen();
      }
      for (const name of names) expect((await store.read(name)).map(({ data }) => data)).toEqual([name]);
    });

    it('refuses an append at another version than the stream has', async () => {
      await store.append('thing-1', 0, [newEvent()]);
      for (const expected of [0, 2, 7]) await expect(store.append('thing-1', expected, [newEvent()])).rejects.toThrow(WrongVersion);
      await expect(store.append('thing-2', 1, [newEvent()])).rejects.toMatchObject({ stream: 'thing-2', expected: 1 });
      await reopen();
      await expect(store.append('thing-1', 0, [newEvent()])).rejects.toThrow(WrongVersion);
      expect(await store.read('thing-1')).toHaveLength(1);
    });

    it('appends to several streams as one, where it can: all of it in this order, or nothing', async () => {
      const [first, second, third] = [newEvent(), newEvent(), newEvent()];
      const both = [
        { stream: 'claim-1', expectedVersion: 0, events: [first] },
        { stream: 'thing-1', expectedVersion: 0, events: [second, third] },
      ];
      // Whoever asks has been told that it cannot.
      if (!store.appendsTogether) return;
      await store.append('thing-1', 0, [newEvent()]);
      await expect(store.appendTogether(both)).rejects.toBeInstanceOf(WrongVersion);
      expect(await store.read('claim-1')).toEqual([]);
      const there = both.map((append, index) => ({ ...append, expectedVersion: index }));
      const [claim, facts] = await store.appendTogether(there);
      expect([claim!.version, facts!.version]).toEqual([1, 3]);
      expect(claim!.position < facts!.position).toBe(true);
      expect(await store.head()).toBe(facts!.position);
      await reopen();
      expect(idsOf(await take(store, 4)).slice(1)).toEqual([first.id, second.id, third.id]);
    });

    it('lets one of two racing appends win', async () => {
      for (let version = 0; version < 10; version++) {
        const rivals = Array.from({ length: 8 }, () => newEvent());
        const outcomes = await Promise.allSettled(rivals.map((event) => store.append('thing-1', version, [event])));
        const won = rivals.filter((_, index) => outcomes[index]!.status === 'fulfilled');
        expect(won).toHaveLength(1);
        for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(WrongVersion);
        expect(idsOf(await store.read('thing-1', version + 1))).toEqual(idsOf(won));
      }
    });

    it('answers a repeated append as the first time, also after others and after a restart', async () => {
      const events = [newEvent(), newEvent()];
      const first = await store.append('thing-1', 0, events);
      expect(await store.append('thing-1', 0, events)).toEqual(first);
      await store.append('thing-1', 2, [newEvent()]);
      expect(await store.append('thing-1', 0, events)).toEqual(first);
      await reopen();
      expect(await store.append('thing-1', 0, events)).toEqual(first);
      expect(await store.read('thing-1')).toHaveLength(3);
    });

    it('answers a repeat that comes while the first is on its way', async () => {
      const event = newEvent();
      const answers = await Promise.all(Array.from({ length: 5 }, () => store.append('thing-1', 0, [event])));
      expect(new Set(answers.map(({ position }) => position)).size).toBe(1);
      expect(await store.read('thing-1')).toHaveLength(1);
      expect(await take(store, 1)).toHaveLength(1);
    });

    it('takes nothing for a repeat that differs in an id, in number or in place', async () => {
      const [one, two] = [newEvent(), newEvent()];
      await store.append('thing-1', 0, [one, two]);
      for (const [version, events] of [
        [0, [one, newEvent()]],
        [0, [newEvent(), two]],
        [0, [one, two, newEvent()]],
        [1, [one]],
        [0, [two, one]],
      ] as const) {
        await expect(store.append('thing-1', version, events)).rejects.toThrow(WrongVersion);
      }
      expect(await store.append('thing-1', 1, [two])).toMatchObject({ version: 2 });
    });

    it('appends many events as one', async () => {
      const events = Array.from({ length: 500 }, (_, index) => newEvent(index));
      await store.append('thing-1', 0, events);
      await reopen();
      expect((await store.read('thing-1')).map(({ data }) => data)).toEqual(events.map(({ data }) => data));
      expect(idsOf(await take(store, 500))).toEqual(idsOf(events));
    });

    it('keeps big events', async () => {
      const text = 'ж'.repeat(64 * 1024);
      for (let version = 0; version < 20; version++) await store.append('thing-1', version, [newEvent({ text, version })]);
      await reopen();
      expect((await take(store, 20)).map(({ data }) => data)).toEqual(Array.from({ length: 20 }, (_, version) => ({ text, version })));
    });

    it('gives positions that sort as text in the order of the log', async () => {
      const positions: string[] = [];
      for (let number = 0; number < 120; number++) positions.push((await store.append(`thing-${number % 7}`, Math.floor(number / 7), [newEvent()])).position);
      expect([...positions].sort()).toEqual(positions);
      expect(new Set(positions).size).toBe(120);
      expect(positions[0]! > START).toBe(true);
      expect((await take(store, 120)).map(({ position }) => position)).toEqual(positions);
    });

    it('has a head that is never behind an answer', async () => {
      await Promise.all(
        Array.from({ length: 50 }, async (_, number) => {
          const { position } = await store.append(`thing-${number}`, 0, [newEvent()]);
          expect((await store.head()) >= position).toBe(true);
        }),
      );
      const head = await store.head();
      expect(head).toBe((await take(store, 50)).at(-1)!.position);
      await reopen();
      expect(await store.head()).toBe(head);
    });

    it('follows history and then what is appended meanwhile, without gap or double', async () => {
      const appended: string[] = [];
      const append = async (writer: number, count: number, version: number): Promise<void> => {
        for (let index = 0; index < count; index++) {
          const event = newEvent();
          await store.append(`thing-${writer}`, version + index, [event]);
          appended.push(event.id);
        }
      };
      const writers = [0, 1, 2, 3, 4, 5, 6, 7];
      await Promise.all(writers.map((writer) => append(writer, 100, 0)));
      const followers = Array.from({ length: 4 }, async () => {
        await nextTurn();
        return take(store, 1_600);
      });
      await Promise.all(writers.map((writer) => append(writer, 100, 100)));
      for (const records of await Promise.all(followers)) {
        expect(new Set(idsOf(records))).toEqual(new Set(appended));
        expect(idsOf(records)).toHaveLength(1_600);
        for (const writer of writers)
          expect(records.filter(({ stream }) => stream === `thing-${writer}`).map(({ version }) => version)).toEqual(
            Array.from({ length: 200 }, (_, index) => index + 1),
          );
      }
    });

    it('resumes after any position', async () => {
      for (let number = 0; number < 30; number++) await store.append('thing-1', number, [newEvent()]);
      const all = await take(store, 30);
      for (const again of [false, true]) {
        if (again) await reopen();
        for (const [index, { position }] of all.entries()) expect(idsOf(await take(store, 29 - index, position))).toEqual(idsOf(all.slice(index + 1)));
      }
    });

    it.each(['\x01\xff', 'abc', '1.5', '17', '0000000000000001-', `00${'1'.repeat(13)}x`])('has no position %j, and says so', async (position) => {
      await store.append('thing-1', 0, [newEvent()]);
      await expect(take(store, 1, position)).rejects.toThrow(PositionOfAnotherLog);
    });

    it('knows the record at any position that it has, and none elsewhere', async () => {
      for (let number = 0; number < 3; number++) await store.append('thing-1', number, [newEvent()]);
      const all = await take(store, 3);
      for (const again of [false, true]) {
        if (again) await reopen();
        for (const { position, id } of all) expect(await store.idAt(position)).toBe(id);
        for (const none of [START, 'abc', all[2]!.position.replaceAll(/\d(?=-|$)/g, '9')]) expect(await store.idAt(none)).toBeNull();
      }
    });

    it('waits at the end of the log for what comes', async () => {
      const { position } = await store.append('thing-1', 0, [newEvent()]);
      const next = take(store, 1, position);
      await pause(20);
      const event = newEvent();
      await store.append('thing-2', 0, [event]);
      expect(idsOf(await next)).toEqual([event.id]);
    });

    it('ends quietly when aborted: before, while waiting, and between batches', async () => {
      const follow = async (signal: AbortSignal): Promise<number> => {
        let batches = 0;
        for await (const batch of store.subscribe(START, signal)) batches += batch.length > 0 ? 1 : 0;
        return batches;
      };
      expect(await follow(AbortSignal.abort())).toBe(0);
      const stop = new AbortController();
      const waiting = follow(stop.signal);
      await pause(10);
      stop.abort();
      expect(await waiting).toBe(0);
      await store.append('thing-1', 0, [newEvent()]);
      expect(await take(store, 1)).toHaveLength(1);
    });

    it('lets a slow subscriber miss nothing, and hold nobody up', async () => {
      const slow = (async () => {
        const records: RecordedEvent[] = [];
        const stop = new AbortController();
        for await (const batch of store.subscribe(START, stop.signal)) {
          await pause(10);
          records.push(...batch);
          if (records.length === 6_000) stop.abort();
        }
        return records;
      })();
      for (let round = 0; round < 60; round++)
        await Promise.all(
          Array.from({ length: 10 }, (_, stream) =>
            store.append(
              `thing-${stream}`,
              round * 10,
              Array.from({ length: 10 }, () => newEvent()),
            ),
          ),
        );
      const quick = take(store, 6_000);
      expect(idsOf(await slow)).toEqual(idsOf(await quick));
    });
  });
}
