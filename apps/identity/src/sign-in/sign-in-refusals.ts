import type { AuthenticationChallenge } from '#libs/contracts/src/authentication-factors/authentication-factor';
import type { AuthenticationMethods } from '#libs/contracts/src/environment-settings/environment-settings';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import type { User } from '#libs/contracts/src/users/user';
import { DomainError } from '#libs/platform/src/domain-error';

/** What a client is told that has to do something else first. */
export interface Continuation {
  readonly pending_authentication_token: string;
  readonly email?: string;
  readonly email_verification_id?: string;
  readonly radar_challenge_id?: string;
  /** Some clients know a continuation by it. */
  readonly error?: string;
  readonly error_description?: string;
  readonly user?: User;
  readonly organizations?: readonly Pick<Organization, 'id' | 'name'>[];
  readonly authentication_factors?: readonly { readonly id: string; readonly type: string }[];
  readonly authentication_challenge?: AuthenticationChallenge;
}

type ContinuationCode = 'radar_challenge' | 'email_verification_required' | 'mfa_enrollment' | 'mfa_challenge' | 'organization_selection_required';

const MESSAGES: Readonly<Record<ContinuationCode, string>> = {
  radar_challenge: 'Something speaks against this sign-in: a code was sent to the email address.',
  email_verification_required: 'The email address has to be verified first.',
  mfa_enrollment: 'A second factor has to be enrolled first.',
  mfa_challenge: 'A second factor has to be proven.',
  organization_selection_required: 'The user has to choose an organization.',
};

export function moreIsNeeded(code: ContinuationCode, continuation: Continuation): DomainError {
  return new DomainError('forbidden', code, MESSAGES[code], { continuation });
}

/** The person has to come through the identity provider of the organization. */
export function ssoRequired(continuation: object): DomainError {
  return new DomainError('invalid', 'sso_required', 'The organization asks for a single sign-on.', { continuation });
}

/** The person has to come in a way that the organization allows (`allowed`), of those that the environment has. */
export function otherMethodsRequired(email: string | null, allowed: AuthenticationMethods, has: AuthenticationMethods, continuation: object): DomainError {
  const names = Object.keys(allowed) as (keyof AuthenticationMethods)[];
  const methods = Object.fromEntries(names.map((name) => [name, allowed[name] && has[name]]));
  return new DomainError('invalid', 'organization_authentication_methods_required', 'The organization lets its members sign in otherwise.', {
    continuation: { ...continuation, email: email ?? '', sso_connection_ids: [], auth_methods: methods },
  });
}

export function invalidRequest(message: string): DomainError {
  return new DomainError('invalid', 'invalid_request', message);
}

/** Whatever is wrong with a token, a code or a session: which of it, nobody is told. */
export function invalidGrant(message = 'The grant is unknown, used, expired or ended.'): DomainError {
  return new DomainError('invalid', 'invalid_grant', message);
}

export function invalidCredentials(): DomainError {
  return new DomainError('invalid', 'invalid_credentials', 'Invalid credentials.');
}

export function invalidPendingToken(): DomainError {
  return new DomainError('invalid', 'invalid_pending_authentication_token', 'The pending authentication token is unknown, used or expired.');
}
