import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { environmentVariables } from '#libs/platform/src/config/environment';
import type { Variables } from '#libs/platform/src/config/setting';
import type { WatchedDirectory } from './watched-directory.ts';

const READY_MS = 60_000;
/** Eight processes that start at once are not to be kept from it by being asked. */
const READY_POLL_MS = 200;
const STOP_MS = 30_000;

/** What to start, again and again with the same words: addresses are part of them. */
export interface WatchedCommand {
  readonly name: string;
  readonly command: readonly string[];
  /** Settings of the process; the way to programs is added. */
  readonly variables?: Variables;
  /** Asked until it says yes. */
  readonly isReady: () => Promise<boolean>;
}

/** A process with a folder of its own in a watched directory, where its output goes to `log`. */
export class WatchedProcess {
  private child: ChildProcess | null = null;
  /** The number of one that runs, where it was not started by these modules. */
  private found: number | null = null;
  /** Whether its end was asked for. */
  private isEnding = false;
  private tell: (how: string) => void = () => {};

  protected constructor(
    private readonly directory: WatchedDirectory,
    private readonly what: WatchedCommand,
  ) {}

  /** @throws Error with the last lines of its output, when it ends before it is ready */
  static async start(directory: WatchedDirectory, what: WatchedCommand): Promise<WatchedProcess> {
    const process = new WatchedProcess(directory, what);
    await process.run();
    return process;
  }

  get name(): string {
    return this.what.name;
  }

  get folder(): string {
    return join(this.directory.path, this.what.name);
  }

  get pid(): number | null {
    if (this.child === null) return this.found;
    return hasEnded(this.child) ? null : this.child.pid!;
  }

  /** Of everything it printed since its first start. */
  get log(): string {
    return join(this.folder, 'log');
  }

  /** `tell` hears the signal or the exit code when it ends without being asked. */
  onUnexpectedEnd(tell: (how: string) => void): void {
    this.tell = tell;
  }

  async pause(): Promise<void> {
    process.kill(this.pid!, 'SIGSTOP');
  }

  async resume(): Promise<void> {
    process.kill(this.pid!, 'SIGCONT');
  }

  async stop(): Promise<void> {
    await this.end('SIGTERM');
  }

  async kill(): Promise<void> {
    await this.end('SIGKILL');
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.run();
  }

  /** Takes it as it runs. */
  protected find(): void {
    this.found = Number(readFileSync(this.number, 'utf8'));
  }

  protected async run(): Promise<void> {
    mkdirSync(this.folder, { recursive: true });
    const { number } = this;
    rmSync(number, { force: true });
    this.isEnding = false;
    // The shell becomes the program, so that its number is written down before it does anything.
    const child = spawn('/bin/sh', ['-c', 'echo $$ > pid; exec "$@" >> log 2>&1', 'sh', ...this.what.command], {
      cwd: this.folder,
      env: { PATH: environmentVariables()['PATH'], ...this.what.variables },
      detached: true,
      stdio: 'ignore',
    });
    child.unref();
    child.once('exit', (code, signal) => {
      if (!this.isEnding && this.child === child) this.tell(signal ?? `exit code ${code}`);
    });
    this.child = child;
    for (const deadline = Date.now() + READY_MS; !(existsSync(number) && (await this.what.isReady())); await pause(READY_POLL_MS)) {
      if (hasEnded(child)) throw new Error(`${this.name} ended with ${child.signalCode ?? child.exitCode} before it was ready: ${this.lastLines()}`);
      if (Date.now() < deadline) continue;
      await this.kill();
      throw new Error(`${this.name} was not ready after ${READY_MS / 1000} s: ${this.lastLines()}`);
    }
  }

  /** A paused process hears nothing but a kill, so it is resumed. One that does not end in time is killed. */
  private async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    this.isEnding = true;
    if (child === null && this.found !== null) return this.endFound(signal);
    if (child === null || hasEnded(child)) return;
    child.ref();
    const ended = once(child, 'exit');
    child.kill(signal);
    child.kill('SIGCONT');
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(late);
  }

  /** Who started it hears of its end, so that its number is free then. */
  private async endFound(signal: NodeJS.Signals): Promise<void> {
    const pid = this.found!;
    this.found = null;
    for (const word of [signal, 'SIGCONT'] as const) send(pid, word);
    for (const deadline = Date.now() + STOP_MS; send(pid, 0); await pause(50)) if (Date.now() > deadline) send(pid, 'SIGKILL');
  }

  private get number(): string {
    return join(this.folder, 'pid');
  }

  private lastLines(): string {
    return existsSync(this.log) ? readFileSync(this.log, 'utf8').split('\n').slice(-20).join('\n') : '';
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Whether it was there. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
