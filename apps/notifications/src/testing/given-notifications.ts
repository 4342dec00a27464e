import { JointWrites } from '#libs/event-sourcing/src/following/joint-writes';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { List } from '#libs/contracts/src/operation';
import { CreateWebhookEndpoint, ListWebhookDeliveries } from '#libs/contracts/src/webhook-endpoints/operations';
import type { WebhookDelivery, WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import { Deletions, deletionsView } from '#libs/event-sourcing/src/deciding/deletions';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { FollowerStates } from '#libs/event-sourcing/src/following/follower-states';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { EventMeta, EventStore, NewEvent, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Naming, streamName } from '#libs/event-sourcing/src/log/naming';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { SystemClock } from '#libs/platform/src/clock';
import type { NotificationsSettings, WebhookSettings } from '#libs/platform/src/config/settings';
import { derivedId, newCommandId } from '#libs/platform/src/ids';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import type { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { ManyReplicas } from '#libs/platform/src/replicas';
import { systemContext } from '#libs/platform/src/system-context';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import type { ReadModels } from '#libs/read-models/src/read-models';
import type { ShortLived } from '#libs/read-models/src/short-lived';
import { until } from '#libs/testing/src/until';
import { Feed } from '../feed/feed.ts';
import { FeedReader } from '../readers/feed-reader.ts';
import { EndpointSecrets } from '../targets/endpoint-secrets.ts';
import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { feedView } from '../views/feed.view.ts';
import { webhookEndpointsView } from '../views/webhook-endpoints.view.ts';
import { DeliveryLog } from '../webhook-deliveries/delivery-log.ts';
import { deliveryId } from '../webhook-deliveries/delivery.ts';
import { ResponseExcerpts } from '../webhook-deliveries/response-excerpts.ts';
import { RetrySchedule } from '#libs/messaging/src/webhooks/retry-schedule';
import { WebhookDeliveries } from '../webhook-deliveries/webhook-deliveries.ts';
import { WebhookWork } from '../webhook-deliveries/webhook-work.ts';
import { WebhookEndpoints } from '../webhook-endpoints/webhook-endpoints.ts';

export const ENVIRONMENT = 'environment_01J00000000000000000000000';

type Settings = NotificationsSettings & WebhookSettings;

const SETTINGS: Settings = {
  WEBHOOK_ALLOW_NETWORKS: [],
  WEBHOOK_ENDPOINTS_PER_ENVIRONMENT: 100,
  WEBHOOK_TIMEOUT: 2_000,
  VENDOR_WORD: 'WorkOS',
  EVENTS_RETENTION: 90 * 86_400_000,
  DELIVERIES_RETENTION: 30 * 86_400_000,
};

/** As in production, only faster. */
const PAUSES = [50, 100, 150, 200, 250];

const log: Log = { debug() {}, info() {}, warn() {}, error: (sentence, fields) => console.error(sentence, fields) };

/** What replicas share. */
interface SharedEngines {
  readonly directory: string;
  readonly storage: LmdbStorage;
  readonly events: LmdbEventStore;
  readonly readModels: LmdbReadModels;
  readonly shortLived: ShortLived;
  readonly keys: LmdbKeyStore;
}

/** Engines as one replica sees them. */
interface Faulty {
  readonly events?: EventStore;
  readonly readModels?: ReadModels;
  readonly shortLived?: ShortLived;
}

/** The service on the embedded engines, in a directory of its own that outlives a restart. */
export class GivenNotifications {
  readonly events: LmdbEventStore;
  readonly readModels: LmdbReadModels;

  private constructor(
    readonly engines: SharedEngines,
    private readonly isReplica: boolean,
    readonly repository: LogRepository,
    readonly feedReader: FeedReader,
    readonly feed: Feed,
    readonly deliveries: DeliveryLog,
    readonly endpoints: WebhookEndpoints,
    readonly webhooks: WebhookDeliveries,
    readonly work: WebhookWork,
    readonly lifecycle: Lifecycle,
    readonly metrics: Metrics,
  ) {
    ({ events: this.events, readModels: this.readModels } = engines);
  }

  static async start(changes: Partial<Settings> = {}, directory?: string): Promise<GivenNotifications> {
    const path = directory ?? (await mkdtemp(join(tmpdir(), 'notifications-')));
    const storage = await LmdbStorage.open({ directory: path });
    const engines: SharedEngines = {
      directory: path,
      storage,
      events: new LmdbEventStore(storage),
      readModels: new LmdbReadModels(storage),
      shortLived: new LmdbShortLived(storage, new SystemClock()),
      keys: await LmdbKeyStore.open(storage.keys, []),
    };
    return GivenNotifications.over(engines, changes);
  }

  /** Another process on the same engines, some of which may be as faulty for it as the spec wants. */
  async replica(faulty: Faulty = {}, changes: Partial<Settings> = {}): Promise<GivenNotifications> {
    return GivenNotifications.over(this.engines, changes, faulty);
  }

  private static async over(engines: SharedEngines, changes: Partial<Settings>, faulty: Faulty | null = null): Promise<GivenNotifications> {
    const { keys } = engines;
    const { events, readModels, shortLived }: Required<Faulty> = { ...engines, ...faulty };
    const settings = { ...SETTINGS, ...changes };
    const clock = new SystemClock();
    const metrics = new Metrics();
    const repository = new LogRepository(events, readModels, new Naming((await keys.obtain('naming')).bytes), clock, log);
    repository.registerPrimaryView(webhookEndpointsView);
    const feed = new FeedReader(clock, settings, readModels);
    const deliveries = new DeliveryLog(readModels);
    const vault = new Vault(keys);
    const secrets = new EndpointSecrets(vault);
    const excerpts = new ResponseExcerpts(vault);
    const rule = new TargetRule({ mode: 'development', allowNetworks: [] });
    const schedule = new RetrySchedule(PAUSES);
    const following = new LogFollowing(events, clock, log);
    const replicas = new ManyReplicas();
    const leases = new Leases(shortLived, replicas.id, log, metrics);
    const work = new WebhookWork(
      events,
      following,
      readModels,
      leases,
      replicas,
      vault,
      feed,
      deliveries,
      secrets,
      excerpts,
      rule,
      schedule,
      settings,
      settings,
      clock,
      log,
      metrics,
    );
    const endpoints = new WebhookEndpoints(
      repository,
      secrets,
      rule,
      settings,
      shortLived,
      clock,
      new Deletions(readModels, deletionsView('notifications', ['webhook_endpoint.deleted'])),
      readModels,
    );
    const lifecycle = new Lifecycle();
    const followers = new LeasedFollowers({
      following,
      writes: new JointWrites(readModels),
      leases,
      states: new FollowerStates(readModels, clock),
      lifecycle,
      metrics,
    });
    for (const component of work.backgroundComponents) lifecycle.add(component);
    work.intake.follow(followers, lifecycle);
    await lifecycle.start();
    const webhooks = new WebhookDeliveries(deliveries, work, excerpts, clock, readModels);
    const pages = new Feed(
      feed,
      viewsBrought(async () => {}),
    );
    return new GivenNotifications(engines, faulty !== null, repository, feed, pages, deliveries, endpoints, webhooks, work, lifecycle, metrics);
  }

  /** The same data in a new process, as far as one process can tell. */
  async restart(): Promise<GivenNotifications> {
    await this.close();
    return GivenNotifications.start({}, this.engines.directory);
  }

  async stop(): Promise<void> {
    await this.close();
    if (!this.isReplica) await rm(this.engines.directory, { recursive: true });
  }

  context() {
    return systemContext(ENVIRONMENT, Date.now());
  }

  /** An operation of one of the use-case classes, as the gateway would make it. */
  operation<O extends object>(type: new () => O, fields: Partial<Omit<O, 'context'>>): O {
    return Object.assign(new type(), { context: this.context() }, fields);
  }

  async endpoint(endpoint_url: string, events: readonly string[] = ['organization.created']): Promise<WebhookEndpoint> {
    return this.endpoints.create(this.operation(CreateWebhookEndpoint, { endpoint_url, events }));
  }

  /** What the API answers for an endpoint's deliveries, oldest first. */
  async deliveriesOf(id: string, filter: Partial<ListWebhookDeliveries> = {}): Promise<readonly WebhookDelivery[]> {
    const { json } = await this.webhooks.list(this.operation(ListWebhookDeliveries, { id, limit: 100, order: 'asc', ...filter }));
    return (JSON.parse(json) as List<WebhookDelivery>).data;
  }

  /** Organizations that come into being, recorded as `transact` would. */
  async record(count: number, at = Date.now()): Promise<readonly RecordedEvent[]> {
    const batches = await Promise.all(
      Array.from({ length: count }, async () => {
        const event = organizationCreated(at);
        const stream = streamName('organization', ENVIRONMENT, event.meta.organization!);
        await this.events.append(stream, 0, [event]);
        return this.events.read(stream);
      }),
    );
    return batches.flat();
  }

  /** Events of one organization, which whoever follows the log gets together. `before` is told the id of the second before it is there. */
  async recordTogether(count: number, before: (second: string) => unknown): Promise<readonly RecordedEvent[]> {
    const events = Array.from({ length: count }, () => organizationCreated(Date.now()));
    const { organization } = events[0]!.meta;
    before(events[1]!.id);
    const stream = streamName('organization', ENVIRONMENT, organization!);
    await this.events.append(
      stream,
      0,
      events.map((event) => ({ ...event, meta: { ...event.meta, organization: organization! } })),
    );
    return this.events.read(stream);
  }

  /** Whether the deliveries of these events to an endpoint are all on record, and none of them waits. */
  async isDone(endpointId: string, eventIds: readonly string[]): Promise<boolean> {
    const ids = eventIds.map((eventId) => deliveryId(endpointId, eventId));
    return (await this.deliveries.known(ENVIRONMENT, ids)).size === ids.length && (await this.deliveries.nextDue(ENVIRONMENT, endpointId)) === null;
  }

  /** Resolves when the intake of this process, which has all shards, has handled all that is in the log. */
  async takenIn(): Promise<void> {
    // Each asks where the log ends once a second.
    await pause(1_200);
    await until(async () => !/follower_lag_seconds\{[^}]*intake[^}]*\} (?!0\n)/.test(await this.metrics.text()));
  }

  /** The feed, as the projector would. */
  async project(records: readonly RecordedEvent[]): Promise<void> {
    const table = this.readModels.table(tableOf(feedView));
    const evolve = await feedView.evolveBatch!(table, records, new Map());
    const writes = records.flatMap((record) =>
      feedView.idsOf(record).map((id) => {
        const row = evolve(null, record, id)!;
        return { environment: record.meta.environment, id, position: record.position, revision: 0, text: feedView.serialise!(row), row };
      }),
    );
    await table.write(writes, await this.events.head());
  }

  private async close(): Promise<void> {
    await this.lifecycle.stop();
    if (this.isReplica) return;
    await this.engines.storage.close();
  }
}

