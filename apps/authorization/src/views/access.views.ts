import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import type { View } from '#libs/event-sourcing/src/views/view';

import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import type { DirectoryUserEvent } from '#apps/directory-sync/src/domain/directory-user.decider';
import type { DirectoryLinkEvent } from '#apps/identity/src/domain/directory-link.decider';
import type { GroupEvent } from '#apps/identity/src/domain/group.decider';
import type { ManagedBy, MembershipEvent } from '#apps/identity/src/domain/membership.decider';
import type { UserEvent } from '#apps/identity/src/domain/user.decider';

// What the index needs of identity, for organizations that are not in memory. The index follows the log itself: nobody waits for these rows.

export interface MembershipRow {
  readonly id: string;
  readonly user_id: string;
  readonly status: string;
  /** Ids of its organization roles. */
  readonly roles: readonly string[];
  /** The person of a directory who decides about it. */
  readonly managed_by: ManagedBy | null;
}

export interface StoredMembership extends MembershipRow {
  readonly organization_id: string;
}

export const membershipsView: View<StoredMembership, MembershipEvent> = {
  name: 'authorization_memberships',
  version: 2,
  awaited: false,
  handles: ['organization_membership.created', 'organization_membership.updated', 'organization_membership.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [data.id],
  evolve: (row, { type, data }) => {
    switch (type) {
      case 'organization_membership.created':
        return {
          id: data.id,
          organization_id: data.organization_id,
          user_id: data.user_id,
          status: data.status,
          roles: idsIn(data.roles),
          managed_by: data.managed_by ?? null,
        };
      case 'organization_membership.updated': {
        const { status, roles, managed_by } = data;
        return (
          row && {
            ...row,
            ...(status !== undefined && { status }),
            ...(roles !== undefined && { roles: idsIn(roles) }),
            ...(managed_by !== undefined && { managed_by }),
          }
        );
      }
      case 'organization_membership.deleted':
        return null;
    }
  },
};

function idsIn(roles: readonly { readonly id: string }[]): readonly string[] {
  return roles.map(({ id }) => id);
}

export interface StoredGroup {
  readonly id: string;
  readonly organization_id: string;
}

export const groupsView: View<StoredGroup, FactOf<GroupEvent, 'group.created' | 'group.deleted'>> = {
  name: 'authorization_groups',
  version: 1,
  awaited: false,
  handles: ['group.created', 'group.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, { type, data }, id) => (type === 'group.deleted' ? null : { id, organization_id: data.organization_id }),
};

export interface StoredMember {
  readonly organization_id: string;
  readonly group_id: string;
  readonly organization_membership_id: string;
}

/** Pairs; those of a group or a membership that is gone mean nothing. */
export const groupMembersView: View<StoredMember, FactOf<GroupEvent, 'group.member_added' | 'group.member_removed'>> = {
  name: 'authorization_group_members',
  version: 1,
  awaited: false,
  handles: ['group.member_added', 'group.member_removed'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data: { group_id, organization_membership_id } }) => [`${group_id}.${organization_membership_id}`],
  evolve: (_row, { type, data: { group_id, organization_membership_id }, meta }) => {
    return type === 'group.member_removed' ? null : { organization_id: meta.organization!, group_id, organization_membership_id };
  },
};

/** The group and the member that the id of a row names, which is quicker than to parse the row. */
export function pairOf(id: string): [group: string, member: string] {
  const end = id.indexOf('.');
  return [id.slice(0, end), id.slice(end + 1)];
}

/** Users that were deleted: their memberships are dead from then on, whether that was recorded already or not. */
export const endedUsersView: View<{ readonly id: string }, FactOf<UserEvent, 'user.deleted'>> = {
  name: 'authorization_ended_users',
  version: 1,
  awaited: false,
  personal: null,
  handles: ['user.deleted'],
  indexes: [],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, _event, id) => ({ id }),
};

/** A person of a directory who may not work, or is there no more: whatever membership they manage permits nothing from then on, whether that was recorded already or not. */
export interface StoredAbsence {
  readonly id: string;
  readonly organization_id: string;
  readonly directory_id: string;
  readonly is_gone: boolean;
}

export const absentPeopleView: View<StoredAbsence, FactOf<DirectoryUserEvent, 'dsync.user.created' | 'dsync.user.updated' | 'dsync.user.deleted'>> = {
  name: 'authorization_absent_people',
  version: 1,
  awaited: false,
  personal: null,
  handles: ['dsync.user.created', 'dsync.user.updated', 'dsync.user.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, { type, data: { directory_id, active }, meta }, id) => {
    const is_gone = type === 'dsync.user.deleted';
    return active && !is_gone ? null : { id, organization_id: meta.organization!, directory_id, is_gone };
  },
};

/** Directories that were deleted, and whose memberships ended with them. */
export const endedDirectoriesView: View<{ readonly id: string; readonly organization_id: string }, FactOf<DirectoryEvent, 'dsync.deleted'>> = {
  name: 'authorization_ended_directories',
  version: 1,
  awaited: false,
  handles: ['dsync.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, { data, meta }, id) => (data.memberships === 'end' ? { id, organization_id: meta.organization! } : null),
};

/** A person who takes a membership over when whoever manages it is there no more. */
export interface StoredSuccessor {
  readonly id: string;
  readonly organization_id: string;
  readonly directory_id: string;
  readonly membership_id: string;
}

export const successorsView: View<StoredSuccessor, DirectoryLinkEvent> = {
  name: 'authorization_successors',
  version: 1,
  awaited: false,
  handles: ['directory_link.changed', 'directory_link.ended'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, { type, data }, id) => {
    if (type === 'directory_link.ended' || data.is_manager || data.membership_id === null) return null;
    const { organization_id, directory_id, membership_id } = data;
    return { id, organization_id, directory_id, membership_id };
  },
};
