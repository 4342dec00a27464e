import { randomUUID } from 'node:crypto';
import {
  EventStoreDBClient,
  jsonEvent,
  MaxAppendSizeExceededError,
  NO_STREAM,
  StreamNotFoundError,
  streamNameFilter,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
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

  it('refuses calls that the adapter does not make', async () => {
    const code = 12;
    await expect(client.deleteStream('letters')).rejects.toMatchObject({ code });
    await expect(client.tombstoneStream('letters')).rejects.toMatchObject({ code });
    for (const subscription of [client.subscribeToStream('letters'), client.subscribeToAll({ filter: streamNameFilter({ prefixes: ['letters'] }) })])
      await expect(subscription[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code });
    // Appends with credentials of their own travel on a call each, which the adapter does not make either.
    await expect(client.appendToStream('letters', letter(), { credentials: { username: 'a', password: 'b' } })).rejects.toMatchObject({ code });
  });
});
