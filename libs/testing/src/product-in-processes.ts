import '#libs/contracts/src/all';
import type { Operation } from '#libs/contracts/src/operation';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb.event-store';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings, type Variables } from '#libs/platform/src/config/setting';
import { EngineSettings, TransportSettings } from '#libs/platform/src/config/settings';
import type { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { openRemoteOperations } from '#libs/platform/src/runtime/transport';
import { Cluster } from './cluster/cluster.ts';
import type { RunningProduct } from './running-product.ts';

/** Two processes of each app, on engines of their own. */
export class ProductInProcesses implements RunningProduct {
  private constructor(
    private readonly cluster: Cluster,
    readonly events: EventstoredbEventStore,
    private readonly operations: NonNullable<Awaited<ReturnType<typeof openRemoteOperations>>>,
  ) {}

  static async open({ variables, log }: { readonly variables: Variables; readonly log: Log }): Promise<ProductInProcesses> {
    const cluster = await Cluster.start({ variables });
    const settings = readSettings(TransportSettings, cluster.settings);
    const events = await EventstoredbEventStore.connect({ url: readSettings(EngineSettings, cluster.settings).EVENTSTORE_URL!, log });
    const operations = await openRemoteOperations([], { settings, clock: new SystemClock(), log, metrics: new Metrics() });
    return new ProductInProcesses(cluster, events, operations!);
  }

  /** Of one of the gateways: what one is told, the other knows. */
  get url(): string {
    const { gateways } = this.cluster;
    return gateways[Math.floor(Math.random() * gateways.length)]!.url;
  }

  get key(): string {
    return this.cluster.key;
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.operations.call(operation);
  }

  async restart(): Promise<void> {
    await Promise.all(this.cluster.processes.map((process) => process.stop()));
    await Promise.all(this.cluster.processes.map((process) => process.restart()));
  }

  async close(): Promise<void> {
    await this.operations.close();
    await this.events.close();
    await this.cluster.stop();
  }
}
