import { AccessDeniedError, convertToCommandError, StreamDeletedError } from '@eventstore/db-client';
import { DomainError } from '#libs/platform/src/domain-error';

/** Statuses of gRPC, as they travel. */
const UNKNOWN = 2;
const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const UNAUTHENTICATED = 16;

/**
 * What has gone wrong, by what helps: asking again (`passing`: whatever the server or the way to it says, a broken stream and an ended call too), allowing
 * the user more (`refused`), nothing, since a stream was deleted for good (`deleted`), or correcting this program (`ours`).
 */
type Failure = 'passing' | 'refused' | 'deleted' | 'ours';

/** The server does not let the user append. */
export class AppendRefused extends Error {}

export function failureOf(error: unknown): Failure {
  if (error instanceof AppendRefused || error instanceof AccessDeniedError) return 'refused';
  const code = codeOf(error);
  if (code === PERMISSION_DENIED || code === UNAUTHENTICATED) return 'refused';
  if (error instanceof StreamDeletedError) return 'deleted';
  return [TypeError, RangeError, ReferenceError].some((type) => error instanceof type) ? 'ours' : 'passing';
}

/**
 * Whether the server refuses the position that it was to begin at: it lies inside a record, as positions of another log do. Servers before 24.10 only say that
 * something went wrong (`maybe`).
 */
export function isPositionRefused(error: unknown): 'yes' | 'maybe' | 'no' {
  if (codeOf(error) === INVALID_ARGUMENT) return 'yes';
  return codeOf(error) === UNKNOWN && (error as Error).message.includes('Exception was thrown by handler') ? 'maybe' : 'no';
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : null;
}

/** Whether that is why the log is unavailable. */
export function isRefused(error: unknown): boolean {
  return error instanceof DomainError && failureOf(error.cause) === 'refused';
}

/** An error of gRPC as one of the driver's. Those of which the driver expects more than a server says stay as they are. */
export function driverErrorOf(error: Error): Error {
  try {
    return convertToCommandError(error);
  } catch {
    return error;
  }
}
