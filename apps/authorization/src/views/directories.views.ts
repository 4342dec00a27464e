import type { DirectoryGroupEvent } from '#apps/directory-sync/src/domain/directory-group.decider';
import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import type { View } from '#libs/event-sourcing/src/views/view';

// What roles that groups of directories give depend on, for organizations that are not in memory. The index follows the log itself: nobody waits for these rows.

export interface KnownDirectory {
  readonly id: string;
  readonly organization_id: string;
}

/** Directories that were not deleted. */
export const directoriesView: View<KnownDirectory, FactOf<DirectoryEvent, 'directory.created' | 'dsync.deleted'>> = {
  name: 'authorization_directories',
  version: 1,
  awaited: false,
  handles: ['directory.created', 'dsync.deleted'],
  indexes: [{ name: 'organization', keys: ({ organization_id }) => [organization_id] }],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, { type, data }, id) => (type === 'dsync.deleted' ? null : { id, organization_id: data.organization_id }),
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
