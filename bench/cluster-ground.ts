import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Cluster } from '#libs/testing/src/cluster/cluster';
import type { EngineDefinition } from '#libs/testing/src/engines/engine-definition';
import type { Engine } from '#libs/testing/src/engines/engine';
import { startEngine } from '#libs/testing/src/engines/start-engine';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { inWords, ProcessorUse } from './processor.ts';
import type { Pace } from './scenario.ts';
import { count, rate } from './table.ts';
import { load, type Load, type LoadResult } from './wrk.ts';

const POLL = 20;
const STATE_TIMEOUT_MS = 60_000;
/** All processes are asked for their metrics as often. */
const BEHIND_POLL = 100;

export interface ClusterResult extends LoadResult {
  /** Processor time of each process on one request (microseconds). */
  readonly perRequest: ReadonlyMap<string, number>;
}

interface Needs {
  readonly replicas: number;
  readonly pace: Pace;
  /** Of Node, for each of its processes. */
  readonly nodeOptions?: readonly string[];
}

/** Starts everything as processes on this machine for one measurement. */
export async function withCluster<Result>(
  { replicas, pace: { profiles }, nodeOptions = [] }: Needs,
  measure: (cluster: Cluster) => Promise<Result>,
): Promise<Result> {
  const options = [...nodeOptions, ...(profiles === null ? [] : [await loadedFirst('profiler.js', profiles)])];
  const cluster = await Cluster.start({
    replicas,
    // A name server that refuses at once, so that no domain of the bench is asked for outside.
    variables: {
      RATE_LIMITS: 'off',
      LOG_LEVEL: 'warn',
      DNS_SERVERS: '127.0.0.1:9',
      ...(options.length > 0 && { NODE_OPTIONS: options.join(' ') }),
    },
    say: (line) => console.error(`  ${line}`),
  });
  try {
    // A gateway that has just become ready may be about to find the services.
    await patiently(() => asked(cluster, '/organizations?limit=1'));
    return await measure(cluster);
  } finally {
    await cluster.stop();
  }
}

/** The option of Node by which each process of a cluster loads a program of this folder before its own, and is told where to leave what it learns. */
export async function loadedFirst(program: string, directory: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  const url = new URL(program, import.meta.url);
  url.searchParams.set('into', pathToFileURL(directory).href);
  return `--import=${url.href}`;
}

/** What a process keeps once everything was collected; it was loaded with live-memory.js first, which leaves it in `file`. */
export async function liveBytes(pid: number, file: string): Promise<number> {
  await rm(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  return Number(await patiently(() => readFile(file, 'utf8')));
}

/** Starts one engine for one measurement. */
export async function withEngine<Result>(definition: EngineDefinition, measure: (engine: Engine) => Promise<Result>): Promise<Result> {
  const directory = WatchedDirectory.create('bench');
  const engine = await startEngine(definition, directory);
  try {
    return await measure(engine);
  } finally {
    await engine.close();
    directory.remove();
  }
}

/** The cost by process tells which of them is the limit where they all share the cores. */
export async function loadedCluster(cluster: Cluster, given: Load): Promise<ClusterResult> {
  const use = await processorUse(cluster);
  const result = await load(given);
  return { ...result, perRequest: await use.perRequest(result.requests) };
}

export function timing({ perSecond, p50, p99, perRequest }: ClusterResult): string {
  return `${rate(perSecond)}, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms; of processor each: ${inWords(perRequest)}`;
}

/** Of everything that runs for it, and of the bench. */
export function processorUse(cluster: Cluster): Promise<ProcessorUse> {
  return ProcessorUse.begin(new Map([...pidsOf(cluster), ['bench', process.pid]]));
}

/** Of everything that runs for it and is a process of this machine. */
export function pidsOf({ processes, engines: { eventstore, mongodb, kafka } }: Cluster): ReadonlyMap<string, number> {
  return new Map([...processes, eventstore, mongodb, kafka].flatMap(({ name, pid }) => (pid === null ? [] : [[name, pid] as const])));
}

/** Resolves when nothing that follows the log is behind it, so that no measurement pays for what went before. */
export async function caughtUp({ processes }: Cluster): Promise<void> {
  const lags = async (): Promise<readonly number[]> => {
    const texts = await Promise.all(processes.map(async ({ operationsUrl }) => (await fetch(`${operationsUrl}/metrics`)).text()));
    return texts.flatMap((text) => [...text.matchAll(/^gatehouse_\w*lag_seconds(?:\{[^}]*\})? (\S+)$/gm)].map(([, value]) => Number(value)));
  };
  while (Math.max(...(await patiently(lags))) > 0) await pause(BEHIND_POLL);
}

/** One request to the first gateway, under an idempotency key where it is given one. @throws Error when it is refused */
export async function asked<Answer>(cluster: Cluster, path: string, body?: object, key?: string): Promise<Answer> {
  const headers = { authorization: `Bearer ${cluster.key}`, 'content-type': 'application/json', ...(key !== undefined && { 'idempotency-key': key }) };
  const given = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) };
  const answer = await fetch(cluster.gateways[0]!.url + path, given);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`);
  return JSON.parse(text) as Answer;
}

/** Asks until there is an answer: null, or a refusal, is none. @throws Error, the last refusal, when there is none in time */
export async function patiently<Answer>(ask: () => Promise<Answer | null>): Promise<Answer> {
  for (const deadline = performance.now() + STATE_TIMEOUT_MS; ; await pause(POLL)) {
    const answer = await ask().catch((error: unknown) => {
      if (performance.now() > deadline) throw error;
      return null;
    });
    if (answer !== null) return answer;
    if (performance.now() > deadline) throw new Error(`It did not come in ${STATE_TIMEOUT_MS / 1_000} s.`);
  }
}

/** Makes one thing, however often it has to be asked for. @throws Error as `patiently` */
export function made<Answer>(cluster: Cluster, path: string, body: object): Promise<Answer> {
  const key = randomUUID();
  return patiently(() => asked<Answer>(cluster, path, body, key));
}

/** Creates so many organizations, some at a time, and answers where each is read. */
export async function createdOrganizations(cluster: Cluster, organizations: number): Promise<readonly string[]> {
  const paths: string[] = [];
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun < organizations) {
      const name = `Bench Organization ${count((begun += 1))}`;
      const { id } = await made<{ readonly id: string }>(cluster, '/organizations', { name });
      paths.push(`/organizations/${id}`);
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  return paths;
}
