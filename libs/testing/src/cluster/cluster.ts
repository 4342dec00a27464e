import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Variables } from '#libs/platform/src/config/setting';
import type { Deployed, DeploymentNeeds } from '../deployment/app-container.ts';
import { EngineMissing } from '../engines/engine-definition.ts';
import { freePort } from '../engines/free-port.ts';
import { S3Server } from '../engines/s3-server.ts';
import { StartedEngines } from '../engines/start-engine.ts';
import { WatchedDirectory } from '../engines/watched-directory.ts';
import { ownNamespaces } from '../namespaces.ts';
import { APPS, ClusterProcess, type App, type PlannedProcess } from './cluster-process.ts';
import { seenFromOutside, startableOf, type Startable } from './contained-process.ts';
import { startGuardedEngines } from './guarded-engines.ts';
import { addressesOf, place, planned, plannedContainer, type Replicas, withAddresses } from './plan.ts';

type Settings = Readonly<Record<string, string>>;

interface ClusterOptions {
  /** Settings of every process, and addresses of engines that run already. */
  readonly variables?: Variables;
  /** What describes the containers whose programs it starts; without it, the programs of the build are told what development mode needs. */
  readonly deployment?: (needs: DeploymentNeeds) => Promise<Deployed>;
  /** Processes of each app: two where none are given. */
  readonly replicas?: Replicas;
  /** Ports of the gateways; free ones where none is given. */
  readonly ports?: readonly number[];
  /** Told what was started and what ended. */
  readonly say?: (line: string) => void;
  /** Where they work; one of their own where none is given. */
  readonly directory?: WatchedDirectory;
}

/** What is known of a cluster before its processes start. */
interface Prepared {
  readonly engines: StartedEngines;
  readonly settings: Settings;
  readonly processes: readonly PlannedProcess[];
  readonly jobs: Readonly<Record<string, Startable>>;
  readonly tls: Deployed['tls'];
}

/** All apps as processes of their own on loopback, each with replicas, on engines of their own. */
export class Cluster {
  private constructor(
    /** Its processes work and print in folders below. */
    private readonly watched: WatchedDirectory,
    private readonly prepared: Prepared,
    /** The bucket of its files, where it is its own. */
    private readonly files: S3Server | null,
    readonly processes: readonly ClusterProcess[],
  ) {}

  /** Resolves when every process is ready. @throws EngineMissing */
  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const { say = () => {}, directory = WatchedDirectory.create('cluster') } = options;
    const files = options.variables?.['S3_BUCKET'] ? null : await startedFiles(directory, say);
    const variables = { ...options.variables, ...files?.settings };
    const given = { replicas: {}, ports: [], ...options, variables, say, directory };
    const prepared = await (options.deployment === undefined ? preparedPlain(given) : preparedDeployment(given, options.deployment)).catch(
      async (error: unknown) => {
        await files?.kill();
        directory.remove();
        throw error;
      },
    );
    const processes = prepared.processes.map((each) => new ClusterProcess(directory, each));
    const cluster = new Cluster(directory, prepared, files, processes);
    // All are waited for, so that none starts after another has failed and all were stopped.
    const results = await Promise.allSettled(processes.map((process) => process.start(say)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return cluster;
    await cluster.stop();
    throw failed.reason;
  }

  get directory(): string {
    return this.watched.path;
  }

  get engines(): StartedEngines {
    return this.prepared.engines;
  }

  /** Of every process; where it has a deployment, those of a service, with files where they lie on this machine. */
  get settings(): Settings {
    return this.prepared.settings;
  }

  /** What runs to its end, by name; nothing of it has been started. */
  get jobs(): Prepared['jobs'] {
    return this.prepared.jobs;
  }

  /** Files in PEM: a certificate for this machine, its key, and the authority that processes believe. */
  get tls(): Prepared['tls'] {
    return this.prepared.tls;
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
    await this.files?.kill();
    this.watched.remove();
  }
}

/** Whoever has engines by Docker alone may do without: exports and listings are refused then. */
async function startedFiles(directory: WatchedDirectory, say: (line: string) => void): Promise<S3Server | null> {
  try {
    return await S3Server.start(directory);
  } catch (error) {
    if (!(error instanceof EngineMissing)) throw error;
    say(`there is no store of files, so that exports and full listings are refused: ${error.message}`);
    return null;
  }
}

type Given = Required<Omit<ClusterOptions, 'deployment'>>;

async function preparedPlain({ variables, replicas, ports, say, directory }: Given): Promise<Prepared> {
  const engines = await StartedEngines.start({ variables, directory, say });
  const all = await place(replicas, ports);
  const settings = { ...generatedSettings(), ...given(variables), ...engines.settings, ...addressesOf(all) };
  return { engines, settings, processes: all.map((each) => planned(each, settings)), jobs: {}, tls: null };
}

async function preparedDeployment(
  { variables, replicas, ports, say, directory }: Given,
  deployment: NonNullable<ClusterOptions['deployment']>,
): Promise<Prepared> {
  const listening = { eventstore: await freePort(), mongodb: await freePort(), kafka: await freePort() };
  const { GATEHOUSE_API_KEY = generatedSettings()['GATEHOUSE_API_KEY']!, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, ...settings } = given(variables);
  const ofFiles: Settings = S3_ACCESS_KEY_ID === undefined || S3_SECRET_ACCESS_KEY === undefined ? {} : { S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY };
  const deployed = await deployment({ folder: join(directory.path, 'deployment'), ports: listening, settings, secrets: { GATEHOUSE_API_KEY, ...ofFiles } });
  const { apps, jobs, tls } = deployed;
  const way = ownNamespaces('mount');
  if (way === null) say('what the processes write is not kept to what their containers may write: this machine lets nobody mount anything (unshare).');
  const all = await place(replicas, ports);
  const moved = (variables: Settings): Settings => withAddresses(variables, apps, all);
  const service = apps.find(({ name }) => name === 'identity')!;
  const rest = {
    settings: moved(seenFromOutside(service)),
    processes: all.map((each) => plannedContainer(each, apps, { all, way })),
    jobs: Object.fromEntries(jobs.map((job) => [job.name, startableOf({ ...job, variables: moved(job.variables) }, way)])),
    tls,
  };
  return { ...rest, engines: await startGuardedEngines(deployed, { directory, ports: listening, say }) };
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
  const wanted = { CHECK_MAIL_DOMAINS: 'off', ...variables };
  return Object.fromEntries(Object.entries(wanted).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''));
}
