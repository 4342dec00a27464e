import { randomUUID } from 'node:crypto';
import { binaryEvent, EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import type { EventMeta } from '#libs/event-sourcing/src/log/event-store';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { PinoLog } from '#libs/platform/src/pino.log';
import { givenServerHere, type ServerHere } from '#libs/testing/src/engines/eventstore-server/given-server-here';
import { until } from '#libs/testing/src/until';
import { ENVIRONMENT, givenServices, type GivenServices } from '#libs/testing/src/given-services';

const INSTALLATION = 'gatehouse';

let server: ServerHere;
let others: EventStoreDBClient;
let events: EventstoredbEventStore;
let services: GivenServices;
const ask: GivenServices['ask'] = (...given) => services.ask(...given);
beforeAll(async () => {
  server = await givenServerHere();
  others = EventStoreDBClient.connectionString(server.url);
  const log = new PinoLog({ level: 'silent', readable: false });
  events = await EventstoredbEventStore.connect({ url: server.url, installation: INSTALLATION, log });
  services = await givenServices((engines) => ({ ...engines, events, damage: events.damage }));
});
afterAll(async () => {
  await services.close();
  await events.close();
  await others.dispose();
  await server.close();
});

const streamOf = (id: string): string => `organization-${ENVIRONMENT}-${id}`;
const createUser = () => ask('CreateUser', { email: `${randomUUID()}@acme.test` });

/** Everybody has seen all of the log. */
async function expectEverybodyGoesOn(): Promise<void> {
  const head = await events.head();
  await services.runtime.projector.caughtUpWith(head);
  expect((await services.runtime.projector.status()).filter(({ isStopped, position }) => isStopped || position < head)).toEqual([]);
  const numbers = await services.runtime.metrics.text();
  expect(numbers).not.toMatch(/_(reaction|forwarder)_skipped_total\{[^}]*\} [1-9]/);
}

const KINDS: readonly (readonly [string, (stored: string) => Promise<unknown>])[] = [
  ['an event of another program', (stored) => others.appendToStream(stored, jsonEvent({ type: 'order', data: {} }))],
  ['an empty event', (stored) => others.appendToStream(stored, jsonEvent({ type: 'organization.updated', data: null as never }))],
  ['a deletion', (stored) => others.deleteStream(stored)],
  ['a deletion for good', (stored) => others.tombstoneStream(stored)],
  ['metadata that keep so many', (stored) => others.setStreamMetadata(stored, { maxCount: 1 })],
  ['metadata that keep so long', (stored) => others.setStreamMetadata(stored, { maxAge: 60 })],
  ['metadata that cut it', (stored) => others.setStreamMetadata(stored, { truncateBefore: 1 })],
];

it.each(KINDS)('a stream that others change refuses its calls, and everybody else goes on: %s', async (_what, change) => {
  const damaged = await ask('CreateOrganization', { name: 'Damaged' });
  const whole = await ask('CreateOrganization', { name: 'Whole' });
  await ask('UpdateOrganization', { id: damaged.id, name: 'Damaged twice' });
  await change(`${INSTALLATION}.${streamOf(damaged.id)}`);
  const user = await createUser();
  await until(() => events.damage.list().some(({ stream }) => stream === streamOf(damaged.id)));
  for (const name of ['UpdateOrganization', 'DeleteOrganization'])
    await expect(ask(name, { id: damaged.id, name: 'Never' })).rejects.toMatchObject({ kind: 'unavailable', code: 'event_log_damaged' });
  expect(await ask('UpdateOrganization', { id: whole.id, name: 'Whole still' })).toMatchObject({ name: 'Whole still' });
  expect(await ask('GetUser', { id: user.id })).toMatchObject({ id: user.id });
  await expectEverybodyGoesOn();
});

it('events of another product behind the log keep nobody waiting', async () => {
  await others.appendToStream(
    'orders',
    Array.from({ length: 500 }, () => jsonEvent({ type: 'order', data: {} })),
  );
  const { id } = await createUser();
  expect(await ask('GetUser', { id })).toMatchObject({ id });
  await expectEverybodyGoesOn();
});

it('a stream goes on once an operator has skipped what is none of ours', async () => {
  const { id } = await ask('CreateOrganization', { name: 'Skipped' });
  await others.appendToStream(`${INSTALLATION}.${streamOf(id)}`, jsonEvent({ type: 'order', data: {} }));
  await expect(ask('UpdateOrganization', { id, name: 'Never' })).rejects.toMatchObject({ code: 'event_log_damaged' });
  const meta: EventMeta = {
    environment: 'system',
    actor: { id: 'operator', source: 'system', name: null },
    requestId: 'spec',
    commandId: 'spec',
    at: Date.now(),
  };
  const record = (type: string) => ({ id: '01J00000000000000000000001', type, shape: 1, data: {}, subject: null, public: [], meta });
  await events.damage.skip({ stream: streamOf(id), revision: 1, reason: 'An order.' }, record);
  expect(await ask('UpdateOrganization', { id, name: 'Goes on' })).toMatchObject({ name: 'Goes on' });
  expect((await events.last(streamOf(id)))!.version).toBe(3);
  await expectEverybodyGoesOn();
});

it('data of ours that cannot be read stop the views that handle their type, and nobody else', async () => {
  const { id } = await ask('CreateOrganization', { name: 'Unreadable' });
  const { meta } = (await events.last(streamOf(id)))!;
  const broken = binaryEvent({ type: 'organization.updated', data: Buffer.from('{"shape":1'), metadata: Buffer.from(JSON.stringify(meta)) });
  await others.appendToStream(`${INSTALLATION}.${streamOf(id)}`, broken);
  await expect(ask('UpdateOrganization', { id, name: 'Never' })).rejects.toMatchObject({
    code: expect.stringMatching(/event_log_damaged|service_unavailable/) as unknown,
  });
  const stopped = async (): Promise<readonly string[]> =>
    (await services.runtime.projector.status()).filter(({ isStopped }) => isStopped).map(({ view }) => view);
  await until(async () => (await stopped()).includes('organizations'));
  expect(await stopped()).not.toContain('users');
  const user = await createUser();
  expect(await ask('GetUser', { id: user.id })).toMatchObject({ id: user.id });
}, 30_000);
