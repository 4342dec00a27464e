import { setTimeout as pause } from 'node:timers/promises';
import type { App, ClusterProcess } from '#libs/testing/src/cluster/cluster-process';
import type { Cluster } from '#libs/testing/src/cluster/cluster';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import { asked, patiently } from './cluster-ground.ts';

/** Between two requests of the load that runs beside. */
const LIGHT = 100;

/** Milliseconds from a kill until what was recorded after it was seen there. */
export interface TakeOver {
  readonly list: number;
  readonly feed: number;
  readonly webhook: number;
}

interface Found {
  readonly data: readonly unknown[];
}

/** Kills the replica that does the most of an app's work, again and again, with requests running beside. */
export async function takeOvers(cluster: Cluster, app: App, times: number): Promise<readonly TakeOver[]> {
  const receiver = await WebhookReceiver.listen();
  const load = new LightLoad(cluster);
  try {
    await asked(cluster, '/webhook_endpoints', { endpoint_url: receiver.url, events: ['organization.created'] });
    await seen(cluster, receiver, performance.now());
    const results: TakeOver[] = [];
    for (let time = 0; time < times; time += 1) {
      const holder = await holderOf(cluster.of(app));
      await holder.kill();
      results.push(await seen(cluster, receiver, performance.now()));
      await holder.restart();
    }
    return results;
  } finally {
    await load.stop();
    await receiver.close();
  }
}

/** Creates an organization and waits until it is wherever it has to be told of. */
async function seen(cluster: Cluster, receiver: WebhookReceiver, since: number): Promise<TakeOver> {
  const name = `takeover${Math.round(since)}`;
  const { id } = await patiently(() => asked<{ readonly id: string }>(cluster, '/organizations', { name }));
  const after = async (isThere: () => Promise<boolean>): Promise<number> => {
    await patiently(async () => ((await isThere()) ? true : null));
    return performance.now() - since;
  };
  const finds = async (path: string): Promise<boolean> => (await asked<Found>(cluster, path)).data.length > 0;
  const [list, feed, webhook] = await Promise.all([
    after(() => finds(`/organizations?search=${name}`)),
    after(() => finds(`/events?organization_id=${id}`)),
    after(async () => receiver.received.some(({ body }) => body.includes(id))),
  ]);
  return { list, feed, webhook };
}

/** Whoever holds the most leases. */
async function holderOf(replicas: readonly ClusterProcess[]): Promise<ClusterProcess> {
  const held = await Promise.all(
    replicas.map(async (replica) => {
      const text = await (await fetch(`${replica.operationsUrl}/metrics`)).text();
      return { replica, leases: [...text.matchAll(/^gatehouse_lease_held\{[^}]*\} 1$/gm)].length };
    }),
  );
  return held.toSorted((one, other) => other.leases - one.leases)[0]!.replica;
}

/** A few requests a second; whether one of them meets the kill is not what is measured. */
class LightLoad {
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;

  constructor(cluster: Cluster) {
    this.running = this.run(cluster);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(cluster: Cluster): Promise<void> {
    while (!this.stopping.signal.aborted) {
      await asked(cluster, '/organizations', { name: 'Light Load' }).catch(() => {});
      await pause(LIGHT);
    }
  }
}
