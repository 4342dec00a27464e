import type { View } from '#libs/event-sourcing/src/views/view';

/** A user who is an active member of an organization. */
export interface UserOfOrganization {
  readonly user_id: string;
  readonly organization_id: string;
}

/** Where the facts of a membership are: its stream is named by the two that it joins. */
const CATEGORY = 'organization_membership';

export function rowIdOf(userId: string, organizationId: string): string {
  return `${userId}.${organizationId}`;
}

export function userIdOf(rowId: string): string {
  return rowId.slice(0, rowId.indexOf('.'));
}

/** Which users an organization has, in the order of the users. Ids begin with the user's, so that a page goes on where a user stood. */
export const usersOfOrganizationsView: View<UserOfOrganization> = {
  name: 'users-of-organizations',
  version: 1,
  handles: ['organization_membership.created', 'organization_membership.updated', 'organization_membership.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ stream, meta }) => {
    const [organizationId, userId] = stream.slice(CATEGORY.length + meta.environment.length + 2).split('.') as [string, string];
    return [rowIdOf(userId, organizationId)];
  },
  evolve: (row, { type, data }, id) => {
    if (type === 'organization_membership.deleted') return null;
    const { status } = data as { readonly status?: string };
    if (status === undefined) return row;
    const [user_id, organization_id] = id.split('.') as [string, string];
    return status === 'active' ? { user_id, organization_id } : null;
  },
};
