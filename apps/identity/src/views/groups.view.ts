import { Group, type GroupMember } from '#libs/contracts/src/groups/group';
import { contentOf, type StoredRow } from '#libs/read-models/src/read-models';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import { primaryView, type View } from '#libs/event-sourcing/src/views/view';
import { groupDecider, type GroupEvent, type GroupState, type StoredGroup } from '../domain/group.decider.ts';
import { searchKeys } from '#libs/read-models/src/name-search';

/** Every live group. Rows hold the members, whom no answer shows: they are answered through `shownGroup`. */
export const groupsView = primaryView<GroupState, GroupEvent, StoredGroup>({
  name: 'groups',
  noun: 'Group',
  version: 2,
  decider: groupDecider,
  indexes: [
    { name: 'organization', keys: ({ organization_id }) => [organization_id] },
    { name: 'search', keys: ({ organization_id, name }) => searchKeys(name).map((key) => groupSearchKey(organization_id, key)) },
  ],
  rowOf: (state) => (state?.object === 'group' ? state : null),
});

/** Groups are searched for in one organization. */
export function groupSearchKey(organizationId: string, key: string): string {
  return `${organizationId} ${key}`;
}

const serialise = serialiserOf(Group);

/** What is answered of a row. */
export function toPublicGroupText(row: StoredRow<StoredGroup>): string {
  return serialise(contentOf(row));
}

/** Which membership is in which group: answers both ways round. Pairs of deleted groups stay; they are never shown, since their group is not there. */
export const groupMembersView: View<GroupMember, FactOf<GroupEvent, 'group.member_added' | 'group.member_removed'>> = {
  name: 'group_members',
  version: 1,
  handles: ['group.member_added', 'group.member_removed'],
  indexes: [
    { name: 'group', keys: ({ group_id }) => [group_id] },
    { name: 'membership', keys: ({ organization_membership_id }) => [organization_membership_id] },
  ],
  idsOf: ({ data }) => [pairId(data)],
  evolve: (_, { type, data }) => (type === 'group.member_added' ? data : null),
};

/** Of one group, pairs sort by their memberships; of one membership, by their groups. */
export function pairId({ group_id, organization_membership_id }: GroupMember): string {
  return `${group_id}.${organization_membership_id}`;
}
