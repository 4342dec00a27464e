import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { nodeFlags } from '#libs/testing/src/deployment/image';

/** Found from dist/bench, where this file runs. */
const BUILT = new URL('../', import.meta.url);

/** A program of this build as a process of its own, so that what it costs is seen from outside. */
export class Program {
  private readonly child: ChildProcess;
  readonly started = performance.now();

  /** `file` below dist; the environment holds nothing but `settings`. */
  constructor(file: string, settings: Readonly<Record<string, string>>, args: readonly string[] = []) {
    const flags = file.startsWith('programs/') ? nodeFlags() : [];
    this.child = spawn(process.execPath, [...flags, fileURLToPath(new URL(file, BUILT)), ...args], {
      env: { ...settings },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Resolves with the milliseconds since the start. @throws Error when the program ended with a failure */
  async ended(): Promise<number> {
    if (!this.hasEnded) await once(this.child, 'exit');
    if (this.child.exitCode !== 0) throw new Error(`${this.child.spawnargs.join(' ')} ended with ${this.child.exitCode ?? this.child.signalCode}.`);
    return performance.now() - this.started;
  }

  async stop(): Promise<void> {
    if (this.hasEnded) return;
    this.child.kill('SIGTERM');
    await once(this.child, 'exit');
  }

  /** Milliseconds from the start until `url` answered 200. */
  async answers(url: string, timeoutMs = 600_000): Promise<number> {
    while (performance.now() - this.started < timeoutMs) {
      if (this.hasEnded) throw new Error(`${this.child.spawnargs.join(' ')} ended before it answered.`);
      const answer = await fetch(url).catch(() => null);
      await answer?.arrayBuffer();
      if (answer?.status === 200) return performance.now() - this.started;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    throw new Error(`${url} did not answer 200 in ${timeoutMs / 1_000} s.`);
  }
}
