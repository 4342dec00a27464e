import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../../dist/libs/testing/src/log-writer.js', import.meta.url));

/** A line of the program: an append that was acknowledged. */
export interface Acknowledged {
  readonly stream: string;
  readonly version: number;
  readonly position: string;
  readonly id: string;
}

/** How many events it appends at a version. */
export const eventsAt = (version: number): number => 1 + (version % 3);

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  /** Whole lines only: the last may be cut by a kill. */
  readonly acknowledged: readonly Acknowledged[];
}

interface LogWriterProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves at the `count`-th acknowledgement, or at the end. */
  hasAcknowledged(count: number): Promise<void>;
}

/** `log-writer.ts` of the build, as a process of its own; `kilobytes` is the length at which the system lets its files grow no more. */
export function startLogWriter(
  directory: string,
  { writers = 16, padding = 200, kilobytes }: { readonly writers?: number; readonly padding?: number; readonly kilobytes?: number } = {},
): LogWriterProcess {
  const command = [process.execPath, PROGRAM, directory, String(writers), String(padding)];
  const child = kilobytes === undefined ? spawn(command[0]!, command.slice(1)) : spawn('bash', ['-c', `ulimit -f ${kilobytes}; exec "$@"`, 'bash', ...command]);
  let [stdout, stderr, lines] = ['', '', 0];
  const waiting = new Map<() => void, number>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    lines += text.split('\n').length - 1;
    for (const [wake, count] of waiting) if (lines >= count) wake();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = once(child, 'close').then(([code, signal]) => {
    for (const wake of waiting.keys()) wake();
    return {
      code,
      signal,
      stderr,
      acknowledged: stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Acknowledged),
    };
  });
  return { child, ended, hasAcknowledged: (count) => new Promise((resolve) => (lines >= count ? resolve() : waiting.set(resolve, count))) };
}
