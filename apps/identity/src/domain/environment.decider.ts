import type { Environment, EnvironmentKey } from '#libs/contracts/src/environments/environment';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound, refusedField } from '#libs/platform/src/domain-error';

// These types are the storage format: a stored name or shape is never edited.

export type EnvironmentEvent =
  | Fact<'environment.created', Pick<Environment, 'id' | 'name' | 'client_id'>>
  | Fact<'environment.updated', Pick<Environment, 'client_id'>>
  | Fact<'environment_key.created', NewKey>
  /** The key goes on working until `expires_at`; `hash` tells whoever remembers the key which one is meant. */
  | Fact<'environment_key.rotated', { readonly id: string; readonly hash: string; readonly expires_at: string }>
  | Fact<'environment_key.revoked', { readonly id: string; readonly hash: string }>;

/** `hash` is the SHA-256 of the value in hex: with 256 random bits in the value it need not be slow, and it opens nothing. */
type NewKey = Pick<EnvironmentKey, 'id' | 'name' | 'obfuscated_value'> & { readonly hash: string };

export type StoredKey = EnvironmentKey & { readonly hash: string };
/** `former_hashes`: of keys that ended so long ago that nothing else is kept of them. Absent: none. */
export type EnvironmentState = (Environment & { readonly keys: readonly StoredKey[]; readonly former_hashes?: readonly string[] }) | null;

/** How many keys may work at a time, where each may have a successor already, and how many that no longer do are kept beside them. */
const MAX_KEYS = 500;
const MAX_KEYS_AND_SUCCESSORS = 2 * MAX_KEYS;
const MAX_ENDED_KEYS = 500;
/** A value that was revoked never works again, as long as it is among these. */
const MAX_FORMER_HASHES = 15_000;

function evolve(state: EnvironmentState, event: EnvironmentEvent & { readonly at: string }): EnvironmentState {
  if (event.type === 'environment.created') return state ?? { object: 'environment', ...event.data, created_at: event.at, updated_at: event.at, keys: [] };
  if (state === null) return null;
  switch (event.type) {
    case 'environment.updated':
      return { ...state, ...event.data, updated_at: event.at };
    case 'environment_key.created':
      return withoutOldest(
        {
          ...state,
          keys: [
            ...state.keys,
            { object: 'environment_key', ...event.data, environment_id: state.id, created_at: event.at, expires_at: null, revoked_at: null },
          ],
        },
        event.at,
      );
    case 'environment_key.rotated':
      return withKey(state, event.data.id, { expires_at: event.data.expires_at });
    case 'environment_key.revoked':
      return withKey(state, event.data.id, { revoked_at: event.at });
  }
}

/** Those that ended, and were made first, make room. */
function withoutOldest(state: NonNullable<EnvironmentState>, now: string): EnvironmentState {
  const ended = state.keys.filter((key) => !isUsable(key, now));
  if (ended.length <= MAX_ENDED_KEYS) return state;
  const left = new Set(ended.slice(0, ended.length - MAX_ENDED_KEYS));
  const former_hashes = [...(state.former_hashes ?? []), ...[...left].map(({ hash }) => hash)].slice(-MAX_FORMER_HASHES);
  return { ...state, keys: state.keys.filter((key) => !left.has(key)), former_hashes };
}

/** `now`: ISO 8601. */
export function isUsable({ revoked_at, expires_at }: StoredKey, now: string): boolean {
  return revoked_at === null && (expires_at === null || expires_at > now);
}

function withKey(state: NonNullable<EnvironmentState>, id: string, change: Partial<StoredKey>): EnvironmentState {
  return { ...state, keys: state.keys.map((key) => (key.id === id ? { ...key, ...change } : key)) };
}

