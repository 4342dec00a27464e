import { Injectable } from '@nestjs/common';
import { badRequest, DomainError } from '#libs/platform/src/domain-error';
import { Log } from '#libs/platform/src/log';
import { internalError, refusal, type HttpAnswer } from './http-answer.ts';

/** The answer to whatever was thrown: a refusal in the caller's words, or, of a bug, a request id; the log has the rest. */
@Injectable()
export class ErrorAnswers {
  constructor(private readonly log: Log) {}

  /** `isOAuth`: of an operation that answers in the words of OAuth. */
  of(error: unknown, requestId: string, operation?: string, isOAuth?: boolean): HttpAnswer {
    const refused = refusal(error, isOAuth) ?? refusal(refusedByServer(error), isOAuth);
    if (refused !== null) return refused;
    this.log.error('A request failed unexpectedly.', { error, requestId, operation });
    return internalError(requestId);
  }
}

/** Refusals by the HTTP server itself, while it reads the request. */
function refusedByServer(error: unknown): DomainError | null {
  if (!(error instanceof Error)) return null;
  const { code = '', statusCode = 500 } = error as { code?: string; statusCode?: number };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new DomainError('invalid', 'payload_too_large', 'The body is longer than this operation takes.');
  const isOfServer = code.startsWith('FST_') || code === 'ECONNRESET';
  return isOfServer && statusCode >= 400 && statusCode < 500 ? badRequest('The request cannot be read.') : null;
}
