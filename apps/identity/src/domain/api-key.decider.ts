import type { ApiKey } from '#libs/contracts/src/api-keys/api-key';
import type { NewPublicEvent, Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, invalidField, notFound } from '#libs/platform/src/domain-error';
import type { MembershipEvent } from './membership.decider.ts';
import type { OrganizationEvent } from './organization.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type ApiKeyEvent =
  | Fact<'api_key.created', ApiKeyCreated>
  | Fact<'api_key.updated', { readonly id: string; readonly expires_at: string | null; readonly previous_attributes: Pick<ApiKey, 'expires_at'> }>
  | Fact<'api_key.revoked', { readonly id: string }>;

/** `hash` is the SHA-256 of the value in hex: with 256 random bits in the value it need not be slow, and it opens nothing. */
export interface ApiKeyCreated extends Pick<ApiKey, 'id' | 'owner' | 'name' | 'obfuscated_value' | 'permissions' | 'expires_at'> {
  readonly hash: string;
  /** In which it works: the owner, or that of its user's membership. */
  readonly organization_id: string;
  /** Of a user's key: the membership that it hangs on. When the user joins again, that is another one. */
  readonly membership_id: string | null;
}

export type StoredApiKey = Omit<ApiKey, 'last_used_at'> & Pick<ApiKeyCreated, 'hash' | 'organization_id' | 'membership_id'>;

interface RevokedApiKey {
  readonly object: 'revoked_api_key';
  readonly organization_id: string;
}

export type ApiKeyState = StoredApiKey | RevokedApiKey | null;

function evolve(state: ApiKeyState, event: ApiKeyEvent & { readonly at: string }): ApiKeyState {
  if (event.type === 'api_key.created') return state ?? { object: 'api_key', ...event.data, created_at: event.at, updated_at: event.at };
  if (state?.object !== 'api_key') return state;
  switch (event.type) {
    case 'api_key.updated':
      return { ...state, expires_at: event.data.expires_at, updated_at: event.at };
    case 'api_key.revoked':
      return { object: 'revoked_api_key', organization_id: state.organization_id };
  }
}

function toPublicEvent(event: ApiKeyEvent, before: ApiKeyState, after: ApiKeyState): NewPublicEvent | null {
  const key = event.type === 'api_key.revoked' ? before : after;
  if (key?.object !== 'api_key') return null;
  const changed = event.type === 'api_key.updated' && { previous_attributes: event.data.previous_attributes };
  return { payload: { ...toPublicApiKey(key), last_used_at: null, ...changed }, names: [event.type] };
}

export const apiKeyDecider: Decider<ApiKeyState, ApiKeyEvent> = {
  category: 'api_key',
  foldVersion: 1,
  initial: null,
  evolve,
  organization: (state) => state?.organization_id,
  toPublicEvent,
  sealed: { 'api_key.created': null, 'api_key.updated': null, 'api_key.revoked': null },
  hangsOn: {
    reaction: 'revoke-api-keys-with-their-owners',
    parents: [
      { ends: 'organization.deleted' satisfies OrganizationEvent['type'], index: 'organization', category: 'organization', field: 'organization_id' },
      // The end of a user ends each membership.
      {
        ends: 'organization_membership.deleted' satisfies MembershipEvent['type'],
        index: 'membership',
        category: 'organization_membership',
        field: 'membership_id',
      },
    ],
    begins: ['api_key.created'],
    end: recordRevocation,
  },
};

type Decide = Decision<ApiKeyState, ApiKeyEvent>;

export function createApiKey(key: Omit<ApiKeyCreated, 'id'>): Decide {
  return (state, context) => {
    const id = context.id('api_key');
    if (state !== null) {
      // A repeated command meets what it made; once that was revoked, it stays revoked.
      requireApiKey(state, id);
      return [];
    }
    if (key.expires_at !== null && key.expires_at <= context.now) throw invalidField('not_in_future', 'expires_at', 'expires_at must lie in the future.');
    return [{ type: 'api_key.created', data: { id, ...key } }];
  };
}

/** Absent, or a time that has passed: it expires now. @throws DomainError `api_key_already_expired` */
export function expireApiKey(id: string, requested: string | null | undefined): Decide {
  return (state, { now }) => {
    const key = requireApiKey(state, id);
    if (hasExpired(key, now)) throw new DomainError('conflict', 'api_key_already_expired', `The API key '${id}' has expired.`);
    const expires_at = requested === undefined || (requested !== null && requested < now) ? now : requested;
    if (expires_at === key.expires_at) return [];
    return [{ type: 'api_key.updated', data: { id, expires_at, previous_attributes: { expires_at: key.expires_at } } }];
  };
}

/** Nothing where it is revoked already. */
export function recordRevocation(id: string): Decide {
  return (state) => (state?.object === 'api_key' ? [{ type: 'api_key.revoked', data: { id } }] : []);
}

/** @throws DomainError `entity_not_found` where it never was or is no more */
export function requireApiKey(state: ApiKeyState, id: string): StoredApiKey {
  if (state?.object !== 'api_key') throw notFound('API key', id);
  return state;
}

/** `now`: ISO 8601 with milliseconds, as the key has it. */
export function hasExpired({ expires_at }: Pick<ApiKey, 'expires_at'>, now: string): boolean {
  return expires_at !== null && expires_at <= now;
}

/** As the API shows it, but for when it was used. */
export function toPublicApiKey({ hash: _, organization_id: __, membership_id: ___, ...key }: StoredApiKey): Omit<ApiKey, 'last_used_at'> {
  return key;
}
