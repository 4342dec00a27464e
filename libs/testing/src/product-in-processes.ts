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
import { sharedCluster, type ReachableCluster } from './cluster/shared-cluster.ts';
import type { RunningProduct } from './running-product.ts';

interface Options {
  readonly variables: Variables;
  readonly log: Log;
  /** Of its own, on engines of its own; otherwise the one that other specs use too. */
  readonly isApart: boolean;
}

/** Two processes of each app. */
export class ProductInProcesses implements RunningProduct {
  private constructor(
    /** Null: shared with other specs. */
    private readonly cluster: Cluster | null,
    private readonly reachable: ReachableCluster,
    readonly events: EventstoredbEventStore,
    private readonly operations: NonNullable<Awaited<ReturnType<typeof openRemoteOperations>>>,
  ) {}

  static async open({ variables, log, isApart }: Options): Promise<ProductInProcesses> {
    const cluster = isApart ? await Cluster.start({ variables }) : null;
    const reachable = cluster === null ? await sharedCluster() : { settings: cluster.settings, urls: cluster.gateways.map(({ url }) => url) };
    const settings = readSettings(TransportSettings, reachable.settings);
    const events = await EventstoredbEventStore.connect({ url: readSettings(EngineSettings, reachable.settings).EVENTSTORE_URL!, log });
    const operations = await openRemoteOperations([], { settings, clock: new SystemClock(), log, metrics: new Metrics() });
    return new ProductInProcesses(cluster, reachable, events, operations!);
  }

  /** Of one of the gateways: what one is told, the other knows. */
  get url(): string {
    const { urls } = this.reachable;
    return urls[Math.floor(Math.random() * urls.length)]!;
  }

  get key(): string {
    return this.reachable.settings['GATEHOUSE_API_KEY']!;
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.operations.call(operation);
  }

  async restart(): Promise<void> {
    if (this.cluster === null) throw new Error('Other specs use these processes too: open the suite apart.');
    await Promise.all(this.cluster.processes.map((process) => process.stop()));
    await Promise.all(this.cluster.processes.map((process) => process.restart()));
  }

  async close(): Promise<void> {
    await this.operations.close();
    await this.events.close();
    await this.cluster?.stop();
  }
}
