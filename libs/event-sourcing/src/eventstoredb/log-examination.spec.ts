import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import type { ServerHere } from '#libs/testing/src/engines/eventstore-server/given-server-here';
import { givenOwnServer, givenStore, log, opened } from '#libs/testing/src/given-event-store';
import { newEvent } from '../log/event-store.contract.ts';
import type { Damage, ExaminedPage } from '../log/log-damage.ts';
import { Connection } from './connection.ts';
import { EventstoredbEventStore } from './eventstoredb.event-store.ts';
import { fingerprintOf, KnownVersions } from './known-versions.ts';
import { examined } from './log-examination.ts';
import { StreamNames } from './stream-names.ts';
import { eventOf, type LogEvent } from './wire.ts';

describe('the log in EventStoreDB, read from end to end', () => {
  let server: ServerHere;
  let others: EventStoreDBClient;
  let store: EventstoredbEventStore;

  beforeEach(async () => {
    server = await givenOwnServer();
    others = EventStoreDBClient.connectionString(server.url);
    opened.push(() => others.dispose());
    store = await givenStore(server.url);
  });

  async function append(stream: string, count: number, from = 0): Promise<void> {
    for (let version = from; version < from + count; version++) await store.append(stream, version, [newEvent(version + 1)]);
  }

  async function pagesOf(pages: AsyncIterable<ExaminedPage>): Promise<readonly ExaminedPage[]> {
    const found: ExaminedPage[] = [];
    for await (const page of pages) found.push(page);
    return found;
  }
  const damagesOf = (pages: readonly ExaminedPage[]): readonly Damage[] => pages.flatMap(({ damages }) => damages);

  it('has all records in order, and nothing of others', async () => {
    await append('thing-1', 3);
    await others.appendToStream('orders', [jsonEvent({ type: 'order', data: {} })]);
    const another = await EventstoredbEventStore.connect({ url: server.url, installation: 'gatehouse-2', log });
    opened.push(() => another.close());
    await another.append('thing-1', 0, [newEvent()]);
    for (const version of [0, 300])
      await store.append(
        'thing-2',
        version,
        Array.from({ length: 300 }, () => newEvent()),
      );
    const pages = await pagesOf(store.damage.examine());
    expect(pages.flatMap(({ records }) => records.map(({ stream, version }) => `${stream} ${version}`))).toEqual([
      ...[1, 2, 3].map((version) => `thing-1 ${version}`),
      ...Array.from({ length: 600 }, (_, index) => `thing-2 ${index + 1}`),
    ]);
    expect(damagesOf(pages)).toEqual([]);
    expect(pages.map(({ portion }) => portion)).toEqual(pages.map(({ portion }) => portion).toSorted((one, next) => one - next));
    expect(pages.at(-1)).toMatchObject({ portion: 1 });
  });

  it('is empty where nothing was written', async () => {
    expect(await pagesOf(store.damage.examine())).toEqual([{ records: [], damages: [], position: '', portion: 1 }]);
  });

  it('names each kind of damage, whether anybody follows or has asked for the stream or not', async () => {
    for (const stream of ['foreign', 'counted', 'deleted', 'ended', 'scavenged', 'whole']) await append(`thing-${stream}`, 3);
    await others.appendToStream('gatehouse.thing-foreign', jsonEvent({ type: 'order', data: {} }));
    await others.setStreamMetadata('gatehouse.thing-counted', { maxCount: 2 });
    await others.deleteStream('gatehouse.thing-deleted');
    await others.setStreamMetadata('gatehouse.thing-scavenged', { truncateBefore: 2 });
    await server.streams.scavenge('gatehouse.thing-scavenged');
    await others.setStreamMetadata('gatehouse.thing-scavenged', {});
    await append('thing-behind', 1);
    // At the very end of the log.
    await others.tombstoneStream('gatehouse.thing-ended');
    const damages = damagesOf(await pagesOf(store.damage.examine()));
    expect(damages.filter(({ position }) => position === null)).toEqual([]);
    const places = damages.map(({ stream, revision, cause }) => `${stream} ${revision} ${cause}`);
    expect(places.filter((place) => !place.startsWith('thing-counted') && !place.startsWith('thing-deleted')).toSorted()).toEqual([
      'thing-ended null deleted',
      'thing-foreign 3 foreign',
      'thing-scavenged 1 missing',
    ]);
    expect(places).toEqual(expect.arrayContaining(['thing-counted null truncated', 'thing-deleted null truncated']));
    // Every process knows it from then on.
    expect(new Set((await givenStore(server.url)).damage.list().map(({ stream }) => stream))).toEqual(new Set(damages.map(({ stream }) => stream)));
  });

  it('names nothing twice, nor what was skipped, and sees what was repaired', async () => {
    await append('thing-1', 2);
    for (let count = 0; count < 3; count++) await others.appendToStream('gatehouse.thing-1', jsonEvent({ type: 'order', data: {} }));
    await append('thing-2', 2);
    await others.setStreamMetadata('gatehouse.thing-2', { maxCount: 1 });
    expect(damagesOf(await pagesOf(store.damage.examine())).filter(({ cause }) => cause === 'foreign')).toHaveLength(3);
    for (const revision of [2, 3, 4])
      expect(await store.damage.skip({ stream: 'thing-1', revision, reason: 'spec' }, (type) => ({ ...newEvent(), type }))).toBe(true);
    expect(await store.damage.skip({ stream: 'thing-1', revision: 3, reason: 'again' }, (type) => ({ ...newEvent(), type }))).toBe(false);
    await others.setStreamMetadata('gatehouse.thing-2', {});
    expect(damagesOf(await pagesOf(store.damage.examine()))).toEqual([]);
    expect(store.damage.list()).toEqual([]);
    await append('thing-1', 1, 5);
    expect(damagesOf(await pagesOf((await givenStore(server.url)).damage.examine()))).toEqual([]);
  });

  it('says that there is nothing to skip, or no such stream where a name is mistyped', async () => {
    await append('thing-1', 1);
    await expect(store.damage.skip({ stream: 'thing-1', revision: 0, reason: 'spec' }, (type) => ({ ...newEvent(), type }))).rejects.toThrow('it is whole');
    const skip = { stream: 'gatehouse.thing-1', revision: 0, reason: 'spec' };
    await expect(store.damage.skip(skip, (type) => ({ ...newEvent(), type }))).rejects.toThrow("There is no stream 'gatehouse.thing-1'");
  });

  it('finds gaps with room for a few streams only, and reads records once', async () => {
    const count = 40;
    for (let stream = 0; stream < count; stream++) await append(`thing-${stream}`, 3);
    const cut = [5, 17, 31].map((stream) => `thing-${stream}`);
    for (const stream of cut) {
      await others.setStreamMetadata(`gatehouse.${stream}`, { truncateBefore: 1 });
      await server.streams.scavenge(`gatehouse.${stream}`);
      await others.setStreamMetadata(`gatehouse.${stream}`, {});
    }
    const names = new StreamNames('gatehouse');
    const connection = new Connection(server.url);
    opened.push(() => connection.close());
    const search = async (request: Parameters<Connection['read']>[0], most: number): Promise<readonly LogEvent[]> =>
      (await connection.read(request, 10_000, most)).flatMap((response) => eventOf(response, names) ?? []);
    const later = await givenStore(server.url);
    const looked: string[] = [];
    const inspect = (stream: string): Promise<readonly Damage[]> => {
      looked.push(stream);
      return later.damage.inspect(stream);
    };
    const pages = await pagesOf(examined({ names, search, damage: { list: () => [], inspect }, slots: 16 }));
    expect(pages.length).toBeGreaterThan(4);
    expect(looked.toSorted()).toEqual(cut.toSorted());
    expect(
      damagesOf(pages)
        .map(({ stream, revision, cause }) => `${stream} ${revision} ${cause}`)
        .toSorted(),
    ).toEqual(cut.map((stream) => `${stream} 0 missing`).toSorted());
    expect(pages.flatMap(({ records }) => records)).toHaveLength(count * 3 - cut.length);
  });
});

describe('the versions of many streams', () => {
  it('are each known, to the last slot', () => {
    const known = new KnownVersions(64);
    const streams = Array.from({ length: 48 }, (_, index) => fingerprintOf(`thing-${index}`));
    for (const stream of streams) expect([known.isFull, known.meets(stream, 1)]).toEqual([false, true]);
    expect(known.isFull).toBe(true);
    for (const [index, stream] of streams.entries()) expect(known.meets(stream, index === 7 ? 3 : 2)).toBe(index !== 7);
    expect(known.meets(streams[7]!, 4)).toBe(true);
  });
});