/** Views that nobody but the spec brings along: when they are waited for. */
export function viewsBrought(upToDate: () => Promise<void>): ReadYourWrites {
  return Object.assign(Object.create(ReadYourWrites.prototype) as ReadYourWrites, { waitBrieflyForHead: upToDate });
}

function organizationCreated(at: number): NewEvent {
  const commandId = newCommandId(Date.now());
  const id = `org_${derivedId(commandId, 0)}`;
  const time = new Date(at).toISOString();
  const subject = { object: 'organization', id, name: 'Acme', domains: [], metadata: {}, external_id: null, created_at: time, updated_at: time };
  const meta: EventMeta = {
    environment: ENVIRONMENT,
    organization: id,
    actor: { id: 'system', source: 'system', name: null },
    requestId: commandId,
    commandId,
    at,
  };
  return {
    id: commandId,
    type: 'organization.created',
    shape: 1,
    data: { id },
    subject,
    public: [{ id: `event_${commandId}`, name: 'organization.created' }],
    meta,
  };
}

export interface Received {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A receiver on loopback. `answer` decides what it says; without it, 200. */
export class Receiver {
  readonly received: Received[] = [];
  answer: (request: Received, response: ServerResponse) => void = (_request, response) => void response.writeHead(200).end();

  private constructor(private readonly server: Server) {}

  static async start(): Promise<Receiver> {
    const server = createServer();
    const receiver = new Receiver(server);
    server.on('request', (request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        const received = { path: request.url ?? '', headers: request.headers, body };
        receiver.received.push(received);
        receiver.answer(received, response);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
