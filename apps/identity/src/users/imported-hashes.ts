import type { PasswordHashType, SaltPosition } from '#libs/contracts/src/users/operations';
import { DomainError } from '#libs/platform/src/domain-error';
import type { StoredPassword } from './stored-password.ts';

type ImportedPassword = StoredPassword & { readonly type: PasswordHashType };

/** @throws DomainError `invalid_password_hash` */
export function storableHash(type: PasswordHashType, _hash: string, _salt_position?: SaltPosition): ImportedPassword {
  throw new DomainError('invalid', 'invalid_password_hash', `The password hash is not one of the type ${type}.`);
}

export async function matchesImported(_stored: ImportedPassword, _password: string): Promise<boolean> {
  return false;
}
