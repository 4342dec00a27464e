import type { AuthorizationModelEvent } from '#apps/authorization/src/domain/authorization-model.decider';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import type { View } from '#libs/event-sourcing/src/views/view';

export interface KnownPermission {
  readonly slug: string;
}

/** What identity knows of the permissions that the authorization service owns, but for those that every environment has from the beginning, for good. */
export const knownPermissionsView: View<KnownPermission, FactOf<AuthorizationModelEvent, 'permission.created' | 'permission.deleted'>> = {
  name: 'known_permissions',
  version: 1,
  handles: ['permission.created', 'permission.deleted'],
  indexes: [{ name: 'slug', keys: ({ slug }) => [slug] }],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, { type, data }) => (type === 'permission.created' ? { slug: data.slug } : null),
};
