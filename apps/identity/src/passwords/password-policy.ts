import { dictionary } from '@zxcvbn-ts/language-common';
import { DomainError, type FieldError } from '#libs/platform/src/domain-error';

const MIN_LENGTH = 10;

/** From a list of some 50,000 that leaks had most often; what is too short anyway need not be kept. */
const COMMON: ReadonlySet<string> = new Set(
  dictionary['passwords-common'].filter((password) => password.length >= MIN_LENGTH).map((password) => password.toLowerCase()),
);

/** @throws DomainError `password_strength_error` with an item for each thing that is wrong */
export function refuseWeakPassword(password: string): void {
  const errors: FieldError[] = [];
  if ([...password].length < MIN_LENGTH)
    errors.push({ code: 'password_too_short', field: 'password', message: `A password has at least ${MIN_LENGTH} characters.` });
  else if (COMMON.has(password.toLowerCase())) errors.push({ code: 'password_too_common', field: 'password', message: 'This password is a common one.' });
  if (errors.length > 0) throw new DomainError('invalid', 'password_strength_error', 'The password is too weak.', { errors });
}
