import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Acknowledged } from './log-writer-process.ts';

const PROGRAM = fileURLToPath(new URL('../../../dist/libs/testing/src/storage-writer.js', import.meta.url));

/** A line of the program. */
export interface StorageAnswer {
  readonly done: 'open' | 'one' | 'append' | 'row' | 'tree' | 'refused';
  readonly acknowledged: readonly Acknowledged[];
  readonly refusal?: string;
}

interface Options {
  readonly locks?: 'locked' | 'unlocked';
  /** What the program is started by. */
  readonly through?: readonly string[];
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** `storage-writer.ts` of the build, as a process of its own. */
export class StorageWriter {
  readonly acknowledged: Acknowledged[] = [];
  readonly ended: Promise<Ended>;
  private readonly answers: AsyncIterator<string>;
  private stderr = '';

  private constructor(readonly child: ChildProcess) {
    this.answers = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    // It may have ended before it is told something.
    child.stdin!.on('error', () => {});
    this.ended = once(child, 'close').then(([code, signal]) => ({ code, signal, stderr: this.stderr }));
  }

  /** Resolves when it has opened the directory, or has ended without. */
  static async start(directory: string, { locks = 'locked', through = [] }: Options = {}): Promise<StorageWriter> {
    const [program, ...args] = [...through, process.execPath, PROGRAM, directory, locks];
    const writer = new StorageWriter(spawn(program, args));
    await writer.answered();
    return writer;
  }

  /** What it answers to `append COUNT`, `row KEY` or `tree NAME`; null when it ended instead. */
  tell(command: string): Promise<StorageAnswer | null> {
    this.child.stdin!.write(`${command}\n`);
    return this.answered();
  }

  async kill(): Promise<Ended> {
    this.child.kill('SIGKILL');
    return this.ended;
  }

  private async answered(): Promise<StorageAnswer | null> {
    for (;;) {
      const { value, done } = await this.answers.next();
      if (done) return null;
      const answer = JSON.parse(value) as StorageAnswer;
      this.acknowledged.push(...answer.acknowledged);
      if (answer.done !== 'one') return answer;
    }
  }
}
