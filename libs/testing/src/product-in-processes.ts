import '#libs/contracts/src/all';
import type { Operation } from '#libs/contracts/src/operation';
import { WITH_SECRETS } from '#libs/contracts/src/sealed';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { markedFieldsOf } from '#libs/event-sourcing/src/sealing/marked-fields';
import { MongodbKeyStore } from '#libs/event-sourcing/src/sealing/mongodb.key-store';
import { SealingEventStore } from '#libs/event-sourcing/src/sealing/sealing.event-store';
import { Clock, SystemClock } from '#libs/platform/src/clock';
import { readSettings, type Variables } from '#libs/platform/src/config/setting';
import { EngineSettings, PlatformSettings, TransportSettings } from '#libs/platform/src/config/settings';
import type { Log } from '#libs/platform/src/log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { Metrics } from '#libs/platform/src/metrics';
import { openRemoteOperations } from '#libs/runtime/src/transport';
import { SharedCluster } from './cluster/shared-cluster.ts';
import type { RunningProduct } from './running-product.ts';
import { seededNumbers, seedOf } from './seed.ts';

interface Options {
  readonly variables: Variables;
  readonly log: Log;
}

/** A key is read anew whenever it is wanted: a process that goes on with one for a minute would show who is erased. */
class HurriedClock extends Clock {
  private hours = 0;

  now(): number {
    return Date.now() + ++this.hours * 3_600_000;
  }
}

/** Two processes of each app, which the specs of other files use too. */
export class ProductInProcesses implements RunningProduct {
  private readonly chosen = seededNumbers(seedOf('gateways'));

  private constructor(
    private readonly cluster: SharedCluster,
    readonly events: EventStore,
    private readonly log: EventstoredbEventStore,
    private readonly keys: MongodbStorage,
    private readonly operations: NonNullable<Awaited<ReturnType<typeof openRemoteOperations>>>,
  ) {}

  static async open({ variables, log }: Options): Promise<ProductInProcesses> {
    const cluster = await SharedCluster.get();
    for (const [name, value] of Object.entries(variables))
      if (cluster.settings[name] !== value)
        throw new Error(`The cluster that specs share has ${name}=${cluster.settings[name]}, and not ${value}: what needs that is a spec without a cluster.`);
    const settings = readSettings(TransportSettings, cluster.settings);
    const { EVENTSTORE_URL, MONGODB_URL, KEYS_URL, INSTALLATION } = readSettings(EngineSettings, cluster.settings);
    const stored = await EventstoredbEventStore.connect({ url: EVENTSTORE_URL!, installation: INSTALLATION, log });
    const storage = await MongodbStorage.connect({ url: KEYS_URL ?? MONGODB_URL!, database: INSTALLATION, log });
    const keys = await MongodbKeyStore.open(storage, readSettings(PlatformSettings, cluster.settings).MASTER_KEYS ?? [], new HurriedClock());
    const events = new SealingEventStore(stored, keys, markedFieldsOf(WITH_SECRETS));
    const operations = await openRemoteOperations([], { settings, clock: new SystemClock(), log, metrics: new Metrics() });
    return new ProductInProcesses(cluster, events, stored, storage, operations!);
  }

  /** Of one of the gateways: what one is told, the other knows. */
  get url(): string {
    const { urls } = this.cluster;
    return urls[this.chosen(urls.length)]!;
  }

  get urls(): readonly string[] {
    return this.cluster.urls;
  }

  get scimUrls(): readonly string[] {
    return this.cluster.scimUrls;
  }

  get key(): string {
    return this.cluster.settings['GATEHOUSE_API_KEY']!;
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.operations.call(operation);
  }

  restart(): Promise<void> {
    return this.cluster.restart();
  }

  async close(): Promise<void> {
    await this.operations.close();
    await this.log.close();
    await this.keys.close();
  }
}
