import type { KeyObject } from 'node:crypto';

/** What a data key is for; one key each. */
export type KeyPurpose =
  /** Names claim streams. Never changes, never destroyed. */
  | 'naming'
  /** Goes into every password hash. Without it no password is right any more: never changes, never destroyed. */
  | 'passwords'
  /** Recoverable secrets of an environment, such as signing secrets. */
  | `environment.${string}`
  /** Stored answers to commands with an idempotency key. */
  | `answers.${string}`
  /** Personal fields of one person; the scope is the stream that holds them. */
  | `person.${string}`;

/**
 * Data keys, outside the log, each wrapped by the first of the master keys; the other master keys still unwrap.
 * Losing this store loses every sealed value: it is backed up apart from the data.
 */
export abstract class KeyStore {
  /** The key for a purpose, made and durably stored at its first use. Of two first uses one key results. */
  abstract obtain(purpose: KeyPurpose): Promise<KeyObject>;

  /** The key if it exists; null when it never did, or was destroyed. */
  abstract find(purpose: KeyPurpose): Promise<KeyObject | null>;

  /** Erases what was sealed with it, for ever and in every copy of the log. */
  abstract destroy(purpose: KeyPurpose): Promise<void>;
}
