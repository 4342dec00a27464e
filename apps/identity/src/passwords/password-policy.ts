import { dictionary } from '@zxcvbn-ts/language-common';
import { DomainError, type FieldError } from '#libs/platform/src/domain-error';

/** What a new password has to be. */
export interface PasswordRules {
  readonly policy: 'default' | 'nist';
  /** Whether nobody signs in with it alone. */
  readonly hasSecondFactor: boolean;
  /** The address of its user; null: none is known. */
  readonly email: string | null;
}

export const DEFAULT_RULES: PasswordRules = { policy: 'default', hasSecondFactor: false, email: null };

const LEAST = 10;
/** NIST SP 800-63B-4: fewer where a second factor is asked for as well. */
const LEAST_OF_NIST = 15;
const LEAST_BESIDE_FACTOR = 8;

/** From a list of some 50,000 that leaks had most often; what is too short anyway need not be kept. */
const COMMON: ReadonlySet<string> = new Set(
  dictionary['passwords-common'].filter((password) => password.length >= LEAST_BESIDE_FACTOR).map((password) => password.toLowerCase()),
);

/** @throws DomainError `password_strength_error` with an item for each thing that is wrong */
export function refuseWeakPassword(password: string, rules: PasswordRules = DEFAULT_RULES): void {
  const errors: FieldError[] = [];
  const wrong = (code: string, message: string): number => errors.push({ code, field: 'password', message });
  const least = leastLength(rules);
  const folded = password.toLowerCase();
  if ([...password].length < least) wrong('password_too_short', `A password has at least ${least} characters.`);
  else if (COMMON.has(folded)) wrong('password_too_common', 'This password is a common one.');
  if (rules.email !== null && holdsAddress(folded, rules.email.toLowerCase())) wrong('password_contains_email', 'A password does not hold the email address.');
  if (errors.length > 0) throw new DomainError('invalid', 'password_strength_error', 'The password is too weak.', { errors });
}

function leastLength({ policy, hasSecondFactor }: PasswordRules): number {
  if (policy === 'default') return LEAST;
  return hasSecondFactor ? LEAST_BESIDE_FACTOR : LEAST_OF_NIST;
}

/** The whole address, or nothing but what stands before its `@`. */
function holdsAddress(password: string, email: string): boolean {
  return password.includes(email) || password === email.slice(0, email.lastIndexOf('@'));
}
