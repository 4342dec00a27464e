import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  BACKWARDS,
  binaryEvent,
  END,
  EventStoreDBClient,
  FORWARDS,
  jsonEvent,
  MaxAppendSizeExceededError,
  NO_STREAM,
  StreamDeletedError,
  StreamNotFoundError,
  streamNameFilter,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { until } from '../until.ts';
import type { Engine } from './engine.ts';
import { startEventstoreServer } from './eventstore.ts';
import { WatchedDirectory } from './watched-directory.ts';

describe('the server for tests with the protocol of EventStoreDB', () => {
  const directory = WatchedDirectory.create('eventstore-server');
  let engine: Engine;
  let client: EventStoreDBClient;

  beforeAll(async () => {
    engine = await startEventstoreServer(directory);
    client = EventStoreDBClient.connectionString(engine.address);
  });
  afterAll(async () => {
    await client.dispose();
    await engine.close();
    directory.remove();
  });

  const letter = (text = 'Hello', id = randomUUID()) => jsonEvent({ id, type: 'letter', data: { text } });

  async function read(stream: string): Promise<readonly unknown[]> {
    const texts: unknown[] = [];
    for await (const { event } of client.readStream(stream)) texts.push(event?.data);
    return texts;
  }

  it('serves the driver as the driver is', async () => {
    expect(await client.appendToStream('letters', [letter('one'), letter('two')], { expectedRevision: NO_STREAM })).toMatchObject({
      success: true,
      nextExpectedRevision: 1n,
    });
    expect(await read('letters')).toEqual([{ text: 'one' }, { text: 'two' }]);
    await expect(read('nothing')).rejects.toThrow(StreamNotFoundError);
  });

  it('refuses what the real one refuses', async () => {
    await client.appendToStream('versions', letter(), { expectedRevision: NO_STREAM });
    await expect(client.appendToStream('versions', letter(), { expectedRevision: NO_STREAM })).rejects.toThrow(WrongExpectedVersionError);
    await expect(client.appendToStream('versions', letter(), { expectedRevision: 5n })).rejects.toMatchObject({ expectedVersion: 5n, actualVersion: 0n });
    await expect(client.appendToStream('large', letter('x'.repeat(1024 * 1024)), { expectedRevision: NO_STREAM })).rejects.toThrow(MaxAppendSizeExceededError);
    await expect(client.appendToStream('ids', letter('', 'no-uuid' as never), { expectedRevision: NO_STREAM })).rejects.toThrow();
    await expect(read('large')).rejects.toThrow(StreamNotFoundError);
    await expect(read('ids')).rejects.toThrow(StreamNotFoundError);
  });

  it('stores anything', async () => {
    const data = Buffer.from([0, 0xff, 0xfe]);
    await client.appendToStream('anything', binaryEvent({ id: randomUUID(), type: 'bytes', data, metadata: data }));
    await client.appendToStream('anything', jsonEvent({ type: '$own', data: null as never }));
    const stored: unknown[] = [];
    for await (const { event } of client.readStream('anything')) stored.push([event!.type, event!.data]);
    expect(stored).toEqual([
      ['bytes', new Uint8Array(data)],
      ['$own', null],
    ]);
  });

  it('hides what a stream had when it was deleted, and goes on at its next revision', async () => {
    await client.appendToStream('deleted', [letter('one'), letter('two')]);
    await client.deleteStream('deleted');
    await expect(read('deleted')).rejects.toThrow(StreamNotFoundError);
    const { nextExpectedRevision } = await client.appendToStream('deleted', letter('three'), { expectedRevision: NO_STREAM });
    expect(nextExpectedRevision).toBe(2n);
    expect(await read('deleted')).toEqual([{ text: 'three' }]);
    await client.setStreamMetadata('deleted', { truncateBefore: 0 });
    expect(await read('deleted')).toHaveLength(3);
  });

  it('ends a stream for good with a tombstone, at the largest revision that there is', async () => {
    await client.appendToStream('buried', letter());
    await client.tombstoneStream('buried');
    await expect(read('buried')).rejects.toThrow(StreamDeletedError);
    await expect(client.appendToStream('buried', letter())).rejects.toThrow();
    for await (const { event } of client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 }))
      expect(event).toMatchObject({ streamId: 'buried', type: '$streamDeleted', revision: 9223372036854775807n });
  });

  it('leaves out what metadata say', async () => {
    await client.appendToStream('kept', [letter('one'), letter('two'), letter('three')]);
    await client.setStreamMetadata('kept', { maxCount: 2 });
    expect(await read('kept')).toEqual([{ text: 'two' }, { text: 'three' }]);
    await client.setStreamMetadata('kept', { truncateBefore: 2 });
    expect(await read('kept')).toEqual([{ text: 'three' }]);
    await client.setStreamMetadata('kept', { maxAge: 1 });
    await pause(1_100);
    expect(await read('kept')).toEqual([]);
  });

  it('refuses calls that the adapter does not make', async () => {
    const code = 12;
    for (const subscription of [client.subscribeToStream('letters'), client.subscribeToAll({ filter: streamNameFilter({ prefixes: ['letters'] }) })])
      await expect(subscription[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code });
    // Appends with credentials of their own travel on a call each, which the adapter does not make either.
    await expect(client.appendToStream('letters', letter(), { credentials: { username: 'a', password: 'b' } })).rejects.toMatchObject({ code });
  });

  describe.each([
    { version: '22.10', code: 2, thrownOut: 10 },
    { version: '24.10', code: 3, thrownOut: null },
  ])('with the ways of $version', ({ version, code, thrownOut }) => {
    const place = WatchedDirectory.create('eventstore-server-version');
    let server: Engine;
    let driver: EventStoreDBClient;

    beforeAll(async () => {
      server = await startEventstoreServer(place, { flags: ['--version', version] });
      driver = EventStoreDBClient.connectionString(server.address);
    });
    afterAll(async () => {
      await driver.dispose();
      await server.close();
      place.remove();
    });

    interface Place {
      readonly commit: bigint;
      readonly prepare: bigint;
    }

    const append = (events: Parameters<typeof driver.appendToStream>[1]) =>
      driver.appendToStream(`letters-${randomUUID()}`, events, { expectedRevision: NO_STREAM });

    async function placesOf(direction: typeof FORWARDS | typeof BACKWARDS, fromPosition: Place | typeof END, maxCount: number): Promise<readonly Place[]> {
      const places: Place[] = [];
      for await (const { event } of driver.readAll({ direction, fromPosition, maxCount })) places.push(event!.position);
      return places;
    }

    it('tells positions in bytes, one of its own for each event, and the last of an append', async () => {
      const { position: before } = await append(letter());
      const { position } = await append([letter(), letter(), letter()]);
      const [third, second, first, last] = await placesOf(BACKWARDS, END, 4);
      expect([last, third]).toEqual([before, position]);
      for (const { commit, prepare } of [first!, second!, third!]) expect(commit).toBe(prepare);
      const sizes = [first!.commit - last!.commit, second!.commit - first!.commit, third!.commit - second!.commit];
      expect(sizes.every((size) => size > 100n && size < 1_000n)).toBe(true);
      expect(new Set(sizes).size).toBeGreaterThan(1);
      expect(await placesOf(FORWARDS, second!, 10)).toEqual([second, third]);
      expect(await placesOf(BACKWARDS, second!, 2)).toEqual([first, last]);
    });

    it('does not take a position inside a record', async () => {
      const { position } = await append(letter());
      for (const inside of [1n, -1n]) {
        const fromPosition = { commit: position!.commit + inside, prepare: position!.prepare + inside };
        await expect(driver.subscribeToAll({ fromPosition })[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code });
        await expect(placesOf(FORWARDS, fromPosition, 1)).rejects.toMatchObject({ code });
        await expect(placesOf(BACKWARDS, fromPosition, 1)).rejects.toMatchObject({ code });
      }
    });

    it('waits quietly where a position lies beyond the end', async () => {
      const { position } = await append(letter());
      const fromPosition = { commit: position!.commit + 100_000n, prepare: position!.prepare + 100_000n };
      expect(await placesOf(FORWARDS, fromPosition, 1)).toEqual([]);
      const subscription = driver.subscribeToAll({ fromPosition });
      const told: unknown[] = [];
      subscription.on('data', (event) => told.push(event));
      subscription.on('error', (error) => told.push(error));
      await append(letter());
      await pause(300);
      expect(told).toEqual([]);
      await subscription.unsubscribe();
    });

    it(thrownOut === null ? 'reads on for a live subscriber that is slow' : 'throws out a live subscriber for whom more than 32 events wait', async () => {
      const { position } = await append(letter());
      const subscription = driver.subscribeToAll({ fromPosition: position! });
      let seen = 0;
      let code: unknown = null;
      subscription.on('error', (error) => (code = (error as { readonly code?: unknown }).code));
      subscription.pause();
      await new Promise<void>((resolve) => subscription.once('confirmation', resolve));
      const text = 'x'.repeat(20_000);
      for (let count = 0; count < 20; count++) await append([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(() => letter(text)));
      subscription.on('data', () => seen++);
      subscription.resume();
      await until(() => code !== null || seen === 200);
      expect(code).toBe(thrownOut);
      expect(seen === 200).toBe(thrownOut === null);
      await subscription.unsubscribe();
    });
  });

  it('is not ready at first, on request', async () => {
    const place = WatchedDirectory.create('eventstore-server-late');
    const startedAt = Date.now();
    const server = await startEventstoreServer(place, { flags: ['--not-ready', '1500'] });
    expect(Date.now() - startedAt).toBeGreaterThan(1_500);
    await server.close();
    place.remove();
  });
});
