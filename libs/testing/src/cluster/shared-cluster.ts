import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WatchedDirectory } from '../engines/watched-directory.ts';
import { Cluster } from './cluster.ts';

/** How a cluster that runs is reached. */
export interface ReachableCluster {
  /** Of every process. */
  readonly settings: Readonly<Record<string, string>>;
  /** Where the gateways are asked. */
  readonly urls: readonly string[];
}

/** One for all files of specs that this process runs: the first of them starts it, and it ends with the process. */
export async function sharedCluster(): Promise<ReachableCluster> {
  // Each file has modules of its own, so that only the disk knows of it.
  const path = join(tmpdir(), `gatehouse-cluster-of-${process.pid}`);
  const file = join(path, 'reachable.json');
  if (WatchedDirectory.join(path) && existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as ReachableCluster;
  const { settings, gateways } = await Cluster.start({ directory: WatchedDirectory.createShared(path, 0) });
  const reachable = { settings, urls: gateways.map(({ url }) => url) };
  // Written when it is ready, so that half a start is not taken for a cluster.
  writeFileSync(file, JSON.stringify(reachable));
  return reachable;
}
