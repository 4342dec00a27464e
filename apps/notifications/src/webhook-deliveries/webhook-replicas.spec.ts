import { setTimeout as pause } from 'node:timers/promises';
import { RedeliverWebhook, ReplayWebhooks, TestWebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/operations';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { UpcastingEventStore } from '#libs/event-sourcing/src/log/upcasts';
import { unavailable } from '#libs/platform/src/domain-error';
import { newCommandId } from '#libs/platform/src/ids';
import { ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';
import type { ShortLived } from '#libs/read-models/src/short-lived';
import { mayTake, until } from '#libs/testing/src/until';
import { ENVIRONMENT, GivenNotifications, Receiver } from '../testing/given-notifications.ts';
import { attempted, deliveryId, queuedDelivery, type StoredDelivery } from './delivery.ts';
import { RetrySchedule } from '#libs/messaging/src/webhooks/retry-schedule';

/** As a process sees it that cannot ask for leases once it is cut off. */
function cutOffAtTimes(store: ShortLived): { readonly store: ShortLived; isCutOff: boolean } {
  const seen = {
    isCutOff: false,
    store: new Proxy(store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...given: unknown[]): unknown => (name === 'lease' && seen.isCutOff ? new Promise(() => {}) : Reflect.apply(member, target, given));
      },
    }),
  };
  return seen;
}

/** Rows in an engine that is away now and then. */
class RowsAwayAtTimes extends ReadModels {
  isAway = false;

  constructor(private readonly rows: ReadModels) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    return new Proxy(this.rows.table(definition), {
      get: (table, name) => {
        const member: unknown = Reflect.get(table, name);
        if (typeof member !== 'function') return member;
        return (...given: unknown[]): unknown => {
          if (this.isAway && name !== 'dump') return Promise.reject(unavailable('The rows are away.'));
          return Reflect.apply(member, table, given);
        };
      },
    });
  }

  async drop(): Promise<void> {}
}

/** What is sent to an endpoint at the same time. */
const AT_ONCE = 16;

const eventIds = (records: readonly RecordedEvent[]): readonly string[] => records.flatMap((record) => record.public.map(({ id }) => id));

