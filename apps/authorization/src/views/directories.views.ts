import type { DirectoryGroupEvent, MembersChange } from '#apps/directory-sync/src/domain/directory-group.decider';
import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import type { DirectoryPolicy } from '#libs/contracts/src/directories/directory';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import type { View } from '#libs/event-sourcing/src/views/view';
import { pairOf } from './access.views.ts';

// What roles that groups of directories give depend on, for organizations that are not in memory. The index follows the log itself: nobody waits for these rows.

export interface KnownDirectory {
  readonly id: string;
  readonly organization_id: string;
  readonly follows: DirectoryPolicy['follows'];
}

/** Directories that were not deleted. */
export const directoriesView: View<KnownDirectory, FactOf<DirectoryEvent, 'directory.created' | 'directory.updated' | 'dsync.deleted'>> = {
  name: 'authorization_directories',
  version: 2,
  awaited: false,
  handles: ['directory.created', 'directory.updated', 'dsync.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [data.id],
  evolve: (row, { type, data }, id) => {
    switch (type) {
      case 'directory.created':
        return { id, organization_id: data.organization_id, follows: data.policy?.follows ?? 'off' };
      case 'directory.updated':
        return row && { ...row, follows: data.policy?.follows ?? row.follows };
      case 'dsync.deleted':
        return null;
    }
  },
};

export interface KnownDirectoryGroup {
  readonly id: string;
  readonly directory_id: string;
}

/** Groups that were not deleted; dead once their directory is. */
export const directoryGroupsView: View<
  KnownDirectoryGroup,
  FactOf<DirectoryGroupEvent, 'dsync.group.created' | 'dsync.group.deleted' | 'directory_group.ended'>
> = {
  name: 'authorization_directory_groups',
  version: 1,
  awaited: false,
  handles: ['dsync.group.created', 'dsync.group.deleted', 'directory_group.ended'],
  indexes: [],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, { type, data }, id) => (type === 'dsync.group.created' ? { id, directory_id: data.directory_id } : null),
};

export interface KnownDirectoryMember {
  readonly group_id: string;
}

/** Sets of what one record says, since each of its ids asks. */
const added = new WeakMap<MembersChange, ReadonlySet<string>>();

/** Pairs of a group and a person in it; those of a group that is gone mean nothing. */
export const directoryGroupMembersView: View<KnownDirectoryMember, FactOf<DirectoryGroupEvent, 'directory_group.members_changed'>> = {
  name: 'authorization_directory_group_members',
  version: 1,
  awaited: false,
  handles: ['directory_group.members_changed'],
  indexes: [{ name: 'group', keys: ({ group_id }) => [group_id] }],
  idsOf: ({ data }) => [...data.removed, ...data.added].map((person) => `${data.id}.${person}`),
  evolve: (_row, { data }, id) => {
    let known = added.get(data);
    if (known === undefined) added.set(data, (known = new Set(data.added)));
    return known.has(pairOf(id)[1]) ? { group_id: data.id } : null;
  },
};
