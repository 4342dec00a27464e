import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KafkaConfig, SASLOptions } from 'kafkajs';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { readSettings } from '#libs/platform/src/config/setting';
import { EngineSettings, KafkaSettings } from '#libs/platform/src/config/settings';
import { givenAuthority, type Certified } from '../certificates.ts';
import { freePort } from '../engines/free-port.ts';
import type { AppContainer, Deployed, DeploymentNeeds } from '../deployment/app-container.ts';
import { deployedByCompose } from '../deployment/composed.ts';
import { deployedToProduction } from '../deployment/production.ts';
import { WatchedDirectory } from '../engines/watched-directory.ts';
import { LEAST_HASH_COST } from '../least-hash-cost.ts';
import { SMALL_LIMITS } from '../small-limits.ts';
import { Cluster } from './cluster.ts';
import { ClusterProcess, type PlannedProcess } from './cluster-process.ts';

/** What another file of specs has to know of it. */
interface Noted extends Pick<Cluster, 'settings' | 'jobs' | 'tls'> {
  readonly planned: readonly PlannedProcess[];
  /** Files in PEM. */
  readonly receivers: Readonly<Record<'cert' | 'key', string>>;
}

/**
 * A cluster for all files of specs that this process runs one after the other: the first of them starts it, and it ends with the process. It is started as the manifests
 * of production say or, where specs may hurt it, as Compose does.
 */
export class SharedCluster {
  private constructor(
    readonly processes: readonly ClusterProcess[],
    private readonly noted: Noted,
  ) {}

  static async get(): Promise<SharedCluster> {
    // Each file has modules of its own, so that only the disk knows of it.
    const path = join(tmpdir(), `gatehouse-cluster-of-${process.pid}`);
    const file = join(path, 'planned.json');
    const known = WatchedDirectory.join(path);
    if (known !== null && existsSync(file)) {
      const noted = JSON.parse(readFileSync(file, 'utf8')) as Noted;
      return new SharedCluster(
        noted.planned.map((each) => ClusterProcess.running(known, each)),
        noted,
      );
    }
    const directory = WatchedDirectory.createShared(path, 0);
    const ofReceivers = mayBeHurt() ? await authorityOfReceivers(directory) : null;
    const { processes, settings, jobs, tls } = await Cluster.start({
      deployment: ofReceivers === null ? deployedToProduction : (needs) => composedWith(needs, { [IN_CONTAINERS]: ofReceivers.folder }),
      variables: await settingsOfSpecs(ofReceivers === null ? 'engines-ca.crt' : 'receivers-ca.crt'),
      directory,
    });
    const noted = { settings, jobs, tls, planned: processes.map(({ planned }) => planned), receivers: ofReceivers ?? tls! };
    // Written when it is ready, so that half a start is not taken for a cluster.
    writeFileSync(file, JSON.stringify(noted), { mode: 0o600 });
    return new SharedCluster(processes, noted);
  }

  /** Of a service, with files where they lie on this machine. */
  get settings(): Noted['settings'] {
    return this.noted.settings;
  }

  /** What runs to its end, by name. */
  get jobs(): Noted['jobs'] {
    return this.noted.jobs;
  }

  /** Files in PEM of a certificate for this machine that processes believe, and of their authority; null where they speak in clear to their engines. */
  get tls(): Noted['tls'] {
    return this.noted.tls;
  }

  /** What receivers of webhooks on this machine show, which processes believe. */
  certificateOfReceivers(): Certified {
    const { cert, key } = this.noted.receivers;
    return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
  }

  /** How Kafka is asked, with the password that processes have or with another. */
  kafkaClient(password = this.settings['KAFKA_PASSWORD']!): Required<Pick<KafkaConfig, 'ssl' | 'sasl'>> & { readonly brokers: string[] } {
    const { KAFKA_TLS, KAFKA_SASL_MECHANISM: mechanism, KAFKA_USERNAME: username } = readSettings(KafkaSettings, this.settings);
    const { KAFKA_BROKERS } = readSettings(EngineSettings, this.settings);
    return {
      brokers: [...KAFKA_BROKERS!],
      ssl: KAFKA_TLS ? { ca: readFileSync(this.tls!.ca, 'utf8') } : false,
      sasl: { mechanism, username, password } as SASLOptions,
    };
  }

  /** Where the gateways are asked. */
  get urls(): readonly string[] {
    return this.processes.filter(({ app }) => app === 'gateway').map(({ url }) => url);
  }

  /** Where SCIM is asked. */
  get scimUrls(): readonly string[] {
    return this.processes.filter(({ app }) => app === 'directory-sync').map(({ planned }) => planned.scimUrl);
  }

  /** Every process, on the data that is there. */
  async restart(): Promise<void> {
    if (!mayBeHurt()) throw new Error('Other specs use these processes too: a spec that restarts them belongs to the suite `hurt` (.ci/suites.mjs).');
    await Promise.all(this.processes.map((process) => process.stop()));
    await Promise.all(this.processes.map((process) => process.restart()));
  }
}

/** Where containers find files of operators. */
const IN_CONTAINERS = '/etc/gatehouse';

function mayBeHurt(): boolean {
  return environmentVariables()['SPECS'] === 'hurt';
}

/**
 * Nobody listens at the address of the DNS server until a file of specs does. Where much is done at random, limits are those of every day; how often a second somebody may ask
 * is of no file of specs here.
 */
async function settingsOfSpecs(authority: string): Promise<Readonly<Record<string, string>>> {
  const variables = { DIRECTORY_USERS_RATE_LIMIT: '10000', DNS_SERVERS: `127.0.0.1:${await freePort()}`, PASSWORD_HASH_COST: LEAST_HASH_COST.production };
  // What an operator sets whose webhooks go to receivers of their own network, with certificates of their own authority.
  const receivers = { WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8', NODE_EXTRA_CA_CERTS: `${IN_CONTAINERS}/${authority}` };
  return { ...variables, ...receivers, ...(!mayBeHurt() && SMALL_LIMITS) };
}

/** Files in PEM, for a cluster that speaks in clear to its engines: what its containers are given lies in the folder. */
async function authorityOfReceivers({ path }: WatchedDirectory): Promise<Readonly<Record<'folder' | 'cert' | 'key', string>>> {
  const authority = await givenAuthority('Authority of receivers');
  const { cert, key } = await authority.certify('receivers', ['localhost', '127.0.0.1']);
  const folder = join(path, 'receivers');
  const files = { folder, cert: join(path, 'receivers.crt'), key: join(path, 'receivers.key') };
  mkdirSync(folder);
  writeFileSync(join(folder, 'receivers-ca.crt'), authority.ca);
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key, { mode: 0o600 });
  return files;
}

/** What a `docker-compose.override.yml` mounts. */
async function composedWith(needs: DeploymentNeeds, files: AppContainer['files']): Promise<Deployed> {
  const deployed = await deployedByCompose(needs);
  return { ...deployed, apps: deployed.apps.map((app) => ({ ...app, files: { ...app.files, ...files } })) };
}
