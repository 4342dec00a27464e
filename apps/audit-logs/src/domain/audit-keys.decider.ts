import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';

// These types are the storage format: a stored name or shape is never edited.

/** All keys of before end signing when one begins; what they signed is verified by them for ever. */
export type AuditKeysEvent = Fact<'audit_key.created', NewAuditKey>;

/** A pair of Ed25519: the public part as its 32 bytes (base64), the private part (PKCS #8, base64) sealed. */
export interface NewAuditKey {
  readonly public_key: string;
  readonly private_key: string;
}

export interface StoredAuditKey extends NewAuditKey {
  /** ISO 8601. */
  readonly signs_from: string;
}

/** All keys of an environment, the newest last. */
export type AuditKeysState = { readonly keys: readonly StoredAuditKey[] } | null;

/** One stream for an environment: of two replicas that need its first key at once, one makes it. */
export const auditKeysDecider: Decider<AuditKeysState, AuditKeysEvent> = {
  category: 'audit_keys',
  foldVersion: 1,
  initial: null,
  sealed: { 'audit_key.created': null },
  evolve: (state, { data, at }) => ({ keys: [...(state?.keys ?? []), { ...data, signs_from: at }] }),
  toPublicEvent: () => null,
};

type Decide = Decision<AuditKeysState, AuditKeysEvent>;

/** Nothing where there is one. */
export function ensureAuditKey(made: NewAuditKey): Decide {
  return (state) => (state === null ? [{ type: 'audit_key.created', data: made }] : []);
}

export function rotateAuditKey(made: NewAuditKey): Decide {
  return (state) => (state?.keys.some(({ public_key }) => public_key === made.public_key) ? [] : [{ type: 'audit_key.created', data: made }]);
}
