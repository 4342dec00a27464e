import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { UnfinishedErasure } from '#libs/event-sourcing/src/erasure/erasure-check';
import type { LogProblem } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START, type Position } from '#libs/event-sourcing/src/log/event-store';
import { StartRefused } from '#libs/platform/src/start-refused';

/** How a process ends that found no damage, and erasures that are not carried out. */
const ERASURES_LEFT = 3;

/** What the child says, line by line. */
export type VerifyLine =
  | { readonly reading: Position }
  | { readonly problem: LogProblem }
  | { readonly erasure: UnfinishedErasure }
  | { readonly head: Position }
  | { readonly refusal: string };

export interface Verified {
  readonly head: Position;
  /** The first bad record, in words; null when all are good. */
  readonly problem: string | null;
  /** Erasures that the log asks for and the keys have not seen. */
  readonly unfinished: readonly UnfinishedErasure[];
}

interface ChildResult {
  readonly head: Position | null;
  readonly firstProblem: LogProblem | null;
  readonly unfinished: readonly UnfinishedErasure[];
  /** Why the keys could not be looked at. */
  readonly refusal: string | null;
  /** Where the last chunk began. */
  readonly reached: Position;
  /** How the process ended, where it did not end by itself. */
  readonly death: string | null;
}

/**
 * Reads every record of a data directory, checks it and its place in the index, and names the first that is bad. With a directory of keys, it also looks whether the key of
 * everything sealed is there, and of who was erased none. A server may go on writing meanwhile.
 */
export async function verifyLog(directory: string, keys: string | null): Promise<Verified> {
  if (!existsSync(join(directory, 'log', 'data.mdb'))) throw new StartRefused(`There is no data in ${directory}.`);
  const { head, firstProblem, unfinished, refusal, reached, death } = await walk([directory, keys ?? '', START]);
  if (refusal !== null) throw new StartRefused(refusal);
  if (firstProblem !== null) return { head: head ?? reached, problem: problemText(firstProblem), unfinished };
  if (death === null) return { head: head!, problem: null, unfinished };
  // Somewhere in this chunk: go there one by one.
  const nearer = await walk([directory, '', reached, '1']);
  const problem = `The record at position ${nearer.reached || 'of the beginning'} cannot be read: the process that tried ${death}.`;
  return { head: nearer.reached, problem, unfinished };
}

/** The log is whole, and somebody whom it calls erased can still be read. */
export function erasuresUnfinished(unfinished: readonly UnfinishedErasure[], head: Position): StartRefused {
  return new StartRefused(
    `All records up to position ${head} are good, and their keys are there; but erasures are not carried out: ${unfinished.length}. The first: ${problemText(unfinished[0]!)} ` +
      'A server that runs carries them out, or one that starts, within seconds; docs/operations.md says what to do where they stay.',
    ERASURES_LEFT,
  );
}

/** A bad record, in words. */
export function problemText({ position, stream, detail }: LogProblem): string {
  return `The record at position ${position}${stream === null ? '' : ` (${stream})`} ${detail}${detail.endsWith('.') ? '' : '.'}`;
}

async function walk(args: readonly string[]): Promise<ChildResult> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'verify-child.js'), ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  let head: Position | null = null;
  let firstProblem: LogProblem | null = null;
  const unfinished: UnfinishedErasure[] = [];
  let refusal: string | null = null;
  let reached = args[2]!;
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as VerifyLine;
    if ('reading' in line) reached = line.reading;
    else if ('problem' in line) firstProblem ??= line.problem;
    else if ('erasure' in line) unfinished.push(line.erasure);
    else if ('refusal' in line) refusal = line.refusal;
    else head = line.head;
  }
  const [code, signal] = await ended;
  return { head, firstProblem, unfinished, refusal, reached, death: signal !== null ? `ended by ${signal}` : code === 0 ? null : `ended with code ${code}` };
}
