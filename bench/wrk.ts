import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Found from dist/bench, where this file runs. */
const SCRIPTS = new URL('../../bench/wrk/', import.meta.url);
const MILLISECONDS = { us: 0.001, ms: 1, s: 1_000, m: 60_000 } as const;

export interface Load {
  readonly url: string;
  /** Of bench/wrk, without its ending. */
  readonly script: 'get' | 'send' | 'create' | 'mixed' | 'refresh' | 'codes' | 'events' | 'people';
  readonly arguments: readonly string[];
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly perSecond: number;
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
}

/** wrk is missing, or what it measured was not the work that was meant. */
class LoadFailed extends Error {}

export async function hasWrk(): Promise<boolean> {
  return run(['--version']).then(
    () => true,
    // It is there when it only ends with another code than 0, as it does here.
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
  );
}

/** One thread of wrk, so that the server keeps the other core. @throws LoadFailed when answers were refusals: they are cheaper than the work */
export async function load({ url, script, connections, seconds, arguments: extra }: Load): Promise<LoadResult> {
  const file = fileURLToPath(new URL(`${script}.lua`, SCRIPTS));
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '--latency', '-s', file];
  const output = await run([...options, url, '--', ...extra]);
  const refused = /Non-2xx or 3xx responses: (\d+)|Socket errors: (.+)/.exec(output);
  if (refused) throw new LoadFailed(`wrk -s ${script}.lua ${url}: ${refused[0]}`);
  return {
    perSecond: Number(found(/Requests\/sec:\s+([\d.]+)/, output)),
    requests: Number(found(/(\d+) requests in/, output)),
    p50: milliseconds(/^\s+50%\s+(\S+)\s*$/m, output),
    p99: milliseconds(/^\s+99%\s+(\S+)\s*$/m, output),
  };
}

async function run(args: readonly string[]): Promise<string> {
  return (await execute('wrk', args)).stdout;
}

function milliseconds(pattern: RegExp, output: string): number {
  const [, value, unit] = /^([\d.]+)(us|ms|s|m)$/.exec(found(pattern, output)) ?? [];
  if (value === undefined || unit === undefined) throw new LoadFailed(`wrk printed no latency:\n${output}`);
  return Number(value) * MILLISECONDS[unit as keyof typeof MILLISECONDS];
}

function found(pattern: RegExp, output: string): string {
  const value = pattern.exec(output)?.[1];
  if (value === undefined) throw new LoadFailed(`wrk printed something else than its numbers:\n${output}`);
  return value;
}
