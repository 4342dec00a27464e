/** Why something was refused, free of any transport. The HTTP status is looked up by code, in the gateway only. */
export type ErrorKind = 'invalid' | 'unauthenticated' | 'forbidden' | 'not-found' | 'conflict' | 'limited' | 'unavailable';

/** One field that was refused: `field` is a path such as `domain_data.0.domain`. */
export interface FieldError {
  readonly code: string;
  readonly field: string;
  readonly message: string;
  /** Of an event that breaks a schema: where, as a JSON pointer into the event. */
  readonly instancePath?: string;
}

interface RefusedField extends Pick<FieldError, 'field' | 'message'>, Omit<ErrorDetails, 'errors'> {
  readonly reason?: string;
}

export interface ErrorDetails {
  readonly errors?: readonly FieldError[];
  readonly entity_id?: string;
  /** The role that was refused. */
  readonly role_slug?: string;
  /** Beside code and message: what a client needs to go on, or to offer another way. */
  readonly continuation?: object;
  /** Seconds after which trying again makes sense; becomes `Retry-After`. */
  readonly retryAfter?: number;
}

/**
 * A refusal that the caller can act on. Everything else that is thrown is a bug: logged with its cause, answered with a request id and nothing more.
 * `code` is one of the table in `libs/contracts/src/errors.ts`.
 */
export class DomainError extends Error {
  constructor(
    readonly kind: ErrorKind,
    readonly code: string,
    message: string,
    readonly details: ErrorDetails = {},
  ) {
    super(message);
  }
}

/** Answers a missing thing; a foreign environment's id answers exactly the same. */
/** What was sent cannot be read, or asks for what can never be. */
export function badRequest(message: string): DomainError {
  return new DomainError('invalid', 'bad_request', message);
}

export function notFound(resource: string, id: string): DomainError {
  return new DomainError('not-found', 'entity_not_found', `${resource} not found: '${id}'.`, { entity_id: id });
}

/** Refuses one field of a request. `reason`: what is wrong with it, where that is more than the code of the refusal; what else is given are details. */
export function refusedField(kind: ErrorKind, code: string, { field, message, reason = code, ...details }: RefusedField): DomainError {
  return new DomainError(kind, code, message, { errors: [{ code: reason, field, message }], ...details });
}

/** Refuses one field of a request that says something else than it may. `reason`: what is wrong with it. */
export function invalidField(reason: string, field: string, message: string): DomainError {
  return refusedField('invalid', 'invalid_request_parameters', { field, message, reason });
}

/** An engine did not answer in time, or this process cannot be sure: nothing happened, try again. */
export function unavailable(message: string, retryAfter = 1): DomainError {
  return new DomainError('unavailable', 'service_unavailable', message, { retryAfter });
}

/** This needs what a later release has recorded in a shape that this one does not know: a process of that release answers, and does the work, instead. */
export class NeedsLaterRelease extends DomainError {
  /** Of the record. */
  readonly position: string;

  constructor({ type, shape, position }: { readonly type: string; readonly shape: number; readonly position: string }, known: number) {
    super('unavailable', 'service_unavailable', `This needs a later release: ${type} has shape ${shape}, and this one knows ${known}.`, { retryAfter: 5 });
    this.position = position;
  }
}

/** Whether an engine or another service did not answer: waiting may help, and nothing else does. What was damaged is no better later. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof DomainError && error.kind === 'unavailable' && error.code !== 'event_log_damaged';
}

/** Whether something was refused because what it is about is not there. */
export function isNotFound(error: unknown): boolean {
  return error instanceof DomainError && error.kind === 'not-found';
}