export const environmentDecider: Decider<EnvironmentState, EnvironmentEvent> = {
  category: 'environment',
  foldVersion: 2,
  initial: null,
  sealed: {
    'environment.created': null,
    'environment.updated': null,
    'environment_key.created': null,
    'environment_key.rotated': null,
    'environment_key.revoked': null,
  },
  evolve,
  claims: (state) => (state === null ? [] : [{ kind: 'environment.name', value: state.name, refusal: () => nameTaken(state.name) }]),
  toPublicEvent: () => null,
};

type Decide = Decision<EnvironmentState, EnvironmentEvent>;

/** A key as it is made: its value is known to the caller only. */
interface GivenKey {
  readonly name: string;
  readonly hash: string;
  readonly obfuscated_value: string;
}

export function createEnvironment(given: Pick<Environment, 'name' | 'client_id'>): Decide {
  return (state, context) => (state === null ? [{ type: 'environment.created', data: { id: context.id('environment'), ...given } }] : []);
}

export function setClientId(id: string, client_id: string): Decide {
  return (state) => (requireEnvironment(state, id).client_id === client_id ? [] : [{ type: 'environment.updated', data: { client_id } }]);
}

export function createKey(environmentId: string, given: GivenKey): Decide {
  return (state, context) => {
    const id = context.id('environment_key');
    const { keys } = requireEnvironment(state, environmentId);
    if (keys.some((key) => key.id === id)) return [];
    refuseTooMany(keys, context.now, MAX_KEYS);
    return [{ type: 'environment_key.created', data: { id, ...given } }];
  };
}

/** For a value that comes from outside at every start. Once revoked, it stays revoked. */
export function ensureKey(environmentId: string, given: GivenKey): Decide {
  return (state, context) => {
    const { keys, former_hashes = [] } = requireEnvironment(state, environmentId);
    if (keys.some((key) => key.hash === given.hash) || former_hashes.includes(given.hash)) return [];
    return createKey(environmentId, given)(state, context);
  };
}

/** Asked twice, the second time finds the successor that it made. */
export function rotateKey(id: string, successor: Omit<GivenKey, 'name'>, overlapSeconds: number): Decide {
  return (state, context) => {
    const key = requireKey(state, id);
    const successorId = context.id('environment_key');
    if (state?.keys.some((other) => other.id === successorId)) return [];
    if (key.revoked_at !== null) throw new DomainError('conflict', 'environment_key_revoked', `The key '${id}' was revoked.`);
    refuseTooMany(state!.keys, context.now, MAX_KEYS_AND_SUCCESSORS);
    const end = new Date(Date.parse(context.now) + overlapSeconds * 1000).toISOString();
    // Rotating again never prolongs what is already running out.
    const expires_at = key.expires_at !== null && key.expires_at < end ? key.expires_at : end;
    return [
      { type: 'environment_key.created', data: { id: successorId, name: key.name, ...successor } },
      { type: 'environment_key.rotated', data: { id, hash: key.hash, expires_at } },
    ];
  };
}

export function revokeKey(id: string): Decide {
  return (state) => {
    const { hash, revoked_at } = requireKey(state, id);
    return revoked_at === null ? [{ type: 'environment_key.revoked', data: { id, hash } }] : [];
  };
}

function requireEnvironment(state: EnvironmentState, id: string): NonNullable<EnvironmentState> {
  if (state === null) throw notFound('Environment', id);
  return state;
}

function requireKey(state: EnvironmentState, id: string): StoredKey {
  const key = state?.keys.find((candidate) => candidate.id === id);
  if (key === undefined) throw notFound('Environment key', id);
  return key;
}

/** @throws DomainError `environment_key_limit_reached` */
function refuseTooMany(keys: readonly StoredKey[], now: string, max: number): void {
  if (keys.filter((key) => isUsable(key, now)).length < max) return;
  throw new DomainError('invalid', 'environment_key_limit_reached', `The environment has ${max} keys that work, and can have no more: revoke some.`);
}

function nameTaken(name: string): DomainError {
  const message = `Another environment is named '${name}'.`;
  return refusedField('conflict', 'environment_name_already_used', { field: 'name', message });
}
