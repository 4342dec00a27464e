import { setTimeout as pause } from 'node:timers/promises';
import { EventStoreDBClient } from '@eventstore/db-client';
import { newUlid } from '#libs/platform/src/ids';
import { StartRefused } from '#libs/platform/src/start-refused';
import { eventstore } from '#libs/testing/src/engines/eventstore';
import { eventstoreCommand } from '#libs/testing/src/engines/eventstore-command';
import { REFUSALS } from '#libs/testing/src/engines/eventstore-server/members';
import { givenEngine, givenEventstore } from '#libs/testing/src/engines/given';
import { givenOwnServer, givenServer, givenSmallServer, givenStore, hostOf, log, opened } from '#libs/testing/src/given-event-store';
import { until } from '#libs/testing/src/until';
import { eventStoreContract, newEvent, take } from '../log/event-store.contract.ts';
import { type Appended, type RecordedEvent, START, WrongVersion } from '../log/event-store.ts';
import { EventstoredbEventStore } from './eventstoredb.event-store.ts';

/** A real one takes seconds to start: the tests share it, as installations do. */
const real = eventstoreCommand() === null ? null : await givenEngine(eventstore);
let installations = 0;
/** After it a request is given up, and a start is not. */
const TIME_OF_A_REQUEST_MS = 4_000;

eventStoreContract('EventStoreDB', async () => {
  const url = real?.address ?? (await givenOwnServer()).url;
  const installation = `installation-${++installations}`;
  return async () => {
    const store = await EventstoredbEventStore.connect({ url, installation, log });
    return { store, close: () => store.close() };
  };
});

/** The server of `EVENTSTORE_URL`, or a container of the real one, where there is either. */
const shared = await givenEventstore();

describe('an EventStoreDB that others write to as well', () => {
  it('keeps the promises of the log', async () => {
    const [store, other] = [await givenStore(shared!), await givenStore(shared!)];
    const stream = `thing-${newUlid(Date.now())}`;
    const before = await store.head();
    expect(await store.read(stream)).toEqual([]);
    expect(await store.last(stream)).toBeNull();
    const events = [newEvent({ text: 'Zoë 日本 😀 \u0000' }), newEvent()];
    const first = await store.append(stream, 0, events);
    expect(first.version).toBe(2);
    expect(first.position > before).toBe(true);
    expect((await other.head()) >= first.position).toBe(true);
    expect(await other.append(stream, 0, events)).toEqual(first);
    await expect(other.append(stream, 0, [newEvent()])).rejects.toThrow(WrongVersion);
    await expect(other.append(stream, 1, [events[0]!])).rejects.toThrow(WrongVersion);
    const third = await other.append(stream, 2, [newEvent()]);
    expect(third.position > first.position).toBe(true);
    expect(await store.append(stream, 0, events)).toEqual(first);
    const records = await store.read(stream);
    expect(records.map(({ version }) => version)).toEqual([1, 2, 3]);
    expect(records[0]).toMatchObject(events[0]!);
    expect(records.map(({ position }) => position).slice(1)).toEqual([first.position, third.position]);
    expect(await store.last(stream)).toEqual(records[2]);
    expect(await store.read(stream, 3)).toEqual([records[2]]);
    const followed: RecordedEvent[] = [];
    for await (const batch of store.subscribe(before, AbortSignal.timeout(10_000))) {
      followed.push(...batch.filter((record) => record.stream === stream));
      if (followed.length === 3) break;
    }
    expect(followed).toEqual(records);
  }, 30_000);
});

