import { execFile } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '#libs/testing/src/engines/free-port';
import { processorSeconds, rssAnonMegabytes } from './processor.ts';
import { Program } from './program.ts';

/** Of one processor: what a process that has nothing to do takes. */
const AT_REST = 0.1;
export const KEY = 'sk_bench_0123456789abcdef';

/** The suite as its users run it, on a data directory of the bench. */
export class Suite {
  private constructor(
    private readonly program: Program,
    readonly url: string,
    /** Milliseconds from the start of the process until `/health/ready` answered 200. */
    readonly startToReady: number,
  ) {}

  /** `nodeOptions`: of Node, for its process. */
  static async start(directory: string, nodeOptions: readonly string[] = []): Promise<Suite> {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const settings = { ...settingsFor(directory), HOST: '127.0.0.1', PORT: `${port}`, NODE_OPTIONS: nodeOptions.join(' ') };
    const program = new Program('programs/suite.js', settings);
    return new Suite(program, url, await program.answers(`${url}/health/ready`));
  }

  /** Resolves with the milliseconds that the command line took. */
  static async command(directory: string, ...args: readonly string[]): Promise<number> {
    return new Program('programs/gatehouse.js', settingsFor(directory), args).ended();
  }

  /** What names the environment to applications. */
  static async clientId(directory: string): Promise<string> {
    const program = fileURLToPath(new URL('../programs/gatehouse.js', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [program, 'environments', 'list'], { env: settingsFor(directory) });
    const [id] = /client_\w+/.exec(stdout) ?? [];
    if (id === undefined) throw new Error(`The command line told no client id: ${stdout}`);
    return id;
  }

  async get(path: string): Promise<string> {
    return (await fetch(this.url + path, { headers: { authorization: `Bearer ${KEY}` } })).text();
  }

  post(path: string, body: unknown): Promise<unknown> {
    return this.send('POST', path, body, 201);
  }

  put(path: string, body: unknown): Promise<unknown> {
    return this.send('PUT', path, body, 200);
  }

  patch(path: string, body: unknown): Promise<unknown> {
    return this.send('PATCH', path, body, 200);
  }

  /** A question that is a POST. */
  ask(path: string, body: unknown): Promise<unknown> {
    return this.send('POST', path, body, 200);
  }

  /** How far each follower of the log is behind, by the name of its metric. */
  async lags(): Promise<ReadonlyMap<string, number>> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const series = [...text.matchAll(/^gatehouse_(\w*lag_seconds(?:\{[^}]*\})?) (\S+)$/gm)];
    return new Map(series.map(([, name, value]) => [name!, Number(value)]));
  }

  /** How many appends there were, and how long they took in all until they were durable: the least that any write takes. */
  async appends(): Promise<{ readonly count: number; readonly milliseconds: number }> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const [sum, count] = ['sum', 'count'].map((part) => Number(new RegExp(`^gatehouse_append_duration_seconds_${part} (\\S+)$`, 'm').exec(text)?.[1]));
    return { count: count!, milliseconds: sum! * 1_000 };
  }

  /** Resolves once every follower of the log is at its end: those that tell how far they are, and those of which only the processor knows. */
  async caughtUp(): Promise<void> {
    while (Math.max(...(await this.lags()).values()) > 0) await pause(1_000);
    for (let used = Infinity; used > AT_REST;) {
      const before = await this.processorSeconds();
      await pause(3_000);
      used = ((await this.processorSeconds()) - before) / 3;
    }
  }

  rssAnonMegabytes(): Promise<number> {
    return rssAnonMegabytes(this.program.pid);
  }

  get pid(): number {
    return this.program.pid;
  }

  /** Seconds of processor time that this process has used, all its threads together. */
  processorSeconds(): Promise<number> {
    return processorSeconds(this.program.pid);
  }

  async stop(): Promise<void> {
    await this.program.stop();
  }

  private async send(method: 'POST' | 'PUT' | 'PATCH', path: string, body: unknown, expected: number): Promise<unknown> {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const answer = await fetch(this.url + path, { method, headers, body: JSON.stringify(body) });
    if (answer.status !== expected) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
    return answer.json();
  }
}

/** Of a suite on a data directory, and of programs that take its place there. */
export function settingsFor(directory: string): Readonly<Record<string, string>> {
  // A name server that refuses at once, so that no domain of the bench is asked for outside.
  return { DATA_DIR: directory, GATEHOUSE_API_KEY: KEY, RATE_LIMITS: 'off', LOG_LEVEL: 'warn', DNS_SERVERS: '127.0.0.1:9' };
}
