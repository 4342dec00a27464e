import '#libs/contracts/src/all';
import type { Operation } from '#libs/contracts/src/operation';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings, type Variables } from '#libs/platform/src/config/setting';
import { EngineSettings, TransportSettings } from '#libs/platform/src/config/settings';
import type { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { openRemoteOperations } from '#libs/runtime/src/transport';
import { SharedCluster } from './cluster/shared-cluster.ts';
import type { RunningProduct } from './running-product.ts';
import { seededNumbers, seedOf } from './seed.ts';

interface Options {
  readonly variables: Variables;
  readonly log: Log;
}

/** Two processes of each app, which the specs of other files use too. */
export class ProductInProcesses implements RunningProduct {
  private readonly chosen = seededNumbers(seedOf('gateways'));

  private constructor(
    private readonly cluster: SharedCluster,
    readonly events: EventstoredbEventStore,
    private readonly operations: NonNullable<Awaited<ReturnType<typeof openRemoteOperations>>>,
  ) {}

  static async open({ variables, log }: Options): Promise<ProductInProcesses> {
    const cluster = await SharedCluster.get();
    for (const [name, value] of Object.entries(variables))
      if (cluster.settings[name] !== value)
        throw new Error(`The cluster that specs share has ${name}=${cluster.settings[name]}, and not ${value}: what needs that is a spec without a cluster.`);
    const settings = readSettings(TransportSettings, cluster.settings);
    const { EVENTSTORE_URL, INSTALLATION } = readSettings(EngineSettings, cluster.settings);
    const events = await EventstoredbEventStore.connect({ url: EVENTSTORE_URL!, installation: INSTALLATION, log });
    const operations = await openRemoteOperations([], { settings, clock: new SystemClock(), log, metrics: new Metrics() });
    return new ProductInProcesses(cluster, events, operations!);
  }

  /** Of one of the gateways: what one is told, the other knows. */
  get url(): string {
    const { urls } = this.cluster;
    return urls[this.chosen(urls.length)]!;
  }

  get urls(): readonly string[] {
    return this.cluster.urls;
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
    await this.events.close();
  }
}
