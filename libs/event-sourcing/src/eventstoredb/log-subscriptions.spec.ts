import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { ServerCredentials } from '@grpc/grpc-js';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Members, REFUSALS } from '#libs/testing/src/engines/eventstore-server/members';
import { serverOf } from '#libs/testing/src/engines/eventstore-server/server';
import { RecordPlaces } from '#libs/testing/src/engines/eventstore-server/record-places';
import { type ServerVersion, Streams } from '#libs/testing/src/engines/eventstore-server/streams';
import { freePort } from '#libs/testing/src/engines/free-port';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import { until } from '#libs/testing/src/until';
import { newEvent, take } from '../log/event-store.contract.ts';
import { type EventStore, type Position, PositionOfAnotherLog, type RecordedEvent, START } from '../log/event-store.ts';
import { EventstoredbEventStore } from './eventstoredb.event-store.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';

const log = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });

/** An event's data as the server below keeps it. */
const STORED = { data: '{"shape":1,"data":1,"subject":null,"public":[]}', metadata: JSON.stringify(newEvent().meta), contentType: '' };

describe('subscriptions to the log in EventStoreDB', () => {
  const opened: (() => Promise<unknown> | void)[] = [];
  let port: number;
  let streams: Streams;
  let store: EventstoredbEventStore;

  beforeEach(async () => {
    port = await freePort();
    await serve(await givenLog());
    store = await EventstoredbEventStore.connect({ url: `esdb://127.0.0.1:${port}?tls=false`, installation: 'gatehouse', log, timeoutMs: 10_000 });
    opened.push(() => store.close());
  });
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  async function givenLog(): Promise<EventStore> {
    const directory = WatchedDirectory.create('subscribers');
    const storage = await LmdbStorage.open({ directory: directory.path, minFree: 0 });
    opened.push(
      () => directory.remove(),
      () => storage.close(),
    );
    return new LmdbEventStore(storage);
  }

  async function serve(events: EventStore, version?: ServerVersion): Promise<void> {
    const members = new Members({ self: `127.0.0.1:${port}` });
    streams = new Streams(events, members, version);
    const server = serverOf(members, streams);
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error))),
    );
    opened.push(() => server.forceShutdown());
  }

  /** Appends so many events, up to a hundred at a time; answers the position of the last. */
  async function append(count: number, data: unknown = {}): Promise<Position> {
    let position = START;
    for (let left = count; left > 0; left -= 100) {
      const events = Array.from({ length: Math.min(left, 100) }, () => newEvent(data));
      ({ position } = await store.append(`thing-${events[0]!.id}`, 0, events));
    }
    return position;
  }

  interface Subscriber {
    readonly seen: RecordedEvent[];
    /** Null while it follows; what ended it otherwise, or 'aborted'. */
    ended: unknown;
    readonly stop: () => Promise<void>;
  }

  function subscribe(after: Position = START, handle: () => Promise<unknown> | void = () => {}): Subscriber {
    const stopping = new AbortController();
    const run = async (): Promise<void> => {
      try {
        for await (const batch of store.subscribe(after, stopping.signal)) {
          subscriber.seen.push(...batch);
          await handle();
        }
        subscriber.ended = 'aborted';
      } catch (error) {
        subscriber.ended = error;
      }
      expect(getEventListeners(stopping.signal, 'abort')).toEqual([]);
    };
    const stop = (): Promise<void> => {
      stopping.abort();
      return running;
    };
    const subscriber: Subscriber = { seen: [], ended: null, stop };
    const running = run();
    opened.push(stop);
    return subscriber;
  }

  const idsOf = (records: readonly RecordedEvent[]): readonly string[] => records.map(({ id }) => id);
  /** All that is in the log, as the server has it. */
  const written = async (): Promise<readonly string[]> => {
    const head = await streams.log.head();
    const ids: string[] = [];
    for await (const batch of streams.log.subscribe(START, AbortSignal.timeout(20_000))) {
      ids.push(...idsOf(batch));
      if (batch.at(-1)!.position >= head) break;
    }
    return ids;
  };

  it('see each event once and in order, whatever others do and append meanwhile', async () => {
    let isOver = false;
    const writers = Array.from({ length: 8 }, async () => {
      while (!isOver) await append(10);
    });
    const steady = subscribe();
    // Each leaves and comes back, from where it was, again and again.
    const comers = Array.from({ length: 8 }, async (_, number) => {
      const chosen = seededNumbers(seedOf(`subscriber ${number}`));
      const seen: RecordedEvent[] = [];
      while (!isOver) {
        const count = 1 + chosen(400);
        seen.push(...(await take(store, count, seen.at(-1)?.position ?? START)));
        if (number > 4) await pause(number * 10);
      }
      return seen;
    });
    await pause(4_000);
    isOver = true;
    await Promise.all(writers);
    const last = await append(500);
    const seen = await Promise.all(comers);
    await until(() => steady.seen.at(-1)?.position === last);
    const ids = await written();
    expect(idsOf(steady.seen)).toEqual(ids);
    for (const records of seen) {
      expect(records.length).toBeGreaterThan(0);
      expect(idsOf(records)).toEqual(ids.slice(0, records.length));
    }
    await until(() => streams.subscriptions.size === 1);
  }, 60_000);

  it('end with an error when they hang, while who begins anew meanwhile is served', async () => {
    const subscribers = [subscribe(), subscribe(), subscribe()];
    await append(20);
    await until(() => subscribers.every(({ seen }) => seen.length === 20));
    for (const subscription of streams.subscriptions) subscription.isHanging = true;
    const missed = await append(1);
    const anew = subscribe(subscribers[0]!.seen.at(-1)!.position);
    const far = subscribe();
    await until(() => anew.seen.length === 1 && far.seen.length === 21);
    expect(subscribers.map(({ ended }) => ended)).toEqual([null, null, null]);
    await until(() => subscribers.every(({ ended }) => ended !== null));
    expect(subscribers.every(({ ended, seen }) => isUnavailable(ended) && seen.length === 20)).toBe(true);
    const back = subscribers.map(({ seen }) => subscribe(seen.at(-1)!.position));
    await until(() => back.every(({ seen }) => seen.length === 1 && seen[0]!.position === missed));
    await append(5);
    await until(() => [...back, anew].every(({ seen }) => seen.length === 6));
  }, 60_000);

  it('go on when the server throws out whom it takes for slow, as often as it does', async () => {
    const near = [subscribe(), subscribe()];
    await append(20);
    await until(() => near.every(({ seen }) => seen.length === 20));
    let isOver = false;
    const writing = (async () => {
      while (!isOver) await append(40);
    })();
    const far = subscribe();
    let thrownOut = 0;
    try {
      for (let round = 0; round < 12; round++) {
        const { length } = near[0]!.seen;
        await until(() => near[0]!.seen.length > length && streams.subscriptions.size > 0);
        for (const subscription of streams.subscriptions) {
          subscription.throwOut();
          thrownOut += 1;
        }
      }
    } finally {
      isOver = true;
      await writing;
    }
    const last = await append(1);
    const subscribers = [...near, far];
    await until(() => subscribers.every(({ seen, ended }) => ended !== null || seen.at(-1)?.position === last));
    const ids = await written();
    expect(thrownOut).toBeGreaterThanOrEqual(12);
    for (const { seen, ended } of subscribers) {
      expect(ended).toBeNull();
      expect(idsOf(seen)).toEqual(ids);
    }
  }, 60_000);

  it('end with an error when they are thrown out three times without having got anywhere', async () => {
    const subscribers = [subscribe(), subscribe()];
    await append(20);
    await until(() => subscribers.every(({ seen }) => seen.length === 20));
    streams.throwsOutEverybody = true;
    for (const subscription of streams.subscriptions) subscription.throwOut();
    await until(() => subscribers.every(({ ended }) => ended !== null));
    expect(subscribers.every(({ ended, seen }) => isUnavailable(ended) && seen.length === 20)).toBe(true);
    streams.throwsOutEverybody = false;
    const back = subscribers.map(({ seen }) => subscribe(seen.at(-1)!.position));
    await append(5);
    await until(() => back.every(({ seen }) => seen.length === 5));
  }, 30_000);

  it('wait while what comes is only what the server writes about itself, and what is theirs lies behind it', async () => {
    const first = await append(1);
    const ofItsOwn = Array.from({ length: 12 }, () => newEvent(STORED));
    await streams.log.append('$stats', 0, ofItsOwn);
    const last = await append(1);
    const { log: whole } = streams;
    // The server sends one a second, as one that has very many of them.
    streams.log = Object.assign(Object.create(whole) as EventStore, {
      async *subscribe(after: Position, signal: AbortSignal) {
        for await (const batch of whole.subscribe(after, signal))
          for (const record of batch) {
            if (record.stream === '$stats') await pause(1_000, undefined, { signal });
            yield [record];
          }
      },
    });
    const subscriber = subscribe(first);
    await until(() => subscriber.seen.length === 1);
    expect([subscriber.seen[0]!.position, subscriber.ended]).toEqual([last, null]);
  }, 60_000);

  describe.each<ServerVersion>(['22.10', '24.10'])('of a server with the ways of %s', (version) => {
    beforeEach(async () => {
      port = await freePort();
      await serve(await givenLog(), version);
      store = await EventstoredbEventStore.connect({ url: `esdb://127.0.0.1:${port}?tls=false`, log, installation: 'gatehouse', timeoutMs: 10_000 });
      opened.push(() => store.close());
    });

    it('are told, each for itself, where their position is one of another log', async () => {
      await append(3);
      const before = await store.head();
      const near = [subscribe(), subscribe()];
      await until(() => near.every(({ seen }) => seen.length === 3));
      const early = near[0]!.seen[0]!.position;
      // Restored, it went on with other records: it is longer than before, and none lies where one did.
      streams.places = new RecordPlaces(100);
      for (const subscription of streams.subscriptions) subscription.throwOut();
      await until(() => near.every(({ ended }) => ended !== null));
      expect(near.map(({ ended }) => (ended as PositionOfAnotherLog).position)).toEqual([before, before]);
      await append(5);
      const foreign = [subscribe(early), subscribe(before)];
      const anew = subscribe();
      await until(() => anew.seen.length === 8 && foreign.every(({ ended }) => ended !== null));
      expect(foreign.map(({ ended }) => (ended as PositionOfAnotherLog).position)).toEqual([early, before]);
      for (const { ended, seen } of foreign) expect([ended instanceof PositionOfAnotherLog, isUnavailable(ended), seen]).toEqual([true, true, []]);
      await append(1);
      await until(() => anew.seen.length === 9);
      expect(anew.ended).toBeNull();
    }, 20_000);

    it('are not told so because the server failed twice', async () => {
      const first = await append(1);
      await append(2);
      streams.refusals.push(REFUSALS.handlerThrew, REFUSALS.handlerThrew);
      const subscriber = subscribe(first);
      await until(() => subscriber.ended !== null || subscriber.seen.length === 2);
      expect([subscriber.ended, streams.refusals]).toEqual([null, []]);
    });

    it('miss nothing, and hear nothing of it, when they do not take what comes as fast as it comes', async () => {
      const near = [subscribe(), subscribe(START, () => pause(20))];
      await append(1);
      await until(() => near.every(({ seen }) => seen.length === 1));
      const text = 'x'.repeat(5_000);
      for (let round = 0; round < 30; round++) await append(100, text);
      await until(() => near.every(({ seen, ended }) => ended !== null || seen.length === 3_001));
      const ids = await written();
      for (const { ended, seen } of near) expect([ended, idsOf(seen)]).toEqual([null, ids]);
      expect(streams.thrownOut > 0).toBe(version === '22.10');
    }, 30_000);
  });

  it('leave at once, also where nobody answers', async () => {
    const waiting = subscribe();
    await append(1);
    await until(() => waiting.seen.length === 1);
    let answer: (position: Position) => void = () => {};
    const answered = new Promise<Position>((resolve) => (answer = resolve));
    Object.assign(streams.log, { head: () => answered });
    const unanswered = subscribe();
    await pause(100);
    const head = store.head();
    await Promise.race([head, Promise.all([waiting.stop(), unanswered.stop()])]);
    expect([waiting.ended, unanswered.ended]).toEqual(['aborted', 'aborted']);
    await until(() => streams.subscriptions.size === 0);
    answer(START);
    await head;
  });
});
