import { Worker } from 'node:worker_threads';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { invalidValue } from '../domain/scim-domain-error.ts';
import { invalidSyntax } from './patch-request.ts';

/** What takes no longer to parse than to hand over. */
const SMALL = 64 * 1024;

/** Values of a large body beside its members: more are refused where they were parsed, since it takes seconds to hand them over and to look at each. */
const MOST_VALUES = 20_000;
/** How deep they lie in each other: what is much deeper is not taken over at all. */
const MAX_DEPTH = 100;

/**
 * Of a large body nearly all is members: of each, the text of its value is handed back, which is quicker to take over than an object.
 * Runs in a thread of its own, so it is text.
 */
const PROGRAM = `
const { parentPort } = require('node:worker_threads');
const decoder = new TextDecoder('utf-8', { fatal: true });
const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const isMembers = (name) => /(?:^|:)members$/i.test(name);
const compacted = (list, lists) => {
  if (!Array.isArray(list)) return list;
  const values = list.map((item) => (isObject(item) && typeof item.value === 'string' ? item.value : item));
  if (values.every((value) => typeof value === 'string')) lists.add(values);
  return values;
};
const compactIn = (object, lists, isWithin) => {
  if (!isObject(object)) return;
  for (const name of Object.keys(object))
    if (isMembers(name)) object[name] = compacted(object[name], lists);
    else if (!isWithin && /^urn:/i.test(name)) compactIn(object[name], lists, true);
};
const isTooMuch = (value, lists) => {
  let level = [value];
  for (let values = 0, depth = 0; level.length > 0; depth++) {
    const next = [];
    for (const each of level) {
      if (each === null || typeof each !== 'object' || lists.has(each)) continue;
      const inner = Object.values(each);
      values += inner.length;
      if (values > ${MOST_VALUES} || depth > ${MAX_DEPTH}) return true;
      for (const one of inner) next.push(one);
    }
    level = next;
  }
  return false;
};
parentPort.on('message', ({ id, bytes }) => {
  try {
    const value = JSON.parse(decoder.decode(bytes));
    const lists = new Set();
    compactIn(value, lists, false);
    for (const operation of Array.isArray(value?.Operations) ? value.Operations : []) {
      if (!isObject(operation)) continue;
      if (typeof operation.path === 'string' && isMembers(operation.path)) operation.value = compacted(operation.value, lists);
      else compactIn(operation.value, lists, false);
    }
    parentPort.postMessage(isTooMuch(value, lists) ? { id, refused: 'values' } : { id, value });
  } catch {
    parentPort.postMessage({ id, refused: 'syntax' });
  }
});`;

interface Parsed {
  readonly id: number;
  readonly value?: unknown;
  readonly refused?: 'syntax' | 'values';
}

/** Bodies of groups may have megabytes: those are parsed beside the event loop. */
@Injectable()
export class BodyParser implements OnModuleDestroy {
  private worker: Worker | null = null;
  private readonly waiting = new Map<number, (parsed: Parsed) => void>();
  private next = 0;

  /** @throws ScimError `invalidSyntax`, `invalidValue` */
  async parse(body: Buffer): Promise<unknown> {
    const parsed = body.length <= SMALL ? parsedHere(body) : await this.parsedBeside(body);
    if (parsed.refused === 'values') throw invalidValue('The body has too many values beside the members of the group, or is nested too deeply.');
    if (parsed.refused === 'syntax') throw invalidSyntax('The body is no JSON in UTF-8.');
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
      for (const [id, resolve] of this.waiting) resolve({ id, refused: 'syntax' });
      this.waiting.clear();
    });
    worker.on('error', () => {});
    // What cannot be taken over does not say whose it was.
    worker.on('messageerror', () => void worker.terminate());
    return worker;
  }
}

/** Of what is not UTF-8, something else would be kept than was sent. */
const decoder = new TextDecoder('utf-8', { fatal: true });

function parsedHere(body: Buffer): Parsed {
  try {
    return { id: 0, value: JSON.parse(decoder.decode(body)) };
  } catch {
    return { id: 0, refused: 'syntax' };
  }
}
