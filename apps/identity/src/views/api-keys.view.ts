import { primaryView } from '#libs/event-sourcing/src/views/view';
import { apiKeyDecider, type ApiKeyEvent, type ApiKeyState, type StoredApiKey } from '../domain/api-key.decider.ts';

/** Every key that was not revoked. Private: what it hangs on may have ended, and so may its time. */
export const apiKeysView = primaryView<ApiKeyState, ApiKeyEvent, StoredApiKey>({
  name: 'api_keys',
  noun: 'API key',
  version: 1,
  decider: apiKeyDecider,
  indexes: [
    { name: 'hash', keys: ({ hash }) => [hash] },
    { name: 'owner', keys: ({ owner: { id, organization_id } }) => [id, ...(organization_id === undefined ? [] : [ownerKey(id, organization_id)])] },
    { name: 'organization', keys: ({ organization_id }) => [organization_id] },
    { name: 'membership', keys: ({ membership_id }) => (membership_id === null ? [] : [membership_id]) },
  ],
  rowOf: (state) => (state?.object === 'api_key' ? state : null),
});

/** Finds the keys of an owner: of a user, those that work in one organization. */
export function ownerKey(ownerId: string, organizationId: string | undefined): string {
  return organizationId === undefined ? ownerId : `${ownerId} ${organizationId}`;
}
