import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { freePort } from '../engines/free-port.ts';
import { WatchedDirectory } from '../engines/watched-directory.ts';
import { SMALL_LIMITS } from '../small-limits.ts';
import { Cluster } from './cluster.ts';
import { ClusterProcess, type PlannedProcess } from './cluster-process.ts';

/** A cluster for all files of specs that this process runs one after the other: the first of them starts it, and it ends with the process. */
export class SharedCluster {
  private constructor(private readonly processes: readonly ClusterProcess[]) {}

  static async get(): Promise<SharedCluster> {
    // Each file has modules of its own, so that only the disk knows of it.
    const path = join(tmpdir(), `gatehouse-cluster-of-${process.pid}`);
    const file = join(path, 'planned.json');
    const known = WatchedDirectory.join(path);
    if (known !== null && existsSync(file)) {
      const planned = JSON.parse(readFileSync(file, 'utf8')) as readonly PlannedProcess[];
      return new SharedCluster(planned.map((each) => ClusterProcess.running(known, each)));
    }
    const { processes } = await Cluster.start({ variables: await settingsOfSpecs(), directory: WatchedDirectory.createShared(path, 0) });
    // Written when it is ready, so that half a start is not taken for a cluster.
    writeFileSync(file, JSON.stringify(processes.map(({ planned }) => planned)));
    return new SharedCluster(processes);
  }

  /** Of every process. */
  get settings(): Readonly<Record<string, string>> {
    return this.processes[0]!.planned.settings;
  }

  /** Where the gateways are asked. */
  get urls(): readonly string[] {
    return this.processes.filter(({ app }) => app === 'gateway').map(({ url }) => url);
  }

  /** Every process, on the data that is there. */
  async restart(): Promise<void> {
    if (!mayBeHurt()) throw new Error('Other specs use these processes too: a spec that restarts them belongs to the suite `hurt` (.ci/suites.mjs).');
    await Promise.all(this.processes.map((process) => process.stop()));
    await Promise.all(this.processes.map((process) => process.restart()));
  }
}

function mayBeHurt(): boolean {
  return environmentVariables()['SPECS'] === 'hurt';
}

/** Nobody listens at the address of the DNS server until a file of specs does. Where much is done at random, limits are those of every day. */
async function settingsOfSpecs(): Promise<Readonly<Record<string, string>>> {
  return { DNS_SERVERS: `127.0.0.1:${await freePort()}`, ...(!mayBeHurt() && SMALL_LIMITS) };
}
