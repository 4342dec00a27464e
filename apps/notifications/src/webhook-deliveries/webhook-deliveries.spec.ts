import { Webhook } from 'standardwebhooks';
import { WorkOS } from '@workos-inc/node';
import { WorkOS as WorkOS10 } from 'workos-node-10';
import {
  DeleteWebhookEndpoint,
  GetWebhookDelivery,
  RedeliverWebhook,
  ReplayWebhooks,
  RotateWebhookEndpointSecret,
  TestWebhookEndpoint,
  UpdateWebhookEndpoint,
} from '#libs/contracts/src/webhook-endpoints/operations';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { until } from '#libs/testing/src/until';
import { ENVIRONMENT, GivenNotifications, Receiver, type Received } from '../testing/given-notifications.ts';
import { INTAKE_SHARDS } from './intake-shards.ts';

/** The form of signature that both SDKs read. */
const vendorVerifies = async ({ body, headers }: Received, secret: string): Promise<boolean> =>
  new WorkOS('sk_test').webhooks
    .verifyHeader({ payload: JSON.parse(body) as unknown, sigHeader: headers['workos-signature'] as string, secret })
    .catch(() => false);

const eventIds = (records: readonly RecordedEvent[]): readonly string[] => records.flatMap((record) => record.public.map(({ id }) => id));

