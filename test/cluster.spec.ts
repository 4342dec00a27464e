import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { CreateEnvironment, CreateEnvironmentKey, RevokeEnvironmentKey } from '#libs/contracts/src/environments/operations';
import type { Class, Operation } from '#libs/contracts/src/operation';
import type { RemoteOperations } from '#libs/messaging/src/routed.operation-transport';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { TransportSettings } from '#libs/platform/src/config/settings';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { openRemoteOperations } from '#libs/runtime/src/transport';
import { Cluster } from '#libs/testing/src/cluster/cluster';
import type { App, ClusterProcess } from '#libs/testing/src/cluster/cluster-process';
import { gatehouse } from '#libs/testing/src/process';
import { seedOf } from '#libs/testing/src/seed';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import { mayTake, until } from '#libs/testing/src/until';
import { Chance } from './chance.ts';
import { announced, FeedTail } from './cluster/observers.ts';
import { prepareModel } from './torture/access.ts';
import { Customer, type Tally } from './torture/customer.ts';
import { expectAccess, expectDelivered, expectEvents, expectRemembered, expectTrails, expectWhole, feedOf, subscribe } from './torture/expectations.ts';

const CUSTOMERS = 4;
/** One more than elsewhere: when one is killed, its shards go to several. */
const REPLICAS_OF_WEBHOOKS = 3;
const SHARDS = 12;
const PAIRS = 10_000;
/** A replica that is gone has its work taken over in this time. */
const TAKEN_OVER = 10_000;
/** What an engine needs to come back, on a machine that is busy with everything at once. */
const RECOVERED = 60_000;

