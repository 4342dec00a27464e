import type { Group, GroupMember } from '#libs/contracts/src/groups/group';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { ReadModels } from '#libs/read-models/src/read-models';
import type { Dependents } from '../dependents.ts';
import type { MembershipEvent } from '../memberships/membership.decider.ts';
import type { ShownMemberships } from '../memberships/shown-memberships.ts';
import type { OrganizationEvent } from '../organizations/organization.decider.ts';
import { groupDecider, recordDeletion, removeMember, type GroupEvent } from './group.decider.ts';
import { groupMembersView, groupsView } from './groups.view.ts';

export interface GroupReactionNeeds {
  readonly dependents: Dependents;
  readonly memberships: ShownMemberships;
  readonly readModels: ReadModels;
}

/** Groups are dead with their organization; this tells so of each, also of one that was created at the very moment. */
export function deleteGroupsWithTheirOrganization({ dependents, memberships, readModels }: GroupReactionNeeds): Reaction {
  const rows = readModels.table(tableOf(groupsView));
  return {
    name: 'delete-groups-with-their-organization',
    handles: ['organization.deleted' satisfies OrganizationEvent['type'], 'group.created' satisfies GroupEvent['type']],
    react: async (event) => {
      const { id } = event.data as { readonly id: string };
      if (event.type === 'organization.deleted') {
        const where = { index: 'organization', values: [id] };
        return dependents.each(event, rows, where, (row) => dependents.decide(event, groupDecider, row.id, recordDeletion()));
      }
      const { organization_id } = event.data as Group;
      if (!(await memberships.hasOrganization(event.meta.environment, organization_id))) await dependents.decide(event, groupDecider, id, recordDeletion());
    },
  };
}

/** A deleted membership is in no group any more; this tells so of each group, also of one that it was added to at the very moment. */
export function removeDeletedMembers({ dependents, memberships, readModels }: GroupReactionNeeds): Reaction {
  const pairs = readModels.table(tableOf(groupMembersView));
  const remove = (event: RecordedEvent, { group_id, organization_membership_id }: GroupMember): Promise<void> =>
    dependents.decide(event, groupDecider, group_id, removeMember(group_id, organization_membership_id));
  return {
    name: 'remove-deleted-members',
    handles: ['organization_membership.deleted' satisfies MembershipEvent['type'], 'group.member_added' satisfies GroupEvent['type']],
    react: async (event) => {
      const { environment, organization } = event.meta;
      // With the organization its groups go as a whole.
      if (!(await memberships.hasOrganization(environment, organization!))) return;
      if (event.type === 'organization_membership.deleted') {
        const { id } = event.data as { readonly id: string };
        const where = { index: 'membership', values: [id] };
        return dependents.each(event, pairs, where, (row) => remove(event, JSON.parse(row.text) as GroupMember));
      }
      const pair = event.data as GroupMember;
      if ((await memberships.withIds(environment, [pair.organization_membership_id]))[0] === null) await remove(event, pair);
    },
  };
}
