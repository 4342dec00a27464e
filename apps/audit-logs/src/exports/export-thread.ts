import { Worker } from 'node:worker_threads';
import { programBeside } from '#libs/platform/src/program-beside';
import type { Lines, SealedBatch, Unreadable } from './export-lines.ts';

/** In MiB: what it works on at a time is far less. */
const HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 };

interface Written {
  readonly number: number;
  readonly written: Lines | Unreadable;
}

interface Waiting {
  readonly resolve: (written: Lines | Unreadable) => void;
  readonly reject: (reason: Error) => void;
}

/** Opens and writes events beside the event loop, in one thread for all exports, which take turns. It is begun with the first of them, and kept. */
export class ExportThread {
  private worker: Worker | null = null;
  private readonly waiting = new Map<number, Waiting>();
  private next = 0;

  lines(batch: SealedBatch): Promise<Lines | Unreadable> {
    const worker = (this.worker ??= this.begun());
    const number = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(number, { resolve, reject });
      worker.postMessage({ number, batch });
    });
  }

  async end(): Promise<void> {
    await this.worker?.terminate();
  }

  private begun(): Worker {
    const worker = new Worker(programBeside(import.meta.url, 'export-lines-child'), { resourceLimits: HEAP });
    worker.unref();
    worker.on('message', ({ number, written }: Written) => {
      this.waiting.get(number)?.resolve(written);
      this.waiting.delete(number);
    });
    let reason = new Error('The thread that writes exports has ended.');
    worker.on('error', (error) => (reason = error));
    // What it had is tried again, by another.
    worker.on('exit', () => {
      if (this.worker === worker) this.worker = null;
      for (const { reject } of this.waiting.values()) reject(reason);
      this.waiting.clear();
    });
    return worker;
  }
}
