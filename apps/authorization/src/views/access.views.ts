import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { View } from '#libs/event-sourcing/src/views/view';

// What the index needs of identity, for organizations that are not in memory. The index follows the log itself: nobody waits for these rows.

export interface MembershipRow {
  readonly id: string;
  readonly user_id: string;
  readonly status: string;
  /** Ids of its organization roles. */
  readonly roles: readonly string[];
}

export interface StoredMembership extends MembershipRow {
  readonly organization_id: string;
}

interface MembershipFact {
  readonly id: string;
  readonly organization_id?: string;
  readonly user_id?: string;
  readonly status?: string;
  readonly roles?: readonly { readonly id: string }[];
}

export const membershipsView: View<StoredMembership> = {
  name: 'authorization_memberships',
  version: 1,
  awaited: false,
  handles: ['organization_membership.created', 'organization_membership.updated', 'organization_membership.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [(data as MembershipFact).id],
  evolve: (row, { type, data }) => {
    const { roles, status, ...fact } = data as MembershipFact;
    const changed = { ...(status !== undefined && { status }), ...(roles !== undefined && { roles: roles.map(({ id }) => id) }) };
    if (type === 'organization_membership.deleted') return null;
    if (type === 'organization_membership.updated') return row && { ...row, ...changed };
    return { id: fact.id, organization_id: fact.organization_id!, user_id: fact.user_id!, ...changed } as StoredMembership;
  },
};

export interface StoredGroup {
  readonly id: string;
  readonly organization_id: string;
}

export const groupsView: View<StoredGroup> = {
  name: 'authorization_groups',
  version: 1,
  awaited: false,
  handles: ['group.created', 'group.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [(data as { readonly id: string }).id],
  evolve: (_row, { type, data, meta }, id) =>
    type === 'group.deleted' ? null : { id, organization_id: (data as Partial<StoredGroup>).organization_id ?? meta.organization! },
};

export interface StoredMember {
  readonly organization_id: string;
  readonly group_id: string;
  readonly organization_membership_id: string;
}

/** Pairs; those of a group or a membership that is gone mean nothing. */
export const groupMembersView: View<StoredMember> = {
  name: 'authorization_group_members',
  version: 1,
  awaited: false,
  handles: ['group.member_added', 'group.member_removed'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [pairIn(data)],
  evolve: (_row, { type, data, meta }) => {
    const { group_id, organization_membership_id } = data as Omit<StoredMember, 'organization_id'>;
    return type === 'group.member_removed' ? null : { organization_id: meta.organization!, group_id, organization_membership_id };
  },
};

function pairIn(data: RecordedEvent['data']): string {
  const { group_id, organization_membership_id } = data as Omit<StoredMember, 'organization_id'>;
  return `${group_id}.${organization_membership_id}`;
}

/** The group and the membership that the id of a row names, which is quicker than to parse the row. */
export function pairOf(id: string): [group: string, membership: string] {
  const end = id.indexOf('.');
  return [id.slice(0, end), id.slice(end + 1)];
}

/** Users that were deleted: their memberships are dead from then on, whether that was recorded already or not. */
export const endedUsersView: View<{ readonly id: string }> = {
  name: 'authorization_ended_users',
  version: 1,
  awaited: false,
  personal: null,
  handles: ['user.deleted'],
  indexes: [],
  idsOf: ({ data }) => [(data as { readonly id: string }).id],
  evolve: (_row, _event, id) => ({ id }),
};
