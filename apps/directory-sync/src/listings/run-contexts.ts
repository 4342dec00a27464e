import { hash } from 'node:crypto';
import { BASE_32, derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { StoredRun } from './directory-runs.ts';

const TIMEOUT_MS = 30_000;
const RANDOM_LENGTH = 12;

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

/** The time of the run, and what is random of other ids follows from what it is for. */
function commandIdOf({ id }: StoredRun, what: string, ordinal: number | string): string {
  const digest = hash('sha256', `${id} ${what} ${ordinal}`, 'buffer');
  const random = Array.from(digest.subarray(0, RANDOM_LENGTH), (byte) => BASE_32[byte % BASE_32.length]!).join('');
  return `${id.slice(-26, -16)}${random}0000`;
}
