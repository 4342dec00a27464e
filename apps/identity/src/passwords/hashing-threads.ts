import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { Worker } from 'node:worker_threads';

/** A cost, for a salt of its own, or cost and salt as they stand in a hash. */
type Salt = number | string;

interface Job {
  readonly resolve: (hash: string) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * What a thread does. On Linux a priority is that of the thread which sets it; elsewhere it would be that of the whole process, which keeps its own. Text, since a thread
 * begins with a file that Node itself can read.
 */
const PROGRAM = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { setPriority } = require('node:os');
  const { hashSync } = require(workerData.bcrypt);
  if (process.platform === 'linux') try { setPriority(workerData.priority); } catch {}
  parentPort.on('message', ({ text, salt }) => parentPort.postMessage(hashSync(text, salt)));
`;

/** Threads of bcrypt alone, begun when they are needed and kept. Everything else goes before them: a hash takes a quarter of a second, and what is asked beside it a thousandth. */
export class HashingThreads {
  private idle: HashingThread[] = [];
  private readonly all = new Set<HashingThread>();

  /** Takes a thread for each that is asked for at once: whoever asks says how many that may be. */
  async hash(text: string, salt: Salt): Promise<string> {
    const thread = this.idle.pop() ?? this.begun();
    const hash = await thread.hash(text, salt);
    this.idle.push(thread);
    return hash;
  }

  async end(): Promise<void> {
    this.idle = [];
    await Promise.all([...this.all].map((thread) => thread.end()));
  }

  private begun(): HashingThread {
    const thread: HashingThread = new HashingThread(() => {
      this.all.delete(thread);
      this.idle = this.idle.filter((each) => each !== thread);
    });
    this.all.add(thread);
    return thread;
  }
}

/** One that failed is used no more. */
class HashingThread {
  private readonly worker: Worker;
  private job: Job | null = null;

  constructor(ended: () => void) {
    const workerData = { bcrypt: createRequire(import.meta.url).resolve('bcrypt'), priority: constants.priority.PRIORITY_BELOW_NORMAL };
    this.worker = new Worker(PROGRAM, { eval: true, workerData });
    this.worker.unref();
    this.worker.on('message', (hash: string) => this.settle(({ resolve }) => resolve(hash)));
    this.worker.on('error', (error) => this.settle(({ reject }) => reject(error)));
    this.worker.on('exit', () => {
      ended();
      this.settle(({ reject }) => reject(new Error('A thread that hashed a password has ended.')));
    });
  }

  hash(text: string, salt: Salt): Promise<string> {
    return new Promise((resolve, reject) => {
      this.job = { resolve, reject };
      // Nothing else may keep the process there until the hash is.
      this.worker.ref();
      this.worker.postMessage({ text, salt });
    });
  }

  async end(): Promise<void> {
    await this.worker.terminate();
  }

  private settle(how: (job: Job) => void): void {
    const { job } = this;
    this.job = null;
    this.worker.unref();
    if (job !== null) how(job);
  }
}
