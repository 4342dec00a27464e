import type { PublicEventName } from '../events.ts';
import type { ServiceName } from '../operation.ts';

/** What no operation emits, since it comes by SCIM. */
export const EVENTS_OF_SCIM: { readonly owner: ServiceName; readonly names: readonly PublicEventName[] } = {
  owner: 'directory-sync',
  names: [
    'dsync.activated',
    'dsync.user.created',
    'dsync.user.updated',
    'dsync.user.deleted',
    'dsync.group.created',
    'dsync.group.updated',
    'dsync.group.deleted',
    'dsync.group.user_added',
    'dsync.group.user_removed',
  ],
};
