import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { LogProblem } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START, type Position } from '#libs/event-sourcing/src/log/event-store';
import { StartRefused } from '#libs/platform/src/start-refused';

/** What the child says, line by line. */
export type VerifyLine = { readonly reading: Position } | { readonly problem: LogProblem } | { readonly head: Position } | { readonly refusal: string };

export interface Verified {
  readonly head: Position;
  /** The first bad record, in words; null when all are good. */
  readonly problem: string | null;
}

interface ChildResult {
  readonly head: Position | null;
  readonly firstProblem: LogProblem | null;
  /** Why the keys could not be looked at. */
  readonly refusal: string | null;
  /** Where the last chunk began. */
  readonly reached: Position;
  /** How the process ended, where it did not end by itself. */
  readonly death: string | null;
}

/**
 * Reads every record of a data directory, checks it and its place in the index, and names the first that is bad. With a directory of keys, it also looks whether the key of
 * everything sealed is there. A server may go on writing meanwhile.
 */
export async function verifyLog(directory: string, keys: string | null): Promise<Verified> {
  if (!existsSync(join(directory, 'log', 'data.mdb'))) throw new StartRefused(`There is no data in ${directory}.`);
  const { head, firstProblem, refusal, reached, death } = await walk([directory, keys ?? '', START]);
  if (refusal !== null) throw new StartRefused(refusal);
  if (firstProblem !== null) return { head: head ?? reached, problem: problemText(firstProblem) };
  if (death === null) return { head: head!, problem: null };
  // Somewhere in this chunk: go there one by one.
  const nearer = await walk([directory, '', reached, '1']);
  return { head: nearer.reached, problem: `The record at position ${nearer.reached || 'of the beginning'} cannot be read: the process that tried ${death}.` };
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
  let refusal: string | null = null;
  let reached = args[2]!;
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as VerifyLine;
    if ('reading' in line) reached = line.reading;
    else if ('problem' in line) firstProblem ??= line.problem;
    else if ('refusal' in line) refusal = line.refusal;
    else head = line.head;
  }
  const [code, signal] = await ended;
  return { head, firstProblem, refusal, reached, death: signal !== null ? `ended by ${signal}` : code === 0 ? null : `ended with code ${code}` };
}
