import { Injectable } from '@nestjs/common';
import type { GroupMember } from '#libs/contracts/src/groups/group';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { contentOf } from '#libs/read-models/src/read-models';
import { groupDecider, removeMember, type GroupEvent } from '../domain/group.decider.ts';
import type { MembershipEvent } from '../domain/membership.decider.ts';
import { MembershipReader } from '../readers/membership-reader.ts';
import { groupMembersView } from '../views/groups.view.ts';

type Handled = FactOf<MembershipEvent, 'organization_membership.deleted'> | FactOf<GroupEvent, 'group.member_added'>;

/** Takes a deleted membership out of each of its groups, including groups that it was added to concurrently. */
@Injectable()
export class RemoveDeletedMembers implements Reaction<Handled> {
  readonly name = 'remove-deleted-members';
  readonly handles = ['organization_membership.deleted', 'group.member_added'] as const;

  constructor(
    private readonly cascade: Cascade,
    private readonly memberships: MembershipReader,
  ) {}

  async react(event: Recorded<Handled>): Promise<void> {
    const { environment, organization } = event.meta;
    // With the organization its groups go as a whole.
    if (!(await this.memberships.hasOrganization(environment, organization!))) return;
    if (event.type === 'organization_membership.deleted') {
      const where = { index: 'membership', values: [event.data.id] };
      await this.cascade.each(event, groupMembersView, where, (row) => this.remove(event, contentOf(row)));
    } else if ((await this.memberships.withIds(environment, [event.data.organization_membership_id]))[0] === null) await this.remove(event, event.data);
  }

  private remove(event: Recorded<Handled>, { group_id, organization_membership_id }: GroupMember): Promise<void> {
    return this.cascade.decide(event, groupDecider, group_id, removeMember(group_id, organization_membership_id));
  }
}
