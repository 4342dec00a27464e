import type { RegisteredOperation } from '#libs/contracts/src/operation';
import { DomainError, type ErrorDetails, type ErrorKind, NeedsLaterRelease } from '#libs/platform/src/domain-error';
import type { Actor, Connection, Origin, RequestContext, Upload } from '#libs/platform/src/request-context';

/** Both sides say it in their greeting; a replica that says another word is no replica of ours. */
export const GREETING = 'gatehouse operations 1';

/** A request's head as it was read. Times are milliseconds. */
export interface RequestHead {
  readonly operation: string;
  /** When it was sent, on the server's own clock as the client knows it: hosts' clocks differ, and a request may have waited in the buffer of a process that stood still. */
  readonly sent: number;
  /** How much longer the caller waits for the answer. */
  readonly left: number;
  /** How soon it has to begin: after that the client may have asked another replica. */
  readonly patience: number;
  /** How often it was asked for, unless the earlier replicas certainly did not begin. */
  readonly attempt: number;
  /** How old it was when it was sent: since then others may have been asked for it. */
  readonly age: number;
  readonly context: Omit<RequestContext, 'deadline' | 'receipt' | 'attempt' | 'sentAt'>;
  readonly transacts: number | undefined;
}

/** Written once for a call; `timed` adds what is different at each attempt. */
export function contextText(
  { environment, actor, requestId, commandId, readAfter, traceparent, idempotencyKey, connection, origin, upload, receipt }: RequestContext,
  { name }: RegisteredOperation,
): string {
  const { id, source, name: actorName } = actor;
  return JSON.stringify({
    operation: name,
    context: { environment, actor: { id, source, name: actorName }, requestId, commandId, readAfter, traceparent, idempotencyKey, connection, origin, upload },
    transacts: numberText(receipt.transacts),
  });
}

export function timed(text: string, { sent, left, patience, attempt, age }: Pick<RequestHead, 'sent' | 'left' | 'patience' | 'attempt' | 'age'>): string {
  return `{"sent":${sent},"left":${left},"patience":${patience},"attempt":${attempt},"age":${age},${text.slice(1)}`;
}

/** A release that handed nothing on with its age told neither attempt nor age. @throws Error when it is no head of a request */
export function readRequest(text: string): RequestHead {
  const { operation, sent, left, patience, attempt = 1, age = 0, context, transacts } = JSON.parse(text) as Partial<Record<keyof RequestHead, unknown>>;
  if (typeof operation !== 'string' || ![sent, left, patience, attempt, age].every(isNumber)) throw malformed();
  if (transacts !== undefined && !isNumber(transacts)) throw malformed();
  const times = { sent, left, patience, attempt, age } as Pick<RequestHead, 'sent' | 'left' | 'patience' | 'attempt' | 'age'>;
  return { operation, ...times, context: readContext(context), transacts: numberOf(transacts) };
}

/** Picks what a context has; whatever else came is gone. */
function readContext(value: unknown): RequestHead['context'] {
  const { environment, actor, requestId, commandId, readAfter, traceparent, idempotencyKey, connection, origin, upload } = (value ?? {}) as Partial<
    Record<keyof RequestContext, unknown>
  >;
  const { id, source, name } = (actor ?? {}) as Partial<Record<keyof Actor, unknown>>;
  if (
    ![environment, requestId, commandId, id, source].every(isText) ||
    ![readAfter, traceparent, idempotencyKey].every((each) => each === undefined || isText(each))
  )
    throw malformed();
  if (name !== null && !isText(name)) throw malformed();
  return {
    environment,
    actor: { id, source, name },
    requestId,
    commandId,
    readAfter,
    traceparent,
    idempotencyKey,
    connection: readConnection(connection),
    origin: readOrigin(origin),
    upload: readUpload(upload),
  } as RequestHead['context'];
}

function readConnection(value: unknown): Connection | undefined {
  if (value === undefined) return undefined;
  const { address, userAgent, bearerHash } = (value ?? {}) as Partial<Record<keyof Connection, unknown>>;
  if (!isText(address) || ![userAgent, bearerHash].every((each) => each === null || isText(each))) throw malformed();
  return { address, userAgent, bearerHash } as Connection;
}

function readOrigin(value: unknown): Origin | undefined {
  if (value === undefined) return undefined;
  const { address, userAgent, operator } = (value ?? {}) as Partial<Record<keyof Origin, unknown>>;
  if (!isText(address) || (userAgent !== null && !isText(userAgent)) || (operator !== undefined && !isText(operator))) throw malformed();
  return { address, userAgent, ...(operator !== undefined && { operator }) };
}

function readUpload(value: unknown): Upload | undefined {
  if (value === undefined) return undefined;
  const { blob, bytes, hash, contentType } = (value ?? {}) as Partial<Record<keyof Upload, unknown>>;
  if (![blob, hash, contentType].every(isText) || !isNumber(bytes)) throw malformed();
  return { blob, bytes, hash, contentType } as Upload;
}

/** What the way back tells beside the answer: empty, if nothing. */
export function receiptText({ position, transacts, warning }: RequestContext['receipt']): string {
  const isEmpty = position === undefined && transacts === undefined && warning === undefined;
  return isEmpty ? '' : JSON.stringify({ position, transacts: numberText(transacts), warning });
}

export function readReceipt(text: string, receipt: RequestContext['receipt']): void {
  if (text === '') return;
  const { position, transacts, warning } = JSON.parse(text) as RequestContext['receipt'];
  if (position !== undefined) receipt.position = position;
  if (transacts !== undefined) receipt.transacts = numberOf(transacts);
  if (warning !== undefined) receipt.warning = warning;
}

interface Refused {
  readonly refusal: DomainError;
  /** A replica of a later release may answer. */
  readonly needsLaterRelease: boolean;
}

export function refusalText(refusal: DomainError): string {
  const { kind, code, message, details } = refusal;
  return JSON.stringify({ kind, code, message, details, ...(refusal instanceof NeedsLaterRelease && { needsLaterRelease: true }) });
}

/** A release that knew no later one said nothing of it. */
export function readRefusal(text: string): Refused {
  const {
    kind,
    code,
    message,
    details,
    needsLaterRelease = false,
  } = JSON.parse(text) as {
    readonly kind: ErrorKind;
    readonly code: string;
    readonly message: string;
    readonly details: ErrorDetails;
    readonly needsLaterRelease?: boolean;
  };
  return { refusal: new DomainError(kind, code, message, details), needsLaterRelease };
}

/** JSON has no infinity, which a command uses that may ask no further aggregate. */
function numberText(value: number | undefined): number | undefined {
  return value === Infinity ? -1 : value;
}

function numberOf(value: number | undefined): number | undefined {
  return value === -1 ? Infinity : value;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function malformed(): Error {
  return new Error('a request is not as it should be');
}