describe('webhooks of several replicas', () => {
  let receiver: Receiver;
  /** The first works on the queues. */
  let first: GivenNotifications;
  const others: GivenNotifications[] = [];
  beforeEach(async () => {
    receiver = await Receiver.start();
    first = await GivenNotifications.start();
    await until(async () => (await isHolder(first)) === true);
  });
  afterEach(async () => {
    for (const replica of others.splice(0)) await replica.stop();
    await first.stop();
    await receiver.stop();
  });

  const isHolder = async ({ metrics }: GivenNotifications): Promise<boolean> =>
    (await metrics.text()).includes('gatehouse_lease_held{work="notifications.webhook-queues"} 1');
  const another = async (...options: Parameters<GivenNotifications['replica']>): Promise<GivenNotifications> => {
    const replica = await first.replica(...options);
    others.push(replica);
    return replica;
  };
  const fails = (status: number, times: number): void => {
    receiver.answer = (_request, response) => void response.writeHead(times-- > 0 ? status : 200).end();
  };
  const receivedIds = (): readonly string[] => receiver.received.map(({ headers }) => headers['webhook-id'] as string);
  const replayOf = (past: readonly RecordedEvent[], id: string): ReplayWebhooks =>
    first.operation(ReplayWebhooks, { id, since: new Date(past[0]!.meta.at).toISOString(), events: ['organization.created'] });
  const metric = async ({ metrics }: GivenNotifications, name: string): Promise<number> =>
    Number(new RegExp(`^gatehouse_${name} (.*)$`, 'm').exec(await metrics.text())?.[1]);

  it('arrive once each, whichever of them takes their messages', async () => {
    const second = await another();
    const { id } = await first.endpoint(receiver.url);
    fails(500, 50);
    const records = await first.record(400);
    await second.project(records);
    // A process that this machine held up for longer than a lease lasts is taken over from, and what it was sending is sent again.
    let isTakenOver = false;
    await until(async () => (isTakenOver ||= await isHolder(second)) || first.isDone(id, eventIds(records)));
    await until(() => first.isDone(id, eventIds(records)));
    expect(new Set(receivedIds())).toEqual(new Set(eventIds(records)));
    expect(receiver.received.length).toBeGreaterThanOrEqual(450);
    expect(receiver.received.length).toBeLessThanOrEqual(isTakenOver ? 450 + AT_ONCE : 450);
    expect(await first.deliveriesOf(id, { status: 'pending' })).toEqual([]);
  });

  it('are sent in time, wherever they were queued, and counted by the one that works on the queues', async () => {
    const second = await another();
    const { id } = await second.endpoint(receiver.url);
    fails(500, Infinity);
    await second.webhooks.test(second.operation(TestWebhookEndpoint, { id, event: 'user.created' }));
    const asked = Date.now();
    await until(() => receiver.received.length > 0);
    expect(Date.now() - asked).toBeLessThan(mayTake(2_000));
    await until(async () => (await metric(first, 'webhook_queue_depth')) === 1 && (await metric(second, 'webhook_queue_depth')) === 0);
    receiver.answer = (_request, response) => void response.writeHead(200).end();
    await until(async () => (await second.deliveriesOf(id, { status: 'delivered' })).length === 1);
    await until(async () => (await metric(first, 'webhook_queue_depth')) === 0);

    const past = await first.record(120);
    await first.project(past);
    await second.webhooks.replay(replayOf(past, id));
    await until(() => new Set(receivedIds()).size === 121);
  });

  it('are left to a later release by who cannot read any more where they go', async () => {
    await first.lifecycle.stop();
    const later = await Receiver.start();
    const early = await another({ events: new UpcastingEventStore(first.events, { upcasts: {} }) });
    await until(() => isHolder(early));
    const { id } = await early.endpoint(receiver.url);
    const known = await early.record(1);
    await until(() => early.isDone(id, eventIds(known)));
    // To be tried again soon, by whoever knows then where.
    fails(500, Infinity);
    const waiting = await early.record(1);
    await early.project(waiting);
    await until(() => receivedIds().includes(eventIds(waiting)[0]!));
    const stream = streamName('webhook_endpoint', ENVIRONMENT, id);
    const { id: _, version, meta, position: __, ...created } = (await first.events.last(stream))!;
    const moved = { endpoint_url: later.url, normalised_url: later.url };
    const commandId = newCommandId(Date.now());
    await first.events.append(stream, version, [
      { ...created, id: commandId, type: 'webhook_endpoint.updated', shape: 2, data: moved, public: [], meta: { ...meta, commandId } },
    ]);
    await until(async () => !(await isHolder(early)));
    receiver.received.length = 0;
    const fresh = await early.record(20);
    await pause(1_500);
    expect(receivedIds()).toEqual([]);
    const replica = await another();
    await replica.project(fresh);
    await until(() => replica.isDone(id, [...eventIds(waiting), ...eventIds(fresh)]));
    expect(later.received.map(({ headers }) => headers['webhook-id'])).toEqual(expect.arrayContaining(eventIds(fresh) as string[]));
    expect(receivedIds().filter((each) => eventIds(fresh).includes(each))).toEqual([]);
    await later.stop();
  }, 30_000);

  describe('of which the one that works on the queues is cut off', () => {
    let cutOff: GivenNotifications;
    let second: GivenNotifications;
    let lease: ReturnType<typeof cutOffAtTimes>;
    beforeEach(async () => {
      await first.lifecycle.stop();
      lease = cutOffAtTimes(first.engines.shortLived);
      cutOff = await another({ shortLived: lease.store }, { WEBHOOK_TIMEOUT: 60_000 });
      await until(() => isHolder(cutOff));
      second = await another({}, { WEBHOOK_TIMEOUT: 60_000 });
    });

    it('go on elsewhere within 10 seconds', async () => {
      const { id } = await second.endpoint(receiver.url);
      lease.isCutOff = true;
      await until(() => isHolder(second));
      fails(500, 20);
      const records = await first.record(20);
      await first.project(records);
      await until(async () => (await second.deliveriesOf(id, { status: 'delivered' })).length === 20);
      expect(receiver.received).toHaveLength(40);
    });

    it('are sent at most twice, where it was in the middle of sending them', async () => {
      const { id } = await second.endpoint(receiver.url, []);
      const held: (() => void)[] = [];
      receiver.answer = (_request, response) => void held.push(() => response.writeHead(200).end());
      const past = await first.record(20);
      await first.project(past);
      await cutOff.webhooks.replay(replayOf(past, id));
      await until(() => held.length === 16);
      lease.isCutOff = true;
      receiver.answer = (_request, response) => void response.writeHead(200).end();
      await until(async () => (await second.deliveriesOf(id, { status: 'delivered' })).length === 20);
      for (const answer of held) answer();
      await pause(300);
      expect(receiver.received).toHaveLength(36);
      expect(await second.deliveriesOf(id, { status: 'pending' })).toEqual([]);
    });
  });

  it('tell how long the oldest has been waiting', async () => {
    const { id } = await first.endpoint(receiver.url);
    await first.lifecycle.stop();
    const waiting = queuedDelivery({
      endpointId: id,
      eventId: 'event_01J00000000000000000000000',
      event: 'user.created',
      now: Date.now() - 7_200_000,
      sample: '{}',
    });
    await first.deliveries.save(ENVIRONMENT, [waiting]);
    const replica = await another();
    await until(() => receiver.received.length === 1);
    expect(await metric(replica, 'webhook_queue_lag_seconds')).toBeGreaterThan(3_600);
  });

  it('miss nothing while an engine is away for longer than tries would last', async () => {
    await first.lifecycle.stop();
    const rows = new RowsAwayAtTimes(first.readModels);
    const replica = await another({ readModels: rows });
    await replica.endpoint(receiver.url);
    const records = await first.record(30);
    rows.isAway = true;
    await first.project(records);
    await pause(3_000);
    rows.isAway = false;
    await until(() => receiver.received.length >= 30);
    expect([...receivedIds()].sort()).toEqual([...eventIds(records)].sort());
  });

  it('stop although an engine is away', async () => {
    const rows = new RowsAwayAtTimes(first.readModels);
    await first.lifecycle.stop();
    const replica = await another({ readModels: rows });
    await replica.endpoint(receiver.url);
    rows.isAway = true;
    await first.project(await first.record(3));
    await pause(200);
    const asked = Date.now();
    await replica.lifecycle.stop();
    expect(Date.now() - asked).toBeLessThan(mayTake(3_000));
    const next = await another();
    await until(() => receiver.received.length >= 3);
    expect(next).toBeDefined();
  });

  describe('that change one delivery at the same time', () => {
    const schedule = new RetrySchedule([60_000]);
    const outcome = (delivery: StoredDelivery, status: number): StoredDelivery => {
      const answer = { status, error: null, excerpt: null, retryAfter: null };
      return attempted(delivery, [{ startedAt: Date.now(), latency: 1, answer }], schedule, Date.now());
    };
    const ENDPOINT = 'we_01J00000000000000000000000';
    let waiting: StoredDelivery;
    beforeEach(async () => {
      const eventId = 'event_01J00000000000000000000000';
      waiting = queuedDelivery({ endpointId: ENDPOINT, eventId, event: 'user.created', now: Date.now() });
      await first.deliveries.save(ENVIRONMENT, [waiting]);
      await first.deliveries.done(ENVIRONMENT, [`${deliveryId(ENDPOINT, eventId)}.1`]);
    });

    it('keep what was recorded first, and send nothing again that was delivered', async () => {
      await first.deliveries.save(ENVIRONMENT, [outcome(waiting, 200)]);
      await first.deliveries.save(ENVIRONMENT, [outcome(waiting, 500)]);
      expect(await first.deliveries.get(ENVIRONMENT, waiting.id)).toMatchObject({ status: 'delivered' });
      expect(await first.deliveries.due(ENVIRONMENT, ENDPOINT, Date.now() + 600_000, 10)).toMatchObject([{ delivery: 'overtaken' }]);
    });

    it('lose no attempt that is still to come', async () => {
      await first.deliveries.save(ENVIRONMENT, [outcome(waiting, 500)]);
      await first.deliveries.save(ENVIRONMENT, [outcome(waiting, 200)]);
      expect(await first.deliveries.due(ENVIRONMENT, ENDPOINT, Date.now() + 600_000, 10)).toMatchObject([{ delivery: { status: 'pending' } }]);
    });

    it('tell whoever was slower what is on record instead', async () => {
      const [delivered, failed] = [outcome(waiting, 200), outcome(waiting, 500)];
      await first.deliveries.save(ENVIRONMENT, [delivered]);
      expect(await first.deliveries.savedInstead(ENVIRONMENT, [delivered])).toEqual([]);
      expect(await first.deliveries.savedInstead(ENVIRONMENT, [failed])).toEqual([delivered]);
    });
  });

  it('are sent again when asked, also while they are tried', async () => {
    const second = await another();
    const { id } = await first.endpoint(receiver.url);
    fails(500, 1);
    await first.project(await first.record(1));
    await until(async () => (await first.deliveriesOf(id)).length === 1);
    const [delivery] = await first.deliveriesOf(id);
    const redeliver = async (): Promise<void> => {
      const asked = Array.from({ length: 5 }, (_, index) =>
        [first, second][index % 2]!.webhooks.redeliver(first.operation(RedeliverWebhook, { id, delivery_id: delivery!.id })),
      );
      await Promise.all(asked);
    };
    await redeliver();
    await until(async () => (await first.deliveriesOf(id, { status: 'delivered' })).length === 1);
    // What was delivered is sent no more unless somebody asks.
    const { length } = receiver.received;
    await redeliver();
    await until(() => receiver.received.length > length);
    await until(async () => (await first.deliveriesOf(id, { status: 'delivered' })).length === 1);
  });

  it('have no more endpoints than the limit, also when many are created at once', async () => {
    const limit = { WEBHOOK_ENDPOINTS_PER_ENVIRONMENT: 5 };
    const replicas = [await another({}, limit), await another({}, limit)];
    const created = await Promise.allSettled(Array.from({ length: 16 }, (_, index) => replicas[index % 2]!.endpoint(`${receiver.url}/${index}`)));
    expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    await expect(replicas[0]!.endpoint(`${receiver.url}/more`)).rejects.toMatchObject({ code: 'webhook_endpoint_limit_reached' });
  });
});
