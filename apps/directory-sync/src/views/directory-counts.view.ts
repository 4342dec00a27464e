import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import type { View } from '#libs/event-sourcing/src/views/view';
import type { DirectoryGroupEvent } from '../domain/directory-group.decider.ts';
import type { DirectoryUserEvent } from '../domain/directory-user.decider.ts';

/** How many people and groups a directory has. */
export interface DirectoryCounts {
  readonly active: number;
  readonly inactive: number;
  readonly groups: number;
}

export const NOTHING_COUNTED: DirectoryCounts = { active: 0, inactive: 0, groups: 0 };

type Counted =
  | FactOf<DirectoryUserEvent, 'dsync.user.created' | 'dsync.user.updated' | 'dsync.user.deleted'>
  | FactOf<DirectoryGroupEvent, 'dsync.group.created' | 'dsync.group.deleted'>;

/** One row per directory, under its id. That of a directory that is gone stays, and means nothing. */
export const directoryCountsView: View<DirectoryCounts, Counted> = {
  name: 'directory_counts',
  version: 1,
  personal: null,
  handles: ['dsync.user.created', 'dsync.user.updated', 'dsync.user.deleted', 'dsync.group.created', 'dsync.group.deleted'],
  indexes: [],
  idsOf: ({ data }) => [data.directory_id],
  evolve: (row, { type, data }) => {
    const counts = row ?? NOTHING_COUNTED;
    switch (type) {
      case 'dsync.user.created':
        return people(counts, data.active, 1);
      case 'dsync.user.updated':
        return data.active === data.was_active ? counts : people(people(counts, data.was_active, -1), data.active, 1);
      case 'dsync.user.deleted':
        return people(counts, data.active, -1);
      case 'dsync.group.created':
        return { ...counts, groups: counts.groups + 1 };
      case 'dsync.group.deleted':
        return { ...counts, groups: counts.groups - 1 };
    }
  },
};

function people(counts: DirectoryCounts, active: boolean, more: number): DirectoryCounts {
  return active ? { ...counts, active: counts.active + more } : { ...counts, inactive: counts.inactive + more };
}
