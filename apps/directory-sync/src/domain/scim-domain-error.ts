import { DomainError, type ErrorKind } from '#libs/platform/src/domain-error';

/** What a refusal is about, in the words of RFC 7644, section 3.12. */
export type ScimType = 'invalidFilter' | 'tooMany' | 'uniqueness' | 'mutability' | 'invalidSyntax' | 'invalidPath' | 'noTarget' | 'invalidValue';

type ScimStatus = 400 | 401 | 403 | 404 | 405 | 409 | 412 | 413 | 415 | 429 | 501;

const KINDS: Readonly<Record<ScimStatus, ErrorKind>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not-found',
  405: 'invalid',
  409: 'conflict',
  412: 'conflict',
  413: 'invalid',
  415: 'invalid',
  429: 'limited',
  501: 'invalid',
};

/** A refusal that a provider is shown as SCIM has it. Its sentence quotes nothing that was sent. */
export class ScimError extends DomainError {
  constructor(
    readonly status: ScimStatus,
    readonly scimType: ScimType | null,
    detail: string,
    readonly retryAfter?: number,
  ) {
    super(KINDS[status], 'bad_request', detail);
  }
}

export function invalidValue(detail: string): ScimError {
  return new ScimError(400, 'invalidValue', detail);
}

export function noSuchResource(kind: 'User' | 'Group' | 'directory'): ScimError {
  return new ScimError(404, null, `There is no such ${kind}.`);
}
