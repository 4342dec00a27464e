import { setTimeout as pause } from 'node:timers/promises';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { givenServer, givenStore, hostOf, refusedWithin } from '#libs/testing/src/given-event-store';
import { mayTake, until } from '#libs/testing/src/until';
import { newEvent, take } from '../log/event-store.contract.ts';
import { type Appended, type NewEvent, type RecordedEvent, START } from '../log/event-store.ts';
import type { EventstoredbEventStore } from './eventstoredb.event-store.ts';

/** As a client that repeats its command until it is told what became of it. */
async function insistent(store: EventstoredbEventStore, stream: string, place: { version: number; events: readonly NewEvent[] }): Promise<Appended> {
  for (;;) {
    try {
      return await store.append(stream, place.version, place.events);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      await pause(50);
    }
  }
}

describe('an event store in EventStoreDB', () => {
  it('loses nothing, and appends nothing twice, when the server is killed in the middle of appends', async () => {
    const server = await givenServer();
    const store = await givenStore(server.address);
    const acknowledged = new Map<string, Appended>();
    const signal = { isOver: false };
    const writers = Array.from({ length: 32 }, async (_, writer) => {
      let version = 0;
      for (; !signal.isOver; version += 2) {
        const events = [newEvent(writer), newEvent(writer)];
        acknowledged.set(events[1]!.id, await insistent(store, `thing-${writer}`, { version, events }));
      }
      return version;
    });
    for (let round = 0; round < 3; round++) {
      await pause(500);
      await server.kill();
      await pause(round * 700);
      await server.restart();
    }
    await pause(1_000);
    signal.isOver = true;
    const versions = await Promise.all(writers);
    const total = versions.reduce((sum, version) => sum + version, 0);
    const all = await take(store, total);
    expect(new Set(all.map(({ id }) => id)).size).toBe(total);
    expect(await store.head()).toBe(all.at(-1)!.position);
    for (const [writer, version] of versions.entries()) {
      const records = await store.read(`thing-${writer}`);
      expect(records.map((record) => record.version)).toEqual(Array.from({ length: version }, (_, index) => index + 1));
      for (const { id, version: at, position } of records.filter((_, index) => index % 2 === 1))
        expect(acknowledged.get(id)).toEqual({ version: at, position });
    }
  }, 60_000);

  it('has its subscribers go on from where each was, when the server is killed', async () => {
    const server = await givenServer();
    const store = await givenStore(server.address);
    const stop = new AbortController();
    const seen: readonly RecordedEvent[][] = Array.from({ length: 6 }, () => []);
    const followers = seen.map(async (records, number) => {
      while (!stop.signal.aborted)
        try {
          for await (const batch of store.subscribe(records.at(-1)?.position ?? START, stop.signal)) {
            records.push(...batch);
            if (number > 3) await pause(20);
          }
        } catch (error) {
          expect(isUnavailable(error)).toBe(true);
          await pause(50);
        }
    });
    let version = 0;
    for (let round = 0; round < 3; round++) {
      for (let count = 0; count < 40; count++) ({ version } = await insistent(store, 'thing-1', { version, events: [newEvent(), newEvent()] }));
      await server.kill();
      await server.restart();
    }
    const ids = (await take(store, version)).map(({ id }) => id);
    expect(new Set(ids).size).toBe(240);
    await until(() => seen.every((records) => records.length >= ids.length));
    stop.abort();
    await Promise.all(followers);
    for (const records of seen) expect(records.map(({ id }) => id)).toEqual(ids);
  }, 60_000);

  it('answers within 5 s while nobody does, and goes on afterwards', async () => {
    const server = await givenServer();
    const store = await givenStore(server.address);
    await store.append('thing-1', 0, [newEvent()]);
    const [event, stop] = [newEvent(), new AbortController()];
    const following = (async () => {
      for await (const batch of store.subscribe(START, AbortSignal.timeout(60_000))) expect(batch).toHaveLength(1);
    })();
    const aborted = (async () => {
      for await (const batch of store.subscribe(START, stop.signal)) expect(batch).toHaveLength(1);
    })();
    await pause(500);
    await server.pause();
    const noticed = refusedWithin(12_000, () => following);
    await pause(100);
    stop.abort();
    await aborted;
    await Promise.all([
      refusedWithin(5_000, () => store.append('thing-1', 1, [event])),
      refusedWithin(5_000, () => store.read('thing-1')),
      refusedWithin(5_000, () => store.last('thing-1')),
      refusedWithin(5_000, () => store.head()),
      // Many at once: what waits to be written is given up as well.
      ...Array.from({ length: 300 }, (_, number) => refusedWithin(5_000, () => store.append(`other-${number}`, 0, [newEvent({ text: 'x'.repeat(10_000) })]))),
    ]);
    await noticed;
    await refusedWithin(5_000, () => store.append('thing-1', 1, [event]));
    await server.resume();
    const answered = Date.now();
    const { version } = await insistent(store, 'thing-1', { version: 1, events: [event] });
    expect(version).toBe(2);
    expect(Date.now() - answered).toBeLessThan(mayTake(5_000));
    expect((await store.read('thing-1')).map(({ id }) => id)).toHaveLength(2);
  }, 60_000);

  it('is there again soon after the server is, however long it was away', async () => {
    const server = await givenServer();
    const store = await givenStore(server.address);
    await store.append('thing-1', 0, [newEvent()]);
    await server.kill();
    const stop = new AbortController();
    const following = (async () => {
      for (let records: readonly RecordedEvent[] = []; !stop.signal.aborted; await pause(100))
        try {
          for await (const batch of store.subscribe(START, stop.signal)) {
            records = batch;
            stop.abort();
          }
          return records;
        } catch (error) {
          expect(isUnavailable(error)).toBe(true);
        }
      return [];
    })();
    for (let attempt = 0; attempt < 3; attempt++) await refusedWithin(5_000, () => store.head());
    await server.restart();
    const restarted = Date.now();
    expect(await following).toHaveLength(1);
    expect(await store.read('thing-1')).toHaveLength(1);
    expect(Date.now() - restarted).toBeLessThan(mayTake(4_000));
  }, 60_000);

  it('answers in time while no member of the cluster can be found', async () => {
    const [one, two] = [await givenServer(), await givenServer()];
    const store = await givenStore(`esdb://${hostOf(one)},${hostOf(two)}?tls=false`);
    await Promise.all([one.kill(), two.kill()]);
    await refusedWithin(5_000, () => store.read('thing-1'));
    await refusedWithin(5_000, () => store.append('thing-1', 0, [newEvent()]));
    await Promise.all([one.restart(), two.restart()]);
    // Another stream: what became of the append above, nobody knows.
    await insistent(store, 'thing-2', { version: 0, events: [newEvent()] });
  }, 30_000);
});
