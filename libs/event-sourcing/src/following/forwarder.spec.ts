import { JointWrites } from './joint-writes.ts';
import { LogFollowing } from './memory-follower.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { KeptMessages, type Published } from '#libs/testing/src/kept-messages';
import { until } from '#libs/testing/src/until';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import type { NewEvent } from '../log/event-store.ts';
import { UnreadableRecord } from '../log/lazy-record.ts';
import { eventLogDamaged } from '../log/log-damage.ts';
import { KeyMissing } from '../sealing/key-store.ts';
import { FollowerStates } from './follower-states.ts';
import { checkpointsOf, Forwarders } from './forwarder.ts';
import { LeasedFollowers } from './leased-followers.ts';

const clock = new SystemClock();
const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const TOPIC = `${ENVIRONMENT}.identity`;
const ORGANIZATION = 'org_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const at = Date.parse('2026-01-15T12:00:00.000Z');

const subject = {
  object: 'organization',
  id: ORGANIZATION,
  name: 'Acme',
  domains: [],
  metadata: {},
  external_id: null,
  created_at: '2026-01-15T12:00:00.000Z',
  updated_at: '2026-01-15T12:00:00.000Z',
  private: 'stays',
};

describe('the forwarder', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let bus: KeptMessages;
  let lifecycle: Lifecycle;
  let metrics: Metrics;
  let delivered: readonly Published[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'forwarder-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    bus = new KeptMessages();
    lifecycle = new Lifecycle();
    delivered = bus.published;
  });
  afterEach(async () => {
    await lifecycle.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  /** Another process that forwards from the same storage. */
  async function start(): Promise<void> {
    await lifecycle.stop();
    lifecycle = new Lifecycle();
    metrics = new Metrics();
    const log = new PinoLog({ level: 'silent', readable: false });
    const readModels = new LmdbReadModels(storage);
    const leases = new Leases(new LmdbShortLived(storage, clock), newUlid(clock.now()), log, metrics);
    const states = new FollowerStates(readModels, clock);
    const followers = new LeasedFollowers({
      following: new LogFollowing(events, clock, log),
      writes: new JointWrites(readModels),
      leases,
      states,
      lifecycle,
      metrics,
    });
    const forwarders = new Forwarders(followers, readModels, bus, log, metrics);
    forwarders.add({ service: 'identity', categories: ['organization', 'environment'] });
    await lifecycle.start();
  }

  async function record(stream: string, version: number, event: Partial<NewEvent>, environment = ENVIRONMENT): Promise<NewEvent> {
    const id = newUlid(clock.now());
    const meta = { environment, organization: ORGANIZATION, actor: { id: 'key', source: 'api', name: null }, requestId: id, commandId: id, at };
    const recorded = { id, type: 'organization.created', shape: 1, data: { name: 'Acme' }, subject: null, public: [], meta, ...event };
    await events.append(`${stream}-${environment}-1`, version, [recorded]);
    return recorded;
  }

  const announced = (id: string) => ({ subject, public: [{ id, name: 'organization.created' }] });

  it('copies public events as everybody sees them, with what CloudEvents asks for', async () => {
    await record('organization', 0, announced('event_1'));
    await start();
    await until(() => delivered.length === 1);
    const [{ topic, key, value, headers }] = delivered as [Published];
    expect({ topic, key }).toEqual({ topic: TOPIC, key: ORGANIZATION });
    expect(JSON.parse(value)).toMatchObject({
      object: 'event',
      id: 'event_1',
      event: 'organization.created',
      data: { id: ORGANIZATION, name: 'Acme' },
      context: { actor: { id: 'key' } },
    });
    expect(value).not.toContain('stays');
    expect(headers).toMatchObject({
      ce_specversion: '1.0',
      ce_id: 'event_1',
      ce_type: 'organization.created',
      ce_source: `/environments/${ENVIRONMENT}/identity`,
      ce_time: '2026-01-15T12:00:00.000Z',
    });
    expect(headers['position']).toBe(await events.head());
  });

  it.each(['organization', 'category_of_a_later_release'])(
    'leaves to a later release what only that can announce, and all behind it: in a stream of the category %s',
    async (category) => {
      const name = 'organization.of_a_later_release';
      const later = { type: name, subject, public: [{ id: 'event_2', name }] };
      await record('organization', 0, announced('event_1'));
      await record(category, category === 'organization' ? 1 : 0, later);
      await record('environment', 0, announced('event_3'));
      await start();
      await until(async () => (await metrics.text()).includes('gatehouse_follower_left_to_later_release{work="forwarder.identity"} 1'));
      expect(delivered.map(({ headers }) => headers['ce_id']).filter((id) => id !== 'event_1')).toEqual([]);
      expect(await metrics.text()).toContain('gatehouse_forwarder_skipped_total{service="identity"} 0');
      const checkpoints = checkpointsOf('identity').name;
      expect((await new LmdbReadModels(storage).table({ name: checkpoints, indexes: [], rebuildable: false }).checkpoint()) < (await events.head())).toBe(true);
    },
  );

  it('waits for a record whose key is missing, and passes over nothing', async () => {
    let isMissing = true;
    const subscribe = events.subscribe.bind(events);
    events.subscribe = async function* (...given) {
      for await (const batch of subscribe(...given)) yield batch.map((event) => (isMissing ? new UnreadableRecord(event, new KeyMissing('person.1')) : event));
    };
    await record('organization', 0, announced('event_1'));
    await start();
    await pause(500);
    expect(delivered).toEqual([]);
    isMissing = false;
    await until(() => delivered.length === 1);
    expect(delivered[0]!.headers['ce_id']).toBe('event_1');
    expect(await metrics.text()).not.toMatch(/forwarder_skipped_total\{[^}]*\} [1-9]/);
  });

  it('copies what has no public name to the topic of domain events', async () => {
    const { id } = await record('organization', 0, { type: 'organization_domain.verification_restarted' });
    await start();
    await until(() => delivered.length === 1);
    expect(delivered[0]).toMatchObject({
      topic: `${TOPIC}.domain`,
      key: ORGANIZATION,
      headers: { ce_id: id, ce_type: 'organization_domain.verification_restarted' },
    });
    expect(JSON.parse(delivered[0]!.value)).toMatchObject({ id, data: { name: 'Acme' }, version: 1 });
  });

  it('tells nothing personal to the topic of domain events', async () => {
    const data = { id: 'user_1', email: 'ada@acme.test', password: { hash: '$2b$12$secret' } };
    const sealed = [{ of: 'user.user_1', fields: ['data.email', 'data.password', 'subject.email'] }];
    await record('organization', 0, { type: 'user.password_set', data, sealed });
    await start();
    await until(() => delivered.length === 1);
    expect(JSON.parse(delivered[0]!.value)).toMatchObject({ type: 'user.password_set', data: { id: 'user_1' } });
    expect(delivered[0]!.value).not.toMatch(/ada@|secret/);
  });

  it('keeps to its own streams, and never tells of claims, fences and the system', async () => {
    await record('webhook_endpoint', 0, announced('event_1'));
    await record('claim', 0, { type: 'claim.taken' });
    await record('organization', 0, { type: 'claim.fenced' });
    await record('environment', 0, { type: 'environment.created' }, SYSTEM_ENVIRONMENT);
    await record('organization', 1, announced('event_2'));
    await start();
    await until(() => delivered.length === 1);
    expect(delivered[0]!.headers['ce_id']).toBe('event_2');
  });

  it('goes on after a restart where it was, in order', async () => {
    await start();
    for (let version = 0; version < 10; version++) await record('organization', version, announced(`event_${version}`));
    await until(() => delivered.length === 10);
    await lifecycle.stop();
    for (let version = 10; version < 20; version++) await record('organization', version, announced(`event_${version}`));
    await start();
    await until(() => delivered.length >= 20);
    expect(delivered.map(({ headers }) => headers['ce_id'])).toEqual(Array.from({ length: 20 }, (_, version) => `event_${version}`));
  });

  it('shows how old the oldest event is that waits, also while nobody can read the log', async () => {
    const lag = async (): Promise<number> => Number(/gatehouse_follower_lag_seconds\{work="forwarder.identity"\} (\S+)/.exec(await metrics.text())![1]);
    await record('organization', 0, announced('event_1'));
    bus.publish = () => Promise.reject(unavailable('away'));
    await start();
    await until(async () => (await lag()) > 0);
    let tries = 0;
    Object.defineProperty(events, 'headAtHand', { value: null });
    events.head = () => {
      tries += 1;
      return Promise.reject(unavailable('away'));
    };
    await until(() => tries > 2);
    expect(await lag()).toBeGreaterThan((clock.now() - at) / 1_000 - 60);
  });

  it.each(['public', 'domain'])('passes over a record whose data were damaged, and says so: one of the %s events', async (kind) => {
    const subscribe = events.subscribe.bind(events);
    events.subscribe = async function* (...given) {
      for await (const batch of subscribe(...given))
        yield batch.map((event) => (event.version === 1 ? new UnreadableRecord(event, eventLogDamaged(event.stream)) : event));
    };
    await record('organization', 0, kind === 'public' ? announced('event_1') : {});
    await record('organization', 1, announced('event_2'));
    await start();
    await until(() => delivered.length === 1);
    expect(delivered[0]!.headers['ce_id']).toBe('event_2');
    expect(await metrics.text()).toContain('gatehouse_forwarder_skipped_total{service="identity"} 1');
  });

  it('passes over a record that cannot be told, and says so', async () => {
    await record('organization', 0, { ...announced('event_1'), subject: { ...subject, domains: 7 } });
    await record('organization', 1, announced('event_2'));
    await start();
    await until(() => delivered.length === 1);
    expect(delivered[0]!.headers['ce_id']).toBe('event_2');
    await lifecycle.stop();
    expect(await metrics.text()).toContain('gatehouse_forwarder_skipped_total{service="identity"} 1');
    expect(await metrics.text()).toMatch(/gatehouse_follower_lag_seconds\{work="forwarder.identity"\} 0\n/);
  });
});
