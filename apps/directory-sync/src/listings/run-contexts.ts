import { hash } from 'node:crypto';
import { BASE_32, derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { StoredRun } from './directory-runs.ts';

const TIMEOUT_MS = 30_000;
const RANDOM_LENGTH = 12;
/** Of base 32: far more than a listing has people. */
const NUMBER_LENGTH = 5;

/** Why a run ends before it is through. */
export class RunFailed extends Error {
  constructor(
    readonly code: 'content_lost' | 'content_damaged' | 'directory_deleted' | 'directory_unlinked' | 'too_many' | 'internal_error',
    message: string,
  ) {
    super(message);
  }
}

/** For one change of a run: done again after a kill, it is the same command. */
export function contextOf(run: StoredRun, what: string, ordinal: number | string, now: number): RequestContext {
  const { environment, actor, request_id: requestId } = run;
  return { environment, actor, requestId, commandId: commandIdOf(run, what, ordinal), deadline: now + TIMEOUT_MS, receipt: {} };
}

/** The id of what a change of a run creates. */
export function createdId(run: StoredRun, prefix: string, ordinal: number): string {
  return `${prefix}_${derivedId(commandIdOf(run, prefix, ordinal), 0)}`;
}

/** The time of the run, then what is numbered in its order: rows that come in the order of their ids cost a fraction of others. What is random follows from the run and what it is for. */
function commandIdOf({ id }: StoredRun, what: string, ordinal: number | string): string {
  const isNumbered = typeof ordinal === 'number';
  const digest = hash('sha256', isNumbered ? `${id} ${what}` : `${id} ${what} ${ordinal}`, 'binary');
  let random = '';
  for (let place = 0; place < RANDOM_LENGTH; place++) random += BASE_32[digest.charCodeAt(place) % BASE_32.length]!;
  return `${id.slice(-26, -16)}${isNumbered ? numbered(ordinal) : ''}${random.slice(isNumbered ? NUMBER_LENGTH : 0)}0000`;
}

/** Texts sort as the numbers do. */
function numbered(ordinal: number): string {
  let text = '';
  for (let rest = ordinal; text.length < NUMBER_LENGTH; rest = Math.floor(rest / BASE_32.length)) text = BASE_32[rest % BASE_32.length]! + text;
  return text;
}
