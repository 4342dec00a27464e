import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import type { View } from '#libs/event-sourcing/src/views/view';
import type { DirectoryGroupEvent } from '../domain/directory-group.decider.ts';
import type { DirectoryEvent } from '../domain/directory.decider.ts';
import type { DirectoryUserEvent } from '../domain/directory-user.decider.ts';

/** How many people and groups a directory has. */
export interface DirectoryCounts {
  readonly active: number;
  readonly inactive: number;
  readonly groups: number;
}

export const NOTHING_COUNTED: DirectoryCounts = { active: 0, inactive: 0, groups: 0 };

type Counted =
  | FactOf<DirectoryEvent, 'directory.created' | 'dsync.deleted'>
  | FactOf<DirectoryUserEvent, 'dsync.user.created' | 'dsync.user.updated' | 'dsync.user.deleted'>
  | FactOf<DirectoryGroupEvent, 'dsync.group.created' | 'dsync.group.deleted'>;

/** One row per directory, under its id, for as long as it is there: whoever came while it was deleted is not counted. */
export const directoryCountsView: View<DirectoryCounts, Counted> = {
  name: 'directory_counts',
  version: 2,
  personal: null,
  handles: [
    'directory.created',
    'dsync.deleted',
    'dsync.user.created',
    'dsync.user.updated',
    'dsync.user.deleted',
    'dsync.group.created',
    'dsync.group.deleted',
  ],
  indexes: [],
  idsOf: ({ data }) => ['directory_id' in data ? data.directory_id : data.id],
  evolve: (counts, { type, data }) => {
    if (type === 'directory.created') return NOTHING_COUNTED;
    if (type === 'dsync.deleted' || counts === null) return null;
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
