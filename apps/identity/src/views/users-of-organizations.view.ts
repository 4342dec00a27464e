import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import type { View } from '#libs/event-sourcing/src/views/view';
import type { MembershipEvent } from '../domain/membership.decider.ts';

/** A user who is an active member of an organization. */
export interface UserOfOrganization {
  readonly user_id: string;
  readonly organization_id: string;
}

export function rowIdOf(userId: string, organizationId: string): string {
  return `${userId}.${organizationId}`;
}

export function userIdOf(rowId: string): string {
  return rowId.slice(0, rowId.indexOf('.'));
}

/** Which users an organization has, in the order of the users. Ids begin with the user's, so that a page goes on where a user stood. */
export const usersOfOrganizationsView: View<UserOfOrganization, MembershipEvent> = {
  name: 'users-of-organizations',
  version: 1,
  handles: ['organization_membership.created', 'organization_membership.updated', 'organization_membership.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ stream }) => {
    // The stream of a membership is named by the two that it joins.
    const [organizationId, userId] = streamKeyOf(stream).split('.') as [string, string];
    return [rowIdOf(userId, organizationId)];
  },
  evolve: (row, { type, data }, id) => {
    if (type === 'organization_membership.deleted') return null;
    if (data.status === undefined) return row;
    const [user_id, organization_id] = id.split('.') as [string, string];
    return data.status === 'active' ? { user_id, organization_id } : null;
  },
};
