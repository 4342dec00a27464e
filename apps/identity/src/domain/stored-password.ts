/** A password as the log keeps it, sealed: which function made the hash, and the hash in the form of that function. */
export interface StoredPassword {
  readonly type: 'bcrypt-hmac' | 'bcrypt' | 'firebase-scrypt' | 'ssha' | 'ssha256' | 'scrypt' | 'pbkdf2' | 'argon2';
  readonly hash: string;
  /** For `ssha256`: where the salt stood. */
  readonly salt_position?: 'prefix' | 'suffix';
}
