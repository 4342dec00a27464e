import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { environmentVariables } from '#libs/platform/src/config/environment';

/** This file runs from the sources and from the build. */
export const ROOT = fileURLToPath(new URL(import.meta.url.includes('/dist/libs/') ? '../../../../' : '../../../', import.meta.url));
const READY = /ready at (?<url>http:\/\/[^\s"]+) in/;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Variables = Readonly<Record<string, string>>;

/**
 * A program of the product, below `dist`: as it is shipped, where `run.mjs` has built it for these specs; as it was compiled where that was done by hand, and where modules are loaded
 * before it, which are to be its own.
 */
export function productProgram(name: string, { NODE_OPTIONS = '' }: Variables): string {
  if (environmentVariables()['PROGRAMS'] === 'bundled' && !NODE_OPTIONS.includes('--import')) return `programs/${name}`;
  return name === 'gatehouse' ? 'apps/suite/src/cli' : `apps/${name}/src/main`;
}

interface Limits {
  /** In bytes: a file that may not grow any more is a disk that is full. */
  readonly largestFile?: number;
}

/** A program of the build (`npm run build`), as a process of its own. */
export class Program {
  readonly ended: Promise<Ended>;
  private stdout = '';
  private stderr = '';

  private constructor(private readonly child: ChildProcess) {
    child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = once(child, 'close').then(([code, signal]) => ({ code, signal, stdout: this.stdout, stderr: this.stderr }));
  }

  /** `file` lies below `dist` and is named without its ending. */
  static start(file: string, args: readonly string[], variables: Variables, { largestFile }: Limits = {}): Program {
    const command = [process.execPath, `${ROOT}dist/${file}.js`, ...args];
    const limited = largestFile === undefined ? command : ['/bin/bash', '-c', `ulimit -f ${Math.floor(largestFile / 1024)}; exec "$@"`, 'bash', ...command];
    return new Program(spawn(limited[0]!, limited.slice(1), { cwd: ROOT, env: variables, stdio: ['ignore', 'pipe', 'pipe'] }));
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Resolves with the first match in what it prints; null when it ends without one. */
  printed(pattern: RegExp): Promise<RegExpExecArray | null> {
    return new Promise((resolve) => {
      const look = (): void => {
        const match = pattern.exec(this.stdout);
        if (match === null) return;
        this.child.stdout!.off('data', look);
        resolve(match);
      };
      this.child.stdout!.on('data', look);
      look();
      void this.ended.then(() => resolve(pattern.exec(this.stdout)));
    });
  }

  kill(signal: NodeJS.Signals): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }
}

/** The suite as a process: what is tried on it may end with `kill -9`. */
export class SuiteProcess {
  private constructor(
    private readonly program: Program,
    readonly url: string,
  ) {}

  /** Resolves when it answers requests. @throws Error with what it said when it ends before that */
  static async start(variables: Variables, limits?: Limits): Promise<SuiteProcess> {
    const program = Program.start(productProgram('suite', variables), [], { PORT: '0', ...variables }, limits);
    const url = (await program.printed(READY))?.groups?.['url'];
    if (url !== undefined) return new SuiteProcess(program, url);
    const { code, signal, stderr } = await program.ended;
    throw new Error(`The suite ended with ${signal ?? code} before it was ready: ${stderr}`);
  }

  get pid(): number {
    return this.program.pid;
  }

  /** Whether and how it ended, by itself or by us. */
  get ended(): Promise<Ended> {
    return this.program.ended;
  }

  /** At once, wherever it is. */
  killHard(): Promise<Ended> {
    return this.program.kill('SIGKILL');
  }

  stop(): Promise<Ended> {
    return this.program.kill('SIGTERM');
  }
}

/** The suite, where it is expected not to start; if it does, it is killed. */
export async function failedStart(variables: Variables): Promise<Ended> {
  const program = Program.start(productProgram('suite', variables), [], { PORT: '0', ...variables });
  return (await program.printed(READY)) === null ? program.ended : program.kill('SIGKILL');
}

/** Runs `gatehouse` with these words to its end. */
export function gatehouse(variables: Variables, ...words: readonly string[]): Promise<Ended> {
  return Program.start(productProgram('gatehouse', variables), words, variables).ended;
}
