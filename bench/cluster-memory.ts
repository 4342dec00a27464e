import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from '#libs/testing/src/cluster/cluster';
import { caughtUp, liveBytes, loadedFirst, processorUse, withCluster } from './cluster-ground.ts';
import { inWords, rssAnonMegabytes } from './processor.ts';
import { RecordedUsers } from './recorded-users.ts';
import type { Row, Scenario } from './scenario.ts';
import { count, row } from './table.ts';

/** Keys go after a minute. */
const KEYS_GONE_MS = 65_000;
/** What Node takes for itself in the smallest of our containers, which has twice as much. Left alone, it collects when a heap of gigabytes is full. */
const HEAP_MEGABYTES = 256;
/** Of the users, when memory is looked at. */
const PARTS = [0, 0.1, 0.25, 0.5, 1];
const MEGABYTE = 1_048_576;

interface Memory {
  /** Bytes that are left once garbage was collected. */
  readonly live: number;
  readonly rssMegabytes: number;
}

type MemoryByProcess = ReadonlyMap<string, Memory>;

/** What each process keeps of each user, whose events and keys are written past the services. */
export const memory: Scenario = {
  name: 'cluster-memory',
  organizations: 'none',
  measure: async (_ground, pace) => {
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-memory-'));
    const nodeOptions = [`--max-old-space-size=${HEAP_MEGABYTES}`, await loadedFirst('live-memory.js', directory)];
    try {
      return await withCluster({ replicas: 1, pace, nodeOptions }, (cluster) => measured(cluster, pace.users, directory));
    } finally {
      await rm(directory, { recursive: true });
    }
  },
};

async function measured(cluster: Cluster, users: number, directory: string): Promise<readonly Row[]> {
  const recorded = await RecordedUsers.open(cluster);
  try {
    const steps: { readonly users: number; readonly memory: MemoryByProcess }[] = [];
    for (const part of PARTS) {
      const [before, now] = [steps.at(-1)?.users ?? 0, Math.round(users * part)];
      const use = await processorUse(cluster);
      const begin = performance.now();
      await recorded.record(now - before, () => caughtUp(cluster));
      console.error(`  ${count((now - before) / ((performance.now() - begin) / 1_000))}/s; ${inWords(await use.perRequest(now - before))}`);
      steps.push({ users: now, memory: await memoryOf(cluster, directory) });
      console.error(`  ${count(now)} users: ${[...steps.at(-1)!.memory].map(([name, each]) => `${name} ${textOf(each)}`).join(', ')}`);
    }
    // What is filled by the first users, such as the table of versions, is no matter of all the others.
    const [first, last] = [steps[1]!, steps.at(-1)!];
    return [...last.memory.keys()].map((name) => {
      const bytes = (last.memory.get(name)!.live - first.memory.get(name)!.live) / (last.users - first.users);
      const figures = `${steps.map((step) => textOf(step.memory.get(name)!)).join(', ')}; ${bytes.toFixed(1)} bytes a user`;
      return row(
        `memory of ${name} after garbage collection (and \`RssAnon\` before) with ${steps.map((step) => count(step.users)).join(', ')} users`,
        'measured',
        figures,
        true,
      );
    });
  } finally {
    await recorded.close();
  }
}

/** Of each process of ours, when it has seen the log and kept its keys for as long as it does. */
async function memoryOf(cluster: Cluster, directory: string): Promise<MemoryByProcess> {
  await caughtUp(cluster);
  await pause(KEYS_GONE_MS);
  const memory = new Map<string, Memory>();
  for (const { name, pid } of cluster.processes) {
    if (pid === null) throw new Error(`${name} has ended.`);
    const rssMegabytes = await rssAnonMegabytes(pid);
    memory.set(name, { live: await liveBytes(pid, join(directory, name)), rssMegabytes });
  }
  return memory;
}

function textOf({ live, rssMegabytes }: Memory): string {
  return `${(live / MEGABYTE).toFixed(1)} MB (${rssMegabytes.toFixed(0)})`;
}
