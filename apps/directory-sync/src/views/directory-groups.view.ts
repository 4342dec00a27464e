import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import { primaryView, type View } from '#libs/event-sourcing/src/views/view';
import {
  directoryGroupDecider,
  type DirectoryGroupEvent,
  type DirectoryGroupState,
  type MembersChange,
  type StoredDirectoryGroup,
} from '../domain/directory-group.decider.ts';
import { foldedValue, textOf } from '../domain/scim-values.decider.ts';
import { beginningsOf, datesOf, inDirectory } from './index-keys.ts';

/** Every group of a directory that was not deleted, without its members; it is dead once its directory is. */
export const directoryGroupsView = primaryView<DirectoryGroupState, DirectoryGroupEvent, StoredDirectoryGroup>({
  name: 'directory_groups',
  noun: 'Directory group',
  version: 1,
  decider: directoryGroupDecider,
  indexes: [
    { name: 'directory', keys: ({ directory_id }) => [directory_id] },
    { name: 'idp_id', keys: ({ directory_id, id, attributes }) => [inDirectory(directory_id, textOf(attributes['externalId']) ?? id)] },
    { name: 'display_name', keys: ({ directory_id, attributes }) => [inDirectory(directory_id, foldedValue(textOf(attributes['displayName']) ?? ''))] },
    {
      name: 'display_name_beginning',
      keys: ({ directory_id, attributes }) => beginningsOf(attributes['displayName']).map((beginning) => inDirectory(directory_id, beginning)),
    },
    { name: 'modified', keys: ({ directory_id, modified_at }) => datesOf(modified_at).map((date) => inDirectory(directory_id, date)) },
  ],
  rowOf: (state) => (state?.object === 'directory_group' ? state : null),
});

/** A person in a group. */
export interface DirectoryGroupMember {
  readonly group_id: string;
  readonly user_id: string;
}

/** Sets of what one record says, since each of its ids asks. */
const added = new WeakMap<MembersChange, ReadonlySet<string>>();

/** Who is in which group: answers both ways round. A pair whose group or person is gone means nothing, and goes soon. */
export const directoryGroupMembersView: View<DirectoryGroupMember, FactOf<DirectoryGroupEvent, 'directory_group.members_changed'>> = {
  name: 'directory_group_members',
  version: 1,
  handles: ['directory_group.members_changed'],
  indexes: [
    { name: 'group', keys: ({ group_id }) => [group_id] },
    { name: 'user', keys: ({ user_id }) => [user_id] },
  ],
  idsOf: ({ data }) => [...data.removed, ...data.added].map((user_id) => memberId({ group_id: data.id, user_id })),
  evolve: (_row, { data }, id) => {
    let known = added.get(data);
    if (known === undefined) added.set(data, (known = new Set(data.added)));
    const user_id = userOfMember(id);
    return known.has(user_id) ? { group_id: data.id, user_id } : null;
  },
};

/** Of one group, pairs sort by their people; of one person, by their groups. */
export function memberId({ group_id, user_id }: DirectoryGroupMember): string {
  return `${group_id}.${user_id}`;
}

export function userOfMember(id: string): string {
  return id.slice(id.indexOf('.') + 1);
}

export function groupOfMember(id: string): string {
  return id.slice(0, id.indexOf('.'));
}
