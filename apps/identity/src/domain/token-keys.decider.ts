import type { TokenAlgorithm } from '#libs/contracts/src/environment-settings/environment-settings';
import type { PublicTokenKey } from '#libs/contracts/src/token-keys/key-set';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';

// These types are the storage format: a stored name or shape is never edited.

export type TokenKeysEvent =
  /** All keys of before end signing when this one begins. */
  | Fact<'token_key.created', NewTokenKey & { readonly signs_from: string }>
  /** Nothing that these keys signed is valid any more. */
  | Fact<'token_keys.dropped', { readonly kids: readonly string[] }>;

/** A pair of keys as it is made: the private part (PKCS #8, base64) is sealed. */
export interface NewTokenKey {
  readonly public_key: PublicTokenKey;
  readonly private_key: string;
}

export interface StoredTokenKey extends NewTokenKey {
  readonly signs_from: string;
  /** When it ends signing; null while nothing follows it. */
  readonly signs_until: string | null;
}

/** All keys of an environment that anything may still be verified with, the newest last. */
export type TokenKeysState = { readonly keys: readonly StoredTokenKey[] } | null;

/** Clients keep the key set for up to 12 hours, and do not look for a key that they do not know. */
const PUBLISHED_BEFORE = 24 * 3_600_000;
/** No token lives longer: the highest `access_token_seconds`. With what clocks may differ. */
const LONGEST_TOKEN = 86_400_000 + 60_000;

function evolve(state: TokenKeysState, event: TokenKeysEvent & { readonly at: string }): TokenKeysState {
  const keys = state?.keys ?? [];
  switch (event.type) {
    case 'token_key.created': {
      const { signs_from } = event.data;
      const ending = keys.map((key) => ({ ...key, signs_until: key.signs_until === null || key.signs_until > signs_from ? signs_from : key.signs_until }));
      return { keys: [...ending.filter((key) => isOfUse(key, event.at)), { ...event.data, signs_until: null }] };
    }
    case 'token_keys.dropped':
      return { keys: keys.filter(({ public_key: { kid } }) => !event.data.kids.includes(kid)) };
  }
}

/** One stream for an environment: of two replicas that need its first key at once, one makes it. */
export const tokenKeysDecider: Decider<TokenKeysState, TokenKeysEvent> = {
  category: 'token_keys',
  foldVersion: 1,
  initial: null,
  sealed: { 'token_key.created': null, 'token_keys.dropped': null },
  evolve,
  toPublicEvent: () => null,
};

type Decide = Decision<TokenKeysState, TokenKeysEvent>;

/** The first key, and the first of an algorithm that was chosen, sign at once. Nothing where there is one. */
export function ensureTokenKey(made: NewTokenKey): Decide {
  return (state, { now }) => (algorithmOf(state) === made.public_key.alg ? [] : [{ type: 'token_key.created', data: { ...made, signs_from: now } }]);
}

/** One that waits for its time already is as good as another, unless the next has to sign `isNow`. */
export function rotateTokenKey(made: NewTokenKey, { isNow, isDropped }: { readonly isNow: boolean; readonly isDropped: boolean }): Decide {
  return (state, { now }) => {
    const keys = state?.keys ?? [];
    const newest = keys.at(-1);
    const isMade = keys.some(({ public_key: { kid } }) => kid === made.public_key.kid);
    const isFirst = algorithmOf(state) !== made.public_key.alg;
    const isWaiting = newest !== undefined && newest.signs_from > now && !isFirst;
    const signs_from = isNow || isFirst ? now : new Date(Date.parse(now) + PUBLISHED_BEFORE).toISOString();
    const created: readonly TokenKeysEvent[] = isMade || (isWaiting && !isNow) ? [] : [{ type: 'token_key.created', data: { ...made, signs_from } }];
    const kids = keys.map(({ public_key: { kid } }) => kid).filter((kid) => kid !== made.public_key.kid);
    return isDropped && kids.length > 0 ? [...created, { type: 'token_keys.dropped', data: { kids } }] : created;
  };
}

/**
 * The key that signs at this time (ISO 8601); null where there is none. The first one signs before its time as well: it was made by a replica whose clock is ahead of this one.
 */
export function signingKey(state: TokenKeysState, now: string): StoredTokenKey | null {
  const keys = (state?.keys ?? []).filter(({ signs_from, signs_until }) => signs_until === null || signs_until > signs_from);
  return keys.findLast((key) => key.signs_from <= now && (key.signs_until === null || key.signs_until > now)) ?? keys[0] ?? null;
}

/** Those that a token may be verified with at this time, or soon. */
export function publishedKeys(state: TokenKeysState, now: string): readonly PublicTokenKey[] {
  return (state?.keys ?? []).filter((key) => isOfUse(key, now)).map(({ public_key }) => public_key);
}

/** That of the key that was made last. */
export function algorithmOf(state: TokenKeysState): TokenAlgorithm | null {
  return state?.keys.at(-1)?.public_key.alg ?? null;
}

/** Whether a key signs, will sign, or signed what may still be valid. */
function isOfUse({ signs_from, signs_until }: StoredTokenKey, now: string): boolean {
  return signs_until === null || (signs_until >= signs_from && Date.parse(signs_until) + LONGEST_TOKEN > Date.parse(now));
}
