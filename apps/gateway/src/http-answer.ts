import type { FastifyReply } from 'fastify';
import { ERRORS, type DeclaredError, type ErrorCode } from '#libs/contracts/src/errors';
import { DomainError } from '#libs/platform/src/domain-error';
import type { WrittenAnswer } from '#libs/platform/src/http-face';

/** An answer as it leaves. */
export interface HttpAnswer {
  readonly status: number;
  /** JSON; null for an empty body. */
  readonly text: string | null;
  /** The log position after the command, for readers that come next. */
  readonly position?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** In seconds; where the wait is longer, nothing is said. */
const LONGEST_RETRY = 60;
/** Waiting does not help: an operator has to mend something first. */
const LASTING: ReadonlySet<string> = new Set(['event_log_damaged', 'blob_store_not_configured']);
const JSON_TYPE = 'application/json; charset=utf-8';

export function send(reply: FastifyReply, answer: HttpAnswer): void {
  reply.code(answer.status);
  if (answer.position !== undefined) reply.header('Gatehouse-Position', answer.position);
  if (answer.headers !== undefined) reply.headers(answer.headers);
  // An empty body that claims to be JSON would fail to parse at the client.
  if (answer.text === null) reply.send();
  else reply.header('Content-Type', JSON_TYPE).send(answer.text);
}

/** What operations of OAuth say instead, in its words. */
const IN_OAUTH: Readonly<Partial<Record<string, ErrorCode>>> = {
  bad_request: 'invalid_request',
  invalid_request_parameters: 'invalid_request',
  rate_limit_exceeded: 'too_many_requests',
};

/** The answer to a refusal, or null when it is none: then it is a bug. `isOAuth`: of an operation that answers in the words of OAuth. */
export function refusal(error: unknown, isOAuth = false): HttpAnswer | null {
  if (!(error instanceof DomainError) || !Object.hasOwn(ERRORS, error.code)) return null;
  const code = (isOAuth && IN_OAUTH[error.code]) || (error.code as ErrorCode);
  const { status, isOAuth: hasOAuthShape, answeredAs = code }: DeclaredError = ERRORS[code];
  const { errors, entity_id, role_slug, retryAfter, continuation } = error.details;
  // OAuth has one sentence for all that is wrong.
  const sentence = hasOAuthShape && errors !== undefined ? errors.map(({ message }) => message).join(' ') : error.message;
  const body = hasOAuthShape
    ? { error: answeredAs, error_description: sentence, message: sentence, ...continuation }
    : {
        message: error.message,
        code: answeredAs,
        // SDKs read `errors` of every 422.
        errors: status === 422 ? (errors ?? []) : errors,
        entity_id,
        role_slug,
        ...continuation,
      };
  return { status, text: JSON.stringify(body), headers: refusalHeaders(error, status, retryAfter) };
}

/** The answer to a refusal, down to its text. */
export function writtenRefusal(error: DomainError): WrittenAnswer {
  const { status, text, headers } = refusal(error)!;
  return { status, headers: { 'Content-Type': JSON_TYPE, ...headers }, text: text! };
}

function refusalHeaders(error: DomainError, status: number, retryAfter = 1): Readonly<Record<string, string>> | undefined {
  switch (status) {
    case 401:
      return { 'WWW-Authenticate': 'Bearer' };
    case 405:
      return error instanceof MethodNotAllowed ? { Allow: error.allowed } : undefined;
    case 429:
      // Clients sleep whatever it says.
      return { ...(retryAfter <= LONGEST_RETRY && { 'Retry-After': String(retryAfter) }), ...(error instanceof LimitReached && error.headers) };
    case 503:
      return LASTING.has(error.code) ? undefined : { 'Retry-After': String(retryAfter) };
    default:
      return undefined;
  }
}

/** What a caller learns of a bug: whom to tell, and nothing more. */
export function internalError(requestId: string): HttpAnswer {
  return {
    status: ERRORS.internal_error.status,
    text: JSON.stringify({ message: `Something went wrong on our side. Please report the request id ${requestId}.`, code: 'internal_error' }),
  };
}

/** Too many requests in a window of fixed length. */
export class LimitReached extends DomainError {
  readonly headers: Readonly<Record<string, string>>;

  constructor(requests: number, retryAfter: number) {
    super('limited', 'rate_limit_exceeded', 'Too many requests.', { retryAfter });
    this.headers = { 'RateLimit-Limit': String(requests), 'RateLimit-Remaining': '0', 'RateLimit-Reset': String(retryAfter) };
  }
}

/** The path exists, and has other methods. */
export class MethodNotAllowed extends DomainError {
  readonly allowed: string;

  constructor(method: string, allowed: readonly string[]) {
    super('invalid', 'method_not_allowed', `${method} is not allowed here.`);
    this.allowed = [...new Set(allowed)].sort().join(', ');
  }
}

/** So many bytes in a second that reading them would keep others waiting. */
export function tooManyBytes(): DomainError {
  return new DomainError('limited', 'rate_limit_exceeded', 'Too many bytes in the bodies of requests.', { retryAfter: 1 });
}

export function noSuchPath(): DomainError {
  return new DomainError('not-found', 'route_not_found', 'No such path.');
}