describe('webhooks', () => {
  let given: GivenNotifications;
  let receiver: Receiver;
  beforeEach(async () => {
    receiver = await Receiver.start();
    given = await GivenNotifications.start();
  });
  afterEach(async () => {
    await given.stop();
    await receiver.stop();
  });

  const receivedIds = (from = receiver): readonly string[] => from.received.map(({ headers }) => headers['webhook-id'] as string);
  const announced = async (count: number): Promise<readonly string[]> => {
    const records = await given.record(count);
    await given.project(records);
    return eventIds(records);
  };
  const fails = (status: number, times: number): void => {
    receiver.answer = (_request, response) => void response.writeHead(times-- > 0 ? status : 200).end(`answer ${status}`);
  };

  it('are what every kind of reader verifies', async () => {
    const { secret } = await given.endpoint(receiver.url);
    await announced(1);
    await until(() => receiver.received.length === 1);
    const { body, headers } = receiver.received[0]!;
    const header = headers['workos-signature'] as string;
    expect(headers['gatehouse-signature']).toBe(header);
    expect(header).toMatch(/^t=\d{13}, v1=[0-9a-f]{64}$/);
    expect(JSON.stringify(JSON.parse(body))).toBe(body);
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({ event: 'organization.created' });
    for (const sdk of [new WorkOS('sk_test'), new WorkOS10('sk_test')]) {
      const event = await sdk.webhooks.constructEvent({ payload: JSON.parse(body) as Record<string, unknown>, sigHeader: header, secret });
      expect(event).toMatchObject({ event: 'organization.created' });
    }
  });

  it('arrive once each, although the log is read again', async () => {
    const { id } = await given.endpoint(receiver.url);
    const ids = await announced(1_000);
    await until(() => given.isDone(id, ids));
    await given.lifecycle.stop();
    for (const shard of INTAKE_SHARDS) await given.readModels.table({ name: `webhook-intake-${shard}`, indexes: [], rebuildable: false }).clear();
    given = await given.restart();
    const more = await announced(1);
    await until(() => given.isDone(id, more));
    await given.takenIn();
    expect([...receivedIds()].sort()).toEqual([...ids, ...more].sort());
  });

  it('go to those that subscribed, from then on', async () => {
    await announced(1);
    const [wants, others, nothing] = [
      await given.endpoint(`${receiver.url}/wants`),
      await given.endpoint(`${receiver.url}/others`, ['user.created']),
      await given.endpoint(`${receiver.url}/nothing`, []),
    ];
    const [id] = await announced(1);
    await until(() => given.isDone(wants.id, [id!]));
    expect(receiver.received.map(({ path, headers }) => [path, headers['webhook-id']])).toEqual([['/wants', id]]);
    expect(await given.deliveriesOf(others.id)).toEqual([]);
    expect(await given.deliveriesOf(nothing.id)).toEqual([]);
  });

  it('are tried again, signed anew, until one is taken', async () => {
    const { id, secret } = await given.endpoint(receiver.url);
    fails(500, 2);
    await announced(1);
    await until(async () => (await given.deliveriesOf(id))[0]?.status === 'delivered');
    const [delivery] = await given.deliveriesOf(id);
    expect(delivery).toMatchObject({
      status: 'delivered',
      next_attempt_at: null,
      attempts: [
        { status_code: 500, error: 'status_not_successful', response_excerpt: 'answer 500' },
        { status_code: 500, error: 'status_not_successful' },
        { status_code: 200, error: null },
      ],
    });
    // As it is stored, where backups find it.
    const stored = await given.deliveries.deliveries.get(ENVIRONMENT, delivery!.id);
    expect(stored!.text).toContain('status_not_successful');
    expect(stored!.text).not.toContain('answer 500');
    expect(new Set(receiver.received.map(({ headers }) => headers['workos-signature'])).size).toBe(3);
    expect(new Set(receivedIds()).size).toBe(1);
    for (const received of receiver.received) expect(await vendorVerifies(received, secret)).toBe(true);
  });

  it('are given up after six attempts, and sent again when asked', async () => {
    const { id } = await given.endpoint(receiver.url);
    fails(503, 6);
    await announced(1);
    await until(async () => (await given.deliveriesOf(id))[0]?.status === 'failed');
    const [failed] = await given.deliveriesOf(id, { status: 'failed' });
    expect(failed).toMatchObject({ next_attempt_at: null });
    expect(failed!.attempts).toHaveLength(6);
    await given.webhooks.redeliver(given.operation(RedeliverWebhook, { id, delivery_id: failed!.id }));
    await until(async () => (await given.deliveriesOf(id, { status: 'delivered' })).length === 1);
    expect(await given.webhooks.get(given.operation(GetWebhookDelivery, { id, delivery_id: failed!.id }))).toMatchObject({ status: 'delivered' });
  });

  it('wait for no receiver but their own', async () => {
    await given.stop();
    given = await GivenNotifications.start({ WEBHOOK_TIMEOUT: 60_000 });
    const [dead, slow] = [await Receiver.start(), await Receiver.start()];
    dead.answer = () => {};
    slow.answer = (_request, response) => void setTimeout(() => response.writeHead(200).end(), 400);
    const [toDead, toSlow] = [await given.endpoint(dead.url), await given.endpoint(slow.url), await given.endpoint(receiver.url)];
    const ids: string[] = [];
    for (let round = 0; round < 10; round++) ids.push(...(await announced(60)));
    await until(() => receiver.received.length === 600);
    expect([...receivedIds()].sort()).toEqual(ids.sort());
    expect((await given.deliveriesOf(toDead.id)).filter(({ attempts }) => attempts.length > 0)).toEqual([]);
    expect((await given.deliveriesOf(toSlow.id, { status: 'pending' })).length).toBeGreaterThan(0);
    await dead.stop();
    await until(async () => (await given.deliveriesOf(toDead.id)).some(({ attempts }) => attempts[0]?.error === 'connection_lost'));
    await given.endpoints.delete(given.operation(DeleteWebhookEndpoint, { id: toDead.id }));
    await given.endpoints.delete(given.operation(DeleteWebhookEndpoint, { id: toSlow.id }));
    await slow.stop();
  });

  it('go on after a restart', async () => {
    const { id } = await given.endpoint(receiver.url);
    fails(500, 3);
    const ids = await announced(500);
    given = await given.restart();
    await until(() => given.isDone(id, ids));
    expect(new Set(receivedIds())).toEqual(new Set(ids));
    expect(await given.deliveriesOf(id, { status: 'pending' })).toEqual([]);
  });

  it('are dropped once their endpoint is disabled', async () => {
    const { id } = await given.endpoint(receiver.url);
    fails(500, Infinity);
    await announced(20);
    await until(async () => (await given.deliveriesOf(id, { status: 'pending' })).length === 20);
    await given.endpoints.update(given.operation(UpdateWebhookEndpoint, { id, status: 'disabled' }));
    await until(async () => (await given.deliveriesOf(id, { status: 'failed' })).length === 20);
    await until(async () => (await given.deliveries.nextDue(ENVIRONMENT, id)) === null);
    const { length } = receiver.received;
    await announced(1);
    await given.takenIn();
    await expect(given.webhooks.test(given.operation(TestWebhookEndpoint, { id, event: 'user.created' }))).rejects.toMatchObject({
      code: 'webhook_endpoint_disabled',
    });
    expect(receiver.received).toHaveLength(length);
  });

  it('stop with the deletion of their endpoint', async () => {
    const { id } = await given.endpoint(receiver.url);
    fails(500, Infinity);
    await announced(5);
    await until(() => receiver.received.length >= 5);
    await given.endpoints.delete(given.operation(DeleteWebhookEndpoint, { id }));
    await until(async () => (await given.deliveries.nextDue(ENVIRONMENT, id)) === null);
    await expect(given.deliveriesOf(id)).rejects.toMatchObject({ code: 'entity_not_found' });
  });

  it('succeed with either secret while it is replaced', async () => {
    const { id, secret: old } = await given.endpoint(receiver.url);
    const { secret } = await given.endpoints.rotateSecret(given.operation(RotateWebhookEndpointSecret, { id, overlap_seconds: 60 }));
    expect(secret).not.toBe(old);
    let known = old;
    receiver.answer = (request, response) => void vendorVerifies(request, known).then((verified) => response.writeHead(verified ? 200 : 401).end());
    for (known of [old, secret]) {
      receiver.received.length = 0;
      const [eventId] = await announced(1);
      await until(() => given.isDone(id, [eventId!]));
      const delivery = (await given.deliveriesOf(id)).find(({ event_id }) => event_id === eventId)!;
      expect(delivery.attempts.map(({ status_code }) => status_code)).toEqual(known === old ? [200] : [401, 200]);
      for (const { body, headers } of receiver.received) for (const key of [old, secret]) new Webhook(key).verify(body, headers as Record<string, string>);
    }
  });

  it('leave a secret behind at once when there is no overlap', async () => {
    const { id, secret: old } = await given.endpoint(receiver.url);
    const { secret } = await given.endpoints.rotateSecret(given.operation(RotateWebhookEndpointSecret, { id, overlap_seconds: 0 }));
    await announced(1);
    await until(() => receiver.received.length === 1);
    expect(await vendorVerifies(receiver.received[0]!, secret)).toBe(true);
    expect(() => new Webhook(old).verify(receiver.received[0]!.body, receiver.received[0]!.headers as Record<string, string>)).toThrow();
  });

  it('can be tried with a sample that is not in the feed', async () => {
    const { id, secret } = await given.endpoint(receiver.url, []);
    const { event_id } = await given.webhooks.test(given.operation(TestWebhookEndpoint, { id, event: 'organization_domain.verified' }));
    await until(() => receiver.received.length === 1);
    const { body, headers } = receiver.received[0]!;
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
      id: event_id,
      event: 'organization_domain.verified',
      data: { object: 'organization_domain' },
    });
    expect(await given.feedReader.texts(ENVIRONMENT, [event_id])).toEqual([null]);
    await until(async () => (await given.deliveriesOf(id))[0]?.status === 'delivered');
  });

  it('of the past can be sent again', async () => {
    const past = await given.record(250);
    await given.project(past);
    const since = new Date(past[100]!.meta.at).toISOString();
    const { id } = await given.endpoint(receiver.url);
    const [fresh] = await announced(1);
    await given.webhooks.replay(given.operation(ReplayWebhooks, { id, since, events: ['organization.created'] }));
    const wanted = new Set([...eventIds(past.filter(({ meta }) => meta.at >= past[100]!.meta.at)), fresh!]);
    await until(async () => new Set(receivedIds()).size === wanted.size && (await given.isDone(id, [...wanted])));
    expect(new Set(receivedIds())).toEqual(wanted);
    await expect(given.webhooks.replay(given.operation(ReplayWebhooks, { id, since, events: ['vault.data.read'] }))).rejects.toMatchObject({
      details: { errors: [{ code: 'unknown_event_type' }] },
    });
  });

  it('can be listed by status and event', async () => {
    const { id } = await given.endpoint(receiver.url);
    fails(500, Infinity);
    await announced(3);
    await until(async () => (await given.deliveriesOf(id)).length === 3);
    for (const [filter, count] of [
      [{ event: 'organization.created' }, 3],
      [{ event: 'organization.created', status: 'delivered' }, 0],
      [{ event: 'user.created' }, 0],
      [{ status: 'delivered' }, 0],
    ] as const)
      expect(await given.deliveriesOf(id, filter)).toHaveLength(count);
    expect(Object.keys((await given.deliveriesOf(id))[0]!)).not.toContain('revision');
  });

  it('are forgotten with time', async () => {
    const { id } = await given.endpoint(receiver.url);
    await announced(3);
    await until(async () => (await given.deliveriesOf(id, { status: 'delivered' })).length === 3);
    expect(await given.deliveries.sweep(ENVIRONMENT, Date.now() - 60_000, 10)).toBe(0);
    expect(await given.deliveries.sweep(ENVIRONMENT, Date.now() + 1, 10)).toBe(3);
    expect(await given.deliveriesOf(id)).toEqual([]);
  });
});
