import { randomBytes } from 'node:crypto';
import type { Variables } from '#libs/platform/src/config/setting';
import { freePort } from '../engines/free-port.ts';
import { StartedEngines } from '../engines/start-engine.ts';
import { WatchedDirectory } from '../engines/watched-directory.ts';
import { APPS, ClusterProcess, type App, type PlannedProcess } from './cluster-process.ts';

type Settings = Readonly<Record<string, string>>;

interface ClusterOptions {
  /** Settings of every process, and addresses of engines that run already. */
  readonly variables?: Variables;
  /** Processes of each app. */
  readonly replicas?: number;
  /** Ports of the gateways; free ones where none is given. */
  readonly ports?: readonly number[];
  /** Told what was started and what ended. */
  readonly say?: (line: string) => void;
  /** Where they work; one of their own where none is given. */
  readonly directory?: WatchedDirectory;
}

/** All apps as processes of their own on loopback, each with replicas, on engines of their own. */
export class Cluster {
  private constructor(
    /** Its processes work and print in folders below. */
    readonly directory: string,
    readonly engines: StartedEngines,
    /** Of every process. */
    readonly settings: Settings,
    readonly processes: readonly ClusterProcess[],
    private readonly remove: () => void,
  ) {}

  /** Resolves when every process is ready. @throws EngineMissing */
  static async start({
    variables = {},
    replicas = 2,
    ports = [],
    say = () => {},
    directory = WatchedDirectory.create('cluster'),
  }: ClusterOptions = {}): Promise<Cluster> {
    const remove = (): void => directory.remove();
    const engines = await StartedEngines.start({ variables, directory, say }).catch((error: unknown) => {
      remove();
      throw error;
    });
    const settings = { ...generatedSettings(), ...given(variables), ...engines.settings };
    const planned = await plan(settings, replicas, ports);
    const processes = planned.map((each) => new ClusterProcess(directory, each));
    const cluster = new Cluster(directory.path, engines, planned[0]!.settings, processes, remove);
    // All are waited for, so that none starts after another has failed and all were stopped.
    const results = await Promise.allSettled(processes.map((process) => process.start(say)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return cluster;
    await cluster.stop();
    throw failed.reason;
  }

  /** A key of the environment `development`. */
  get key(): string {
    return this.settings['GATEHOUSE_API_KEY']!;
  }

  get gateways(): readonly ClusterProcess[] {
    return this.of('gateway');
  }

  of(app: App): readonly ClusterProcess[] {
    return this.processes.filter((process) => process.app === app);
  }

  /** Everything that was accepted is finished; then the engines end, and their data is gone. */
  async stop(): Promise<void> {
    for (const app of APPS) await Promise.all(this.of(app).map((process) => process.stop()));
    await this.engines.close();
    this.remove();
  }
}

/** What a cluster needs and nobody has to know. */
function generatedSettings(): Readonly<Record<string, string>> {
  return {
    SERVICE_KEY: randomBytes(32).toString('base64url'),
    MASTER_KEYS: randomBytes(32).toString('base64'),
    GATEHOUSE_API_KEY: `sk_${randomBytes(32).toString('base64url')}`,
    // One broker, on a machine that may have little room.
    KAFKA_REPLICATION: '1',
    DATA_MIN_FREE: '0',
  };
}

function given(variables: Variables): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''));
}

/** Every address is known before the first process starts, because each is told those of the others. */
async function plan(settings: Settings, replicas: number, ports: readonly number[]): Promise<readonly PlannedProcess[]> {
  const planned: Omit<PlannedProcess, 'settings'>[] = [];
  for (const app of APPS)
    for (let replica = 0; replica < replicas; replica += 1) {
      const port = (app === 'gateway' ? ports[replica] : undefined) ?? (await freePort());
      planned.push({ app, name: `${app}-${replica + 1}`, port, operationsPort: await freePort() });
    }
  const addressesOf = (app: App): string =>
    planned
      .filter((process) => process.app === app)
      .map(({ port }) => `127.0.0.1:${port}`)
      .join();
  const shared = {
    ...settings,
    IDENTITY_ADDRESS: addressesOf('identity'),
    AUTHORIZATION_ADDRESS: addressesOf('authorization'),
    NOTIFICATIONS_ADDRESS: addressesOf('notifications'),
  };
  return planned.map((process) => ({ ...process, settings: shared }));
}