describe('an event store in EventStoreDB', () => {
  it('sees nothing of what the server writes for itself', async () => {
    const { address } = await givenServer({ systemEvents: true });
    const store = await givenStore(address);
    await pause(1_000);
    expect(await store.head()).toBe(START);
    const appended: Appended[] = [];
    for (let number = 0; number < 5; number++) {
      appended.push(await store.append(`thing-${number}`, 0, [newEvent(number)]));
      await pause(500);
      expect(await store.head()).toBe(appended.at(-1)!.position);
    }
    const fresh = await givenStore(address);
    expect(await fresh.head()).toBe(appended.at(-1)!.position);
    const records = await take(store, 5);
    expect(records.map(({ position }) => position)).toEqual(appended.map(({ position }) => position));
    // They were in between.
    const driver = EventStoreDBClient.connectionString(address);
    opened.push(() => driver.dispose());
    const seen: boolean[] = [];
    for await (const { event } of driver.readAll()) seen.push(event!.streamId.startsWith('$'));
    expect(seen.slice(seen.indexOf(false), seen.lastIndexOf(false))).toContain(true);
  }, 30_000);

  it('sees nothing of another installation, nor of another product, on the same server', async () => {
    const { url, streams } = await givenOwnServer();
    const [store, other] = [await givenStore(url, 'gatehouse'), await givenStore(url, 'gatehouse-2')];
    const foreign = [newEvent({ data: '{"id":1}', metadata: '', contentType: 'application/json' })];
    // Neither a prefix without its dot, nor the name of a stream of ours without the prefix.
    for (const stream of ['gatehouse', 'gatehousething-1', 'thing-1', 'orders.gatehouse.thing-1']) await streams.log.append(stream, 0, foreign);
    expect(await other.append('thing-1', 0, [newEvent('other'), newEvent('other')])).toMatchObject({ version: 2 });
    expect([await store.head(), await store.read('thing-1'), await store.last('thing-1')]).toEqual([START, [], null]);
    expect(await store.readBackwards('thing-1', 10)).toEqual([]);

    const appended = [await store.append('thing-1', 0, [newEvent('ours')])];
    const followed = take(store, 2);
    await other.append('thing-1', 2, [newEvent('other')]);
    expect(await store.head()).toBe(appended[0]!.position);
    appended.push(await store.append('thing-1', 1, [newEvent('ours')]));
    await streams.log.append('orders', 0, foreign);
    expect(await store.head()).toBe(appended[1]!.position);
    expect((await followed).map(({ stream, data }) => [stream, data])).toEqual(Array.from({ length: 2 }, () => ['thing-1', 'ours']));
    expect((await take(other, 3)).map(({ stream, data }) => [stream, data])).toEqual(Array.from({ length: 3 }, () => ['thing-1', 'other']));
    expect((await streams.log.read('gatehouse-2.thing-1')).map(({ version }) => version)).toEqual([1, 2, 3]);
    const fresh = await givenStore(url, 'gatehouse-2');
    expect(await fresh.head()).toBe((await fresh.last('thing-1'))!.position);
  });

  describe('says which log it is', () => {
    const STREAM = 'gatehouse.installation';

    it('by a random id of each installation, which the first of several writes and all of them read, and no reader of the log meets', async () => {
      const { url, streams } = await givenOwnServer();
      const stores = await Promise.all(Array.from({ length: 5 }, () => givenStore(url)));
      const identities = await Promise.all(stores.map((store) => store.identity()));
      expect(identities[0]).toEqual({ installation: 'gatehouse', id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
      expect(new Set(identities.map(({ id }) => id)).size).toBe(1);
      expect(await streams.log.read(STREAM)).toHaveLength(1);
      const [store] = stores as [EventstoredbEventStore];
      expect(await store.head()).toBe(START);
      const { position } = await store.append('thing-1', 0, [newEvent()]);
      expect((await take(store, 1)).map(({ stream }) => stream)).toEqual(['thing-1']);
      const later = await givenStore(url);
      expect([await later.identity(), await later.head()]).toEqual([identities[0], position]);
      const other = await (await givenStore(url, 'gatehouse-2')).identity();
      expect([other.installation, other.id === identities[0]!.id]).toEqual(['gatehouse-2', false]);
      for (const ask of [() => store.append('installation', 0, [newEvent()]), () => store.read('installation')])
        await expect(ask()).rejects.toThrow(RangeError);
    });

    it('once, when the answer to the first append was lost', async () => {
      const { url, streams } = await givenOwnServer();
      streams.answers.push('Timeout');
      const { id } = await (await givenStore(url)).identity();
      expect(await (await givenStore(url)).identity()).toMatchObject({ id });
      expect(await streams.log.read(STREAM)).toHaveLength(1);
    });

    it('later, when the server answers only after the time of a request', async () => {
      const { url, members } = await givenOwnServer();
      const store = await EventstoredbEventStore.connect({ url, installation: 'gatehouse', log, timeoutMs: 60_000 });
      opened.push(() => store.close());
      members.refusals.push(...Array.from({ length: 10_000 }, () => REFUSALS.noLeader));
      let isTold = false;
      const told = store.identity().finally(() => (isTold = true));
      await pause(TIME_OF_A_REQUEST_MS + 500);
      expect(isTold).toBe(false);
      members.refusals.length = 0;
      expect(await told).toMatchObject({ installation: 'gatehouse' });
    });

    it('to whom may only read, once somebody else has said it', async () => {
      const { url, streams } = await givenOwnServer();
      const [reader, writer] = [await givenStore(url), await givenStore(url)];
      streams.answers.push('AccessDenied');
      const waiting = reader.identity();
      await until(() => streams.answers.length === 0);
      const { id } = await writer.identity();
      expect(await waiting).toMatchObject({ id });
    });

    it('or refuses the start when nobody says it in time', async () => {
      const { url, streams } = await givenOwnServer();
      const store = await EventstoredbEventStore.connect({ url, installation: 'gatehouse', log, timeoutMs: 100 });
      opened.push(() => store.close());
      streams.answers.push('AccessDenied', 'AccessDenied');
      await expect(store.identity()).rejects.toThrow(
        new StartRefused(
          'EventStoreDB holds no log of the installation gatehouse yet, and does not let the user in EVENTSTORE_URL begin one: start a service first, whose user may append.',
        ),
      );
    });

    it('or refuses it when the user may not read that', async () => {
      const { url, members } = await givenOwnServer();
      const store = await givenStore(url);
      members.refusals.push(REFUSALS.denied);
      await expect(store.identity()).rejects.toThrow(
        new StartRefused(`EventStoreDB does not let the user in EVENTSTORE_URL read ${STREAM}. What a user has to be allowed stands in docs/operations.md.`),
      );
    });

    it.each([['no JSON'], ['{"data":{"id":7}}'], ['{}']])('or refuses it when somebody else wrote there: %s', async (data) => {
      const { url, streams } = await givenOwnServer();
      await streams.log.append(STREAM, 0, [newEvent({ data, metadata: '', contentType: 'application/json' })]);
      await expect((await givenStore(url)).identity()).rejects.toThrow(
        new StartRefused(
          `The stream ${STREAM} in EventStoreDB does not begin with what it was begun with: it was cut, deleted, or written by somebody else. Put the log back from a backup.`,
        ),
      );
    });
  });

  it('takes up to 1 MiB at once, and refuses more without harm to others', async () => {
    const store = await givenStore((await givenServer()).address);
    const neighbours = Array.from({ length: 20 }, (_, number) => store.append(`neighbour-${number}`, 0, [newEvent()]));
    await expect(store.append('thing-1', 0, [newEvent('x'.repeat(1024 * 1024))])).rejects.toThrow(
      /^An append to gatehouse\.thing-1 has 10\d{5} bytes, and the log takes 1048576 at once\.$/,
    );
    expect(await store.append('thing-1', 0, [newEvent('x'.repeat(1024 * 1024 - 1_000))])).toMatchObject({ version: 1 });
    await Promise.all(neighbours);
    expect((await store.last('thing-1'))!.data).toHaveLength(1024 * 1024 - 1_000);
  });

  it('finds the leader, by any member of the cluster', async () => {
    const leader = await givenSmallServer();
    const follower = await givenSmallServer('--leader', hostOf(leader));
    const [event, other] = [newEvent(), newEvent()];
    await (await givenStore(follower.address)).append('thing-1', 0, [event]);
    await (await givenStore(`esdb://${hostOf(follower)},${hostOf(leader)}?tls=false`)).append('thing-1', 1, [other]);
    expect((await take(await givenStore(leader.address), 2)).map(({ id }) => id)).toEqual([event.id, other.id]);
  });
});
