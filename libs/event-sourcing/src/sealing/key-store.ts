import { DomainError } from '#libs/platform/src/domain-error';
import type { Position } from '../log/event-store.ts';

/** What a data key is for; one key each. */
export type KeyPurpose =
  /** Names claim streams. Never changes, never destroyed. */
  | 'naming'
  /** Goes into every password hash. Without it no password is right any more: never changes, never destroyed. */
  | 'passwords'
  /** What one-time codes of an environment are derived from. Never destroyed: nothing is sealed with it, and where it is lost a new one is made, which voids the codes that are under way. */
  | `codes.${string}`
  | ErasablePurpose;

/** What may be erased, for ever, by destroying its key. */
export type ErasablePurpose =
  /** Recoverable secrets of an environment, such as signing secrets. */
  | `environment.${string}`
  /** From which the keys of an audit trail follow. */
  | `trail.${string}`
  /** From where what was done in one month of administration came. */
  | `origins.${string}`
  /** Stored answers to commands with an idempotency key. */
  | `answers.${string}`
  /** Personal fields of one person; the scope is the stream that holds them. */
  | `person.${string}`;

export interface DataKey {
  /** 32 of them. */
  readonly bytes: Buffer;
  /** Tells keys apart, and nothing else about them: stands in whatever was sealed with this one. */
  readonly id: string;
  /** How many have been before it: 0 for the one that was made, see `KeyStore.advance`. */
  readonly step: number;
}

/** A key that follows from one that is stored, as that does not from it. */
export interface LaterKey {
  readonly purpose: ErasablePurpose;
  readonly bytes: Buffer;
  readonly step: number;
}

/** A key, or the tombstone that it left. */
export type FoundKey = DataKey | 'erased';

/**
 * A key that something was sealed with is in the store neither as a key nor as a tombstone: it was lost, or the keys are older than the log. Nothing is known of what it
 * sealed, least of all that it is empty.
 */
export class KeyMissing extends DomainError {
  constructor(
    readonly purpose: string,
    detail = 'is missing',
  ) {
    super('unavailable', 'service_unavailable', `The data key ${purpose} ${detail}: put back the keys that belong to this log.`, { retryAfter: 30 });
  }
}

/** Nothing is sealed with it any more, for ever. */
export class KeyDestroyed extends Error {
  constructor(purpose: string) {
    super(`The data key ${purpose} was destroyed: nothing can be sealed with it any more.`);
  }
}

/** Of somebody who was erased nothing personal is recorded any more. */
export class HolderErased extends DomainError {
  constructor() {
    super('not-found', 'entity_not_found', 'The person whom this is about was erased.');
  }
}

/**
 * Data keys, outside the log, each wrapped by the first of the master keys; the other master keys still unwrap.
 * Losing this store loses every sealed value: it is backed up apart from the data, and after it.
 * One contract suite, `key-store.contract.ts`, holds every adapter to this.
 */
export abstract class KeyStore {
  /** The key for a purpose, made and durably stored at its first use. Of two first uses one key results. @throws KeyDestroyed */
  abstract obtain(purpose: KeyPurpose): Promise<DataKey>;

  /** Of these purposes, in one question, those that have a key or had one that was destroyed; the others are missing. */
  abstract findMany(purposes: readonly KeyPurpose[]): Promise<ReadonlyMap<KeyPurpose, FoundKey>>;

  /** Those of these that have a tombstone, as it is stored at the moment, whatever this process has in memory. */
  abstract erasedAmong(purposes: readonly ErasablePurpose[]): Promise<ReadonlySet<ErasablePurpose>>;

  /** @throws KeyMissing */
  async find(purpose: KeyPurpose): Promise<FoundKey> {
    const found = (await this.findMany([purpose])).get(purpose);
    if (found === undefined) throw new KeyMissing(purpose);
    return found;
  }

  /** Erases what was sealed with them, for ever and in every copy of the log. Tombstones stay, also where there was no key: under one none is ever made. */
  abstract destroy(...purposes: readonly ErasablePurpose[]): Promise<void>;

  /**
   * Puts each of these in the place of what is stored for its purpose, where that is a key of an earlier step; neither a tombstone nor a later key is changed, and where there is
   * none it stays missing. What only the earlier ones open is gone for ever, and from keys of an older backup the same ones follow again.
   */
  abstract advance(...keys: readonly LaterKey[]): Promise<void>;

  /**
   * Up to where the log's erasures were carried out on these keys. It lies with them, so that keys from an older backup come with the place from which on the
   * erasures have to be repeated.
   * @throws StartRefused where it is damaged
   */
  abstract erasedUpTo(): Promise<Position>;

  /** `record`: the id of the record there, where it is known. */
  abstract setErasedUpTo(position: Position, record?: string | null): Promise<void>;

  /** The id of the record that was seen where erasures were carried out up to; null where that is another position by now, or nobody noted the record. */
  erasedRecordAt(_position: Position): Promise<string | null> {
    return Promise.resolve(null);
  }
}