/** Several processes of each app on engines of their own, customers who write through both gateways all the time, and whoever is told of it. */
describe('a cluster under load', () => {
  let cluster: Cluster;
  let receiver: WebhookReceiver;
  let feed: FeedTail;
  const tally: Tally = { acknowledged: 0, unanswered: 0, retried: 0, abandoned: 0 };
  const customers = Array.from({ length: CUSTOMERS }, (_, number) => new Customer(number, tally, new Chance(seedOf(`faults ${number}`))));
  const working = new AbortController();
  const watching = new AbortController();
  let operations: RemoteOperations;
  let work: Promise<unknown>;
  let watch: Promise<unknown>;

  let turn = 0;
  const url = (): string => cluster.gateways[turn++ % cluster.gateways.length]!.url;

  beforeAll(async () => {
    cluster = await Cluster.start({ replicas: { notifications: REPLICAS_OF_WEBHOOKS }, variables: { DNS_SERVERS: '127.0.0.1:1', LOG_LEVEL: 'info' } });
    const settings = readSettings(TransportSettings, cluster.settings);
    const log = new PinoLog({ level: 'silent', readable: false });
    operations = (await openRemoteOperations([], { settings, clock: new SystemClock(), log, metrics: new Metrics() }))!;
    receiver = await WebhookReceiver.listen();
    await subscribe(url(), cluster.key, receiver.url);
    await prepareModel(url(), cluster.key);
    feed = new FeedTail(url, cluster.key);
    watch = feed.follow(watching.signal);
    work = Promise.all(customers.map((customer) => customer.carryOn(url, cluster.key, working.signal)));
    // Told at the end, and not as a rejection that nobody waits for.
    work.catch(() => {});
  }, 180_000);

  afterAll(async () => {
    working.abort();
    watching.abort();
    await Promise.allSettled([work, watch]);
    await receiver.close();
    await operations.close();
    await cluster.stop();
  }, 120_000);

  /** What no HTTP request reaches, as the command line asks it. */
  const call = <Answer>(type: Class<Operation<Answer>>, fields: object): Promise<Answer> =>
    operations.call(Object.assign(new type(), fields, { context: systemContext(SYSTEM_ENVIRONMENT, Date.now()) }));

  /** Writes are answered, and told of, again: both take part in the same path from the gateway to the feed. */
  const expectProgress = async (within: number): Promise<void> => {
    const [acknowledged, told, delivered] = [tally.acknowledged, feed.ids.length, receiver.received.length];
    const goesOn = (): boolean => tally.acknowledged > acknowledged + CUSTOMERS && feed.ids.length > told + CUSTOMERS && receiver.received.length > delivered;
    for (const deadline = Date.now() + within; !goesOn(); await pause(50)) {
      if (Date.now() < deadline) continue;
      const now = [tally.acknowledged, feed.ids.length, receiver.received.length];
      throw new Error(`After ${within} ms: acknowledged, in the feed and delivered were ${acknowledged}, ${told}, ${delivered} and are ${now.join(', ')}.`);
    }
  };
  const create = async (headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(`${url()}/organizations`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${cluster.key}`, 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ name: 'Between' }),
    });
  const first = (app: App): ClusterProcess => cluster.of(app)[0]!;
  /** How many shards of webhooks each replica that answers holds. */
  const shardsHeld = (): Promise<readonly number[]> =>
    Promise.all(
      cluster.of('notifications').map(async ({ operationsUrl }) => {
        const text = await fetch(`${operationsUrl}/metrics`).then(
          (response) => response.text(),
          () => '',
        );
        return [...text.matchAll(/^gatehouse_lease_held\{work="notifications\.webhook-intake-\d+"\} 1$/gm)].length;
      }),
    );
  const isDelivered = (organization: string): boolean => receiver.received.some(({ body }) => body.includes(`"id":"${organization}"`));

  it('writes, tells and delivers', () => expectProgress(RECOVERED), RECOVERED + 5_000);

  it(
    'goes on with the webhooks of a process that is killed, whose shards the others share out until it is back',
    async () => {
      const share = SHARDS / REPLICAS_OF_WEBHOOKS;
      const isShared = async (counts: readonly number[]): Promise<boolean> => (await shardsHeld()).join() === counts.join();
      await until(() => isShared(cluster.of('notifications').map(() => share)), TAKEN_OVER);
      const killed = first('notifications');
      await killed.kill();
      const more = SHARDS / (REPLICAS_OF_WEBHOOKS - 1);
      await until(() => isShared([0, more, more]), TAKEN_OVER);
      await expectProgress(TAKEN_OVER);
      await killed.restart();
      await until(() => isShared([share, share, share]), RECOVERED);
    },
    RECOVERED * 2,
  );

  it.each(['gateway', 'identity', 'authorization', 'notifications'] as const)(
    'goes on when a process of %s is killed, and what it did is taken over',
    async (app) => {
      const killed = first(app);
      await killed.kill();
      // A gateway that is gone answers nobody, and customers ask the next.
      await expectProgress(TAKEN_OVER);
      await killed.restart();
      await expectProgress(RECOVERED);
    },
    RECOVERED * 2,
  );

  it(
    'takes over from a replica that stands still, which then finds its work taken',
    async () => {
      for (const app of ['identity', 'authorization', 'notifications'] as const) {
        const paused = first(app);
        await paused.pause();
        await expectProgress(TAKEN_OVER);
        await paused.resume();
        await expectProgress(RECOVERED);
      }
    },
    RECOVERED * 4,
  );

  it(
    'answers 503 with Retry-After within 5 s while the event store is away, and goes on when it is back',
    async () => {
      await cluster.engines.eventstore.kill();
      const began = Date.now();
      const refused = await create();
      expect([refused.status, refused.headers.has('Retry-After')]).toEqual([503, true]);
      expect(Date.now() - began).toBeLessThan(mayTake(7_000));
      await cluster.engines.eventstore.restart();
      await expectProgress(RECOVERED);
    },
    RECOVERED * 2,
  );

  it(
    'writes, tells and delivers while Kafka is away, and announces it afterwards',
    async () => {
      await cluster.engines.kafka.stop();
      // What it had announced before it went is delivered by then, whoever hears of it from there.
      await expectProgress(TAKEN_OVER);
      const created = await create();
      expect(created.status).toBe(201);
      const { id } = (await created.json()) as { readonly id: string };
      await until(() => isDelivered(id), TAKEN_OVER);
      await cluster.engines.kafka.restart();
      await expectProgress(RECOVERED);
    },
    RECOVERED * 2,
  );

  it(
    'does nothing by halves while MongoDB is away',
    async () => {
      await cluster.engines.mongodb.stop();
      const key = randomUUID();
      const began = Date.now();
      const { status, headers } = await create({ 'Idempotency-Key': key });
      expect([status, headers.has('Retry-After')]).toEqual([503, true]);
      expect(Date.now() - began).toBeLessThan(mayTake(12_000));
      await cluster.engines.mongodb.restart();
      await expectProgress(RECOVERED);
      expect((await create({ 'Idempotency-Key': key })).status).toBe(201);
    },
    RECOVERED * 2,
  );

  it.each(['eventstore', 'kafka', 'mongodb'] as const)(
    'hangs on nothing while %s stands still for 30 s, and goes on afterwards',
    async (engine) => {
      await cluster.engines[engine].pause();
      await pause(30_000);
      await cluster.engines[engine].resume();
      await expectProgress(RECOVERED);
    },
    RECOVERED * 2,
  );

  it(
    'fails no request while every process is restarted in turn',
    async () => {
      const outcomes = new Map<number, number>();
      const asking = new AbortController();
      const ask = async (): Promise<void> => {
        while (!asking.signal.aborted) {
          const { status } = await create();
          outcomes.set(status, (outcomes.get(status) ?? 0) + 1);
        }
      };
      const asked = Promise.all([ask(), ask()]);
      for (const process of [...cluster.of('identity'), ...cluster.of('authorization'), ...cluster.of('notifications')]) await process.restart();
      asking.abort();
      await asked;
      expect([...outcomes.keys()]).toEqual([201]);
    },
    RECOVERED * 3,
  );

  it(
    'refuses a revoked key at every gateway within a second',
    async () => {
      const key = await call(CreateEnvironmentKey, { environment_name: 'development', name: 'soon revoked' });
      const ask = async (gateway: ClusterProcess): Promise<number> =>
        (await fetch(`${gateway.url}/organizations?limit=1`, { headers: { Authorization: `Bearer ${key.value}` } })).status;
      for (const gateway of cluster.gateways) expect(await ask(gateway)).toBe(200);
      await call(RevokeEnvironmentKey, { id: key.id });
      await pause(1_000);
      for (const gateway of cluster.gateways) expect(await ask(gateway)).toBe(401);
    },
    RECOVERED,
  );

  it(
    'holds the cursors of the feed across a rebuild of all views',
    async () => {
      const { code, stderr } = await gatehouse(cluster.settings, 'rebuild');
      expect([code, stderr]).toEqual([0, '']);
      await expectProgress(RECOVERED);
    },
    RECOVERED * 3,
  );

  it('shows through one gateway what was written through the other', async () => {
    const [one, other] = cluster.gateways.map((gateway) => gateway.url);
    await call(CreateEnvironment, { name: 'pairs' });
    const { value } = await call(CreateEnvironmentKey, { environment_name: 'pairs', name: 'pairs' });
    const headers = { Authorization: `Bearer ${value}`, 'Content-Type': 'application/json' };
    let missed = 0;
    let made = 0;
    let pairs = 0;
    const pairUp = async (): Promise<void> => {
      while (pairs < PAIRS) {
        const [to, from] = pairs++ % 2 === 0 ? [one, other] : [other, one];
        const written = await fetch(`${to}/organizations`, { method: 'POST', headers, body: JSON.stringify({ name: 'Pair' }) });
        const { id } = (await written.json()) as { readonly id: string };
        // A machine that is busy with everything at once may ask to come again; it may not promise and forget.
        expect([201, 503]).toContain(written.status);
        if (written.status === 503) continue;
        const read = await fetch(`${from}/organizations/${id}`, { headers });
        await read.arrayBuffer();
        made++;
        if (read.status !== 200) missed++;
      }
    };
    await Promise.all(Array.from({ length: 16 }, pairUp));
    expect(missed).toBe(0);
    expect(made).toBeGreaterThan(PAIRS * 0.99);
  }, 600_000);

  it('has lost nothing, done nothing twice and left nothing half done', async () => {
    working.abort();
    await work;
    const organizations = customers.flatMap((customer) => customer.organizations);
    expect(tally.acknowledged).toBeGreaterThan(500);
    await expectRemembered(url(), cluster.key, organizations);
    for (const gateway of cluster.gateways) await expectAccess(gateway.url, cluster.key, organizations);
    for (const gateway of cluster.gateways) expect(await expectTrails(gateway.url, cluster.key, organizations)).toBeGreaterThan(0);
    const events = await feedOf(url(), cluster.key);
    expectEvents(events, organizations);
    await expectWhole(url(), cluster.key, events, customers);
    await expectDelivered(events, receiver);

    // Whoever read along, through all of it, has read the same.
    for (const deadline = Date.now() + RECOVERED; feed.ids.length < events.length && Date.now() < deadline;) await pause(100);
    watching.abort();
    await watch;
    expect(feed.ids).toEqual(events.map(({ id }) => id));

    const messages = await announced(cluster.settings['KAFKA_BROKERS']!.split(','));
    const ids = new Set(messages.map(({ id }) => id));
    expect(events.filter(({ id }) => !ids.has(id))).toEqual([]);
    expect(unordered(messages)).toEqual([]);
    expect(await gatehouse(cluster.settings, 'rebuild', '--check')).toMatchObject({ code: 0 });
  }, 600_000);
});

/** Keys whose messages on a topic are not in the order of the log, where repeats are dropped. */
function unordered(messages: Awaited<ReturnType<typeof announced>>): readonly string[] {
  const seen = new Set<string>();
  const last = new Map<string, string>();
  const wrong = new Set<string>();
  for (const { topic, id, position, ...message } of messages) {
    const key = `${topic} ${message.key}`;
    if (seen.has(id)) continue;
    seen.add(id);
    if ((last.get(key) ?? '') > position) wrong.add(key);
    last.set(key, position);
  }
  return [...wrong];
}
