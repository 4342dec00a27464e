import { createHmac, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CreateUser } from '#libs/contracts/src/users/operations';
import { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import type { StoredPassword } from '../domain/stored-password.ts';
import { checkOf, storableHash } from './imported-hashes.ts';
import { DEFAULT_RULES, refuseWeakPassword, type PasswordRules } from './password-policy.ts';
import { PasswordWork } from './password-work.ts';

/** What a request says of a password. */
export type GivenPassword = Pick<CreateUser, 'password' | 'password_hash' | 'password_hash_type' | 'password_salt_position'>;

/** Makes of passwords what may be stored, and tells whether one is right. */
@Injectable()
export class Passwords {
  constructor(
    private readonly keys: KeyStore,
    private readonly work: PasswordWork,
    private readonly settings: IdentitySettings,
  ) {}

  /**
   * What is stored of the password that a request gives; null where it gives none.
   * @throws DomainError as the operations of users say, or `service_unavailable`
   */
  async stored(given: GivenPassword, deadline: number, rules: PasswordRules = DEFAULT_RULES): Promise<StoredPassword | null> {
    refuseContradictions(given);
    const { password, password_hash, password_hash_type, password_salt_position } = given;
    if (password_hash !== undefined) return storableHash(password_hash_type!, password_hash, password_salt_position);
    if (password === undefined) return null;
    refuseWeakPassword(password, rules);
    return this.hashed(password, deadline);
  }

  /** As ours are stored, whatever it is. @throws DomainError `service_unavailable` */
  async hashed(password: string, deadline: number): Promise<StoredPassword> {
    const prepared = await this.prepared(password);
    return { type: 'bcrypt-hmac', hash: await this.work.bcrypt(deadline, prepared, this.settings.PASSWORD_HASH_COST) };
  }

  /** What takes as long to compare with as any password of ours, and is nobody's. */
  ofNobody(): StoredPassword {
    return { type: 'bcrypt-hmac', hash: `$2b$${String(this.settings.PASSWORD_HASH_COST).padStart(2, '0')}$${'.'.repeat(53)}` };
  }

  /** Takes as long for a wrong password as for the right one, and for what is nobody's. @throws DomainError `service_unavailable` */
  async matches(stored: StoredPassword, password: string, deadline: number): Promise<boolean> {
    const nobody = this.ofNobody();
    const isAsNew = stored.type === nobody.type && isSameCost(stored.hash, nobody.hash);
    // Most hashes from elsewhere take less than a new one, and so do those of a lower cost: alone they would tell who has an account.
    const [isRight] = await Promise.all([this.isOf(stored, password, deadline), isAsNew || this.isOf(nobody, password, deadline)]);
    return isRight;
  }

  private async isOf(stored: StoredPassword, password: string, deadline: number): Promise<boolean> {
    const { type, hash } = stored;
    if (type !== 'bcrypt-hmac') {
      const check = checkOf({ ...stored, type });
      return this.work.run(deadline, () => check.matches(password), check);
    }
    const prepared = await this.prepared(password);
    const found = await this.work.bcrypt(deadline, prepared, hash.slice(0, 29));
    return timingSafeEqual(Buffer.from(found), Buffer.from(hash));
  }

  /** bcrypt reads 72 bytes and no more: what it is given stands for all of them, and a hash that got out cannot be tried without the key. */
  private async prepared(password: string): Promise<string> {
    return createHmac('sha256', (await this.keys.obtain('passwords')).bytes)
      .update(password.normalize('NFC'))
      .digest('base64');
  }
}

/** Of bcrypt: `$2b$12$…`. */
function isSameCost(one: string, other: string): boolean {
  return one.slice(0, 7) === other.slice(0, 7);
}

function refuseContradictions(given: GivenPassword): void {
  const { password, password_hash, password_hash_type, password_salt_position } = given;
  if (password !== undefined && password_hash !== undefined)
    throw new DomainError('invalid', 'password_and_password_hash_provided', 'Give `password` or `password_hash`, not both.');
  if (password !== undefined && password_hash_type !== undefined)
    throw new DomainError('invalid', 'password_and_password_hash_type_provided', '`password_hash_type` goes with `password_hash`, not with `password`.');
  if (password_salt_position !== undefined && password_hash === undefined)
    throw new DomainError('invalid', 'password_salt_position_requires_password_hash', '`password_salt_position` goes with `password_hash`.');
  if (password_hash !== undefined && password_hash_type === undefined) throw missing('password_hash_type', 'password_hash');
  if (password_hash === undefined && password_hash_type !== undefined) throw missing('password_hash', 'password_hash_type');
  if (password_salt_position !== undefined && password_hash_type !== 'ssha256')
    throw refusedField('not_allowed', 'password_salt_position', '`password_salt_position` is for `ssha256` alone.');
}

function missing(field: string, beside: string): DomainError {
  return refusedField('required', field, `\`${beside}\` needs \`${field}\`.`);
}

function refusedField(code: string, field: string, message: string): DomainError {
  return new DomainError('invalid', 'invalid_request_parameters', 'Validation failed.', { errors: [{ code, field, message }] });
}
