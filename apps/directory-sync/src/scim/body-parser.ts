import { Worker } from 'node:worker_threads';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { invalidSyntax } from './patch-request.ts';

/** What takes no longer to parse than to hand over. */
const SMALL = 64 * 1024;

/**
 * Of a large body nearly all is members: of each, the text of its value is handed back, which is quicker to take over than an object.
 * Runs in a thread of its own, so it is text.
 */
const PROGRAM = `
const { parentPort } = require('node:worker_threads');
const decoder = new TextDecoder('utf-8', { fatal: true });
const compact = (list) => Array.isArray(list) && list.length > 100
  ? list.map((item) => (item !== null && typeof item === 'object' && typeof item.value === 'string' ? item.value : item)) : list;
const compactIn = (object) => {
  if (object === null || typeof object !== 'object' || Array.isArray(object)) return;
  for (const name of Object.keys(object)) if (name.toLowerCase() === 'members') object[name] = compact(object[name]);
};
parentPort.on('message', ({ id, bytes }) => {
  try {
    const value = JSON.parse(decoder.decode(bytes));
    compactIn(value);
    for (const operation of Array.isArray(value?.Operations) ? value.Operations : []) {
      if (operation === null || typeof operation !== 'object') continue;
      if (typeof operation.path === 'string' && operation.path.toLowerCase() === 'members') operation.value = compact(operation.value);
      else compactIn(operation.value);
    }
    parentPort.postMessage({ id, value });
  } catch {
    parentPort.postMessage({ id, isInvalid: true });
  }
});`;

interface Parsed {
  readonly id: number;
  readonly value?: unknown;
  readonly isInvalid?: true;
}

/** Bodies of groups may have megabytes: those are parsed beside the event loop. */
@Injectable()
export class BodyParser implements OnModuleDestroy {
  private worker: Worker | null = null;
  private readonly waiting = new Map<number, (parsed: Parsed) => void>();
  private next = 0;

  /** @throws ScimError `invalidSyntax` */
  async parse(body: Buffer): Promise<unknown> {
    const parsed = body.length <= SMALL ? parsedHere(body) : await this.parsedBeside(body);
    if (parsed.isInvalid) throw invalidSyntax('The body is no JSON in UTF-8.');
    return parsed.value;
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker?.terminate();
  }

  private parsedBeside(body: Buffer): Promise<Parsed> {
    const worker = (this.worker ??= this.start());
    const id = this.next++;
    const bytes = Uint8Array.from(body);
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      worker.postMessage({ id, bytes }, [bytes.buffer]);
    });
  }

  private start(): Worker {
    const worker = new Worker(PROGRAM, { eval: true });
    worker.unref();
    worker.on('message', (parsed: Parsed) => {
      this.waiting.get(parsed.id)?.(parsed);
      this.waiting.delete(parsed.id);
    });
    // Out of memory, or ended: what it had is refused, and the next body begins another.
    worker.on('exit', () => {
      if (this.worker === worker) this.worker = null;
      for (const [id, resolve] of this.waiting) resolve({ id, isInvalid: true });
      this.waiting.clear();
    });
    worker.on('error', () => {});
    return worker;
  }
}

/** Of what is not UTF-8, something else would be kept than was sent. */
const decoder = new TextDecoder('utf-8', { fatal: true });

function parsedHere(body: Buffer): Parsed {
  try {
    return { id: 0, value: JSON.parse(decoder.decode(body)) };
  } catch {
    return { id: 0, isInvalid: true };
  }
}
