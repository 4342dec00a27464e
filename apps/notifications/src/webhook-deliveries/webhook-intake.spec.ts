import { setTimeout as pause } from 'node:timers/promises';
import { checkpointsOf } from '#libs/event-sourcing/src/following/forwarder';
import { eventLogDamaged } from '#libs/event-sourcing/src/log/log-damage';
import type { EventStore, Position, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { UnreadableRecord } from '#libs/event-sourcing/src/log/lazy-record';
import { KeyMissing } from '#libs/event-sourcing/src/sealing/key-store';
import { UpdateWebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/operations';
import { placeOf } from '#libs/read-models/src/read-models';
import { until } from '#libs/testing/src/until';
import { ENVIRONMENT, GivenNotifications, Receiver } from '../testing/given-notifications.ts';
import { deliveryId, queuedDelivery } from './delivery.ts';
import { INTAKE_SHARDS, shardOf } from './intake-shards.ts';

const HOUR = 60 * 60_000;
const eventIds = (records: readonly RecordedEvent[]): readonly string[] => records.flatMap((record) => record.public.map(({ id }) => id));

/** A log in which single records cannot be read by whoever follows it, for as long as a spec wants. */
class LogWithUnreadable {
  readonly reasons = new Map<string, unknown>();
  readonly events: EventStore;

  constructor(log: EventStore) {
    const seen = (records: readonly RecordedEvent[]): readonly RecordedEvent[] =>
      records.map((record) => (this.reasons.has(record.id) ? new UnreadableRecord(record, this.reasons.get(record.id)) : record));
    const subscribe = async function* (...given: Parameters<EventStore['subscribe']>): AsyncIterable<readonly RecordedEvent[]> {
      for await (const batch of log.subscribe(...given)) yield seen(batch);
    };
    const readBackwards = async (...given: Parameters<EventStore['readBackwards']>) => seen(await log.readBackwards(...given));
    this.events = new Proxy(log, {
      get: (target, name) => {
        if (name === 'subscribe') return subscribe;
        if (name === 'readBackwards') return readBackwards;
        const member: unknown = Reflect.get(target, name);
        return typeof member === 'function' ? (member.bind(target) as unknown) : member;
      },
    });
  }
}

describe('the intake of webhooks', () => {
  let receiver: Receiver;
  /** Opens the engines, and stops before anything is recorded. */
  let engines: GivenNotifications;
  let running: GivenNotifications[];
  beforeEach(async () => {
    receiver = await Receiver.start();
    engines = await GivenNotifications.start();
    running = [];
  });
  afterEach(async () => {
    for (const each of running) await each.stop();
    await engines.stop();
    await receiver.stop();
  });

  const receivedIds = (): readonly string[] => receiver.received.map(({ headers }) => headers['webhook-id'] as string);
  const start = async (...options: Parameters<GivenNotifications['replica']>): Promise<GivenNotifications> => {
    const started = await engines.replica(...options);
    running.push(started);
    return started;
  };
  const metric = async ({ metrics }: GivenNotifications, name: string): Promise<number> =>
    Number(new RegExp(`^gatehouse_${name} (.*)$`, 'm').exec(await metrics.text())?.[1]);

  it('has each organization in one of twelve shards for ever, and what belongs to none in that of its stream', () => {
    const meta = { environment: ENVIRONMENT, actor: { id: 'a', source: 'api', name: null }, requestId: '1', commandId: '1', at: 0 };
    const of = (organization: string): number => shardOf({ stream: 'other', meta: { ...meta, organization } });
    expect(['org_01HZZZZZZZZZZZZZZZZZZZZZZZ', 'org_01J00000000000000000000000'].map(of)).toEqual([7, 11]);
    expect(shardOf({ stream: 'org_01HZZZZZZZZZZZZZZZZZZZZZZZ', meta })).toBe(7);
    const counts = INTAKE_SHARDS.map(
      (shard) => Array.from({ length: 12_000 }, (_, n) => of(`org_01J${n.toString(36).padStart(23, '0')}`)).filter((one) => one === shard).length,
    );
    expect(Math.min(...counts)).toBeGreaterThan(800);
    expect(Math.max(...counts)).toBeLessThan(1_200);
  });

  it('makes the same deliveries as releases before it, whose ids are known', () => {
    expect(deliveryId('we_01J00000000000000000000000', 'event_01J00000000000000000000000')).toBe('webhook_delivery_01J0000000FRPSD2W1N888WC5E');
  });

  it('sends an endpoint everything that was recorded after it, and nothing from before', async () => {
    await engines.lifecycle.stop();
    const service = engines;
    const before = await service.record(20);
    const { id } = await service.endpoint(receiver.url);
    const after = await service.record(20);
    // Those that find the endpoint among the rows as well as those that see it come.
    await service.endpoints.update(service.operation(UpdateWebhookEndpoint, { id, events: ['organization.created', 'user.created'] }));
    await service.project([...before, ...after]);
    const replica = await start();
    await until(() => replica.isDone(id, eventIds(after)));
    await replica.takenIn();
    expect([...receivedIds()].sort()).toEqual([...eventIds(after)].sort());
  });

  it('waits until it knows the endpoints as they were when an event was recorded', async () => {
    await engines.lifecycle.stop();
    let isOpen = false;
    let count = 0;
    const subscribe = async function* (...given: Parameters<EventStore['subscribe']>): AsyncIterable<readonly RecordedEvent[]> {
      // The endpoints are followed from the beginning of a start on, before all else.
      const isOfEndpoints = count++ === 0;
      for await (const batch of (engines.events as EventStore).subscribe(...given)) {
        while (isOfEndpoints && !isOpen) await pause(20);
        yield batch;
      }
    };
    const replica = await start({
      events: new Proxy(engines.events, {
        get: (target, name) => {
          const member: unknown = name === 'subscribe' ? subscribe : Reflect.get(target, name);
          return typeof member === 'function' ? (member.bind(target) as unknown) : member;
        },
      }),
    });
    const { id } = await engines.endpoint(receiver.url);
    const records = await engines.record(30);
    await engines.project(records);
    await pause(1_500);
    expect(receivedIds()).toEqual([]);
    isOpen = true;
    await until(() => replica.isDone(id, eventIds(records)));
    expect([...receivedIds()].sort()).toEqual([...eventIds(records)].sort());
  });

  it('sets aside a record that fails for good, goes on with the next, and repeats it when asked', async () => {
    await engines.lifecycle.stop();
    const log = new LogWithUnreadable(engines.events);
    const replica = await start({ events: log.events });
    const { id } = await replica.endpoint(receiver.url);
    const stream = await engines.recordTogether(3, (second) => log.reasons.set(second, eventLogDamaged('a stream')));
    await until(() => replica.isDone(id, [eventIds(stream)[0]!, eventIds(stream)[2]!]));
    await until(async () => (await metric(replica, 'webhook_intake_set_aside_total')) === 1);
    const { aside, repeats } = replica.work;
    expect(await aside.list()).toMatchObject([
      { position: stream[1]!.position, id: stream[1]!.id, error: expect.stringContaining('changed from outside') as string },
    ]);
    // As it is stored, where backups find it.
    for await (const { text } of replica.readModels.table({ name: 'webhook_set_aside', indexes: [], rebuildable: false }).dump())
      expect(text).not.toContain('changed from outside');
    await engines.project(stream);

    expect(await repeats.repeat(null)).toMatchObject([{ outcome: expect.any(Error) as Error }]);
    expect(await aside.list()).toHaveLength(1);
    log.reasons.clear();
    expect(await repeats.repeat('0')).toEqual([]);
    expect(await repeats.repeat(stream[1]!.position)).toMatchObject([{ outcome: 1 }]);
    await until(() => replica.isDone(id, eventIds(stream)));
    expect(await aside.list()).toEqual([]);
    expect([...receivedIds()].sort()).toEqual([...eventIds(stream)].sort());
  });

  it('stores how far it is only now and then where nobody wants what is recorded: a write that comes alone costs no second one', async () => {
    await engines.lifecycle.stop();
    const stored: Position[] = [];
    const readModels = new Proxy(engines.readModels, {
      get: (target, name) => {
        if (name !== 'writeAll') return (Reflect.get(target, name) as (() => unknown) | undefined)?.bind?.(target);
        return (writes: Parameters<typeof target.writeAll>[0]) => {
          for (const { table, checkpoint = '' } of writes) if (table.definition.name.startsWith('webhook-intake-')) stored.push(placeOf(checkpoint).position);
          return target.writeAll(writes);
        };
      },
    });
    const replica = await start({ readModels });
    await replica.endpoint(receiver.url, ['user.created']);
    const records: RecordedEvent[] = [];
    for (let number = 0; number < 40; number++) {
      records.push(...(await engines.record(1)));
      await pause(10);
    }
    const last = records.at(-1)!;
    await until(() => stored.some((checkpoint) => checkpoint >= last.position));
    // Each of the twelve about once a second.
    expect(stored.length).toBeLessThan(records.length);
    expect(receivedIds()).toEqual([]);
  });

  it('goes on after a pause that was longer than its leases last, where nobody took them', async () => {
    await engines.lifecycle.stop();
    const replica = await start();
    const { id } = await replica.endpoint(receiver.url);
    const before = await engines.record(1);
    await until(() => replica.isDone(id, eventIds(before)));
    const now = performance.now.bind(performance);
    let records: readonly RecordedEvent[];
    try {
      performance.now = () => now() + 3_500;
      records = await engines.record(12);
      // Before the next renewal the intake meets them, and finds that it may not hold its leases any more.
      await pause(200);
    } finally {
      performance.now = now;
    }
    await until(() => replica.isDone(id, eventIds(records)));
  });

  it('waits for a record whose key is missing, having sent what lies before it', async () => {
    await engines.lifecycle.stop();
    const log = new LogWithUnreadable(engines.events);
    const replica = await start({ events: log.events });
    const { id } = await replica.endpoint(receiver.url);
    const stream = await engines.recordTogether(3, (second) => log.reasons.set(second, new KeyMissing('person.1')));
    await until(() => replica.isDone(id, [eventIds(stream)[0]!]));
    await pause(2_000);
    expect(receivedIds()).toEqual([eventIds(stream)[0]]);
    log.reasons.clear();
    await until(() => replica.isDone(id, eventIds(stream)));
    expect(await metric(replica, 'webhook_intake_set_aside_total')).toBe(0);
  });

  describe('that never ran', () => {
    /** What an installation of the release before has: its log, its feed, how far its forwarders are, and some deliveries. */
    async function upgraded(
      forwarded: (records: readonly RecordedEvent[]) => Position | null,
      ages: readonly number[],
      shown = (records: readonly RecordedEvent[]) => records,
    ) {
      await engines.lifecycle.stop();
      const { id } = await engines.endpoint(receiver.url);
      const records: RecordedEvent[] = [];
      for (const age of ages) records.push(...(await engines.record(1, Date.now() - age)));
      await engines.project(shown(records));
      const position = forwarded(records);
      if (position !== null) await engines.readModels.table(checkpointsOf('identity')).write([], position);
      return { id, records };
    }

    it('begins an hour before what was announced, and not at the start of the log', async () => {
      const { id, records } = await upgraded((all) => all[4]!.position, [50 * HOUR, 30 * HOUR, 2.5 * HOUR, 1.9 * HOUR, 1.5 * HOUR, HOUR, 0]);
      const replica = await start();
      const expected = eventIds(records.slice(3));
      await until(() => replica.isDone(id, expected));
      await replica.takenIn();
      expect([...receivedIds()].sort()).toEqual([...expected].sort());
    });

    it('knows by their ids the deliveries that the release before has made', async () => {
      const { id, records } = await upgraded((all) => all.at(-1)!.position, [3_000, 2_000, 1_000, 0]);
      // As it stored them.
      const made = eventIds(records.slice(0, 3)).map((eventId) => {
        const delivery = queuedDelivery({ endpointId: id, eventId, event: 'organization.created', now: Date.now() });
        return { ...delivery, status: 'delivered' as const, next_attempt_at: null };
      });
      await engines.deliveries.save(ENVIRONMENT, made);
      const replica = await start();
      await until(() => replica.isDone(id, eventIds(records)));
      await replica.takenIn();
      expect(receivedIds()).toEqual(eventIds(records.slice(3)));
    });

    it('begins an hour back where nothing was ever announced, and waits for the feed to tell where that is', async () => {
      const { id, records } = await upgraded(() => null, [3 * HOUR, 0.5 * HOUR, 0]);
      const late = await engines.record(1);
      const replica = await start();
      await pause(1_500);
      expect(receivedIds()).toEqual([]);
      await engines.project(late);
      const expected = eventIds([...records.slice(1), ...late]);
      await until(() => replica.isDone(id, expected));
      await replica.takenIn();
      expect([...receivedIds()].sort()).toEqual([...expected].sort());
    });

    it('makes no deliveries again that were forgotten since, where nothing happened for long', async () => {
      const { id, records } = await upgraded((all) => all[1]!.position, [40 * 24 * HOUR + 1_000, 40 * 24 * HOUR, 40 * 24 * HOUR, 0]);
      const replica = await start();
      const expected = eventIds(records.slice(2));
      await until(() => replica.isDone(id, expected));
      await replica.takenIn();
      expect([...receivedIds()].sort()).toEqual([...expected].sort());
    });

    it('makes no deliveries of what has left the feed', async () => {
      const { id, records } = await upgraded(
        (all) => all.at(-1)!.position,
        [100 * 24 * HOUR, 0],
        (all) => all.slice(1),
      );
      const replica = await start();
      await until(() => replica.isDone(id, eventIds(records.slice(1))));
      await replica.takenIn();
      expect(receivedIds()).toEqual(eventIds(records.slice(1)));
    });
  });
});
