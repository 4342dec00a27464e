import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { RequestContext } from '#libs/platform/src/request-context';
import { invitationDecider, type StoredInvitation } from '../domain/invitation.decider.ts';
import { endPendingMembership, inviteMember, membershipDecider, membershipKey } from '../domain/membership.decider.ts';
import { RoleDirectory } from '../readers/role-directory.ts';

/** A user who is invited to an organization is a pending member of it, for as long as the invitation is open. */
@Injectable()
export class PendingMemberships {
  constructor(
    private readonly repository: Repository,
    private readonly roles: RoleDirectory,
  ) {}

  /** Nothing where nobody has the address, or there is no organization. Takes at most two places among the aggregates that the command asks. */
  async begin(context: RequestContext, invitation: StoredInvitation): Promise<void> {
    const { id: invitation_id, organization_id, user_id, role } = invitation;
    if (organization_id === null || user_id === null) return;
    const roles = await this.roles.ofInvited(context, organization_id, role);
    const inviting = inviteMember({ organization_id, user_id, roles, invitation_id });
    await this.repository.transact(membershipDecider, context, membershipKey(organization_id, user_id), inviting);
    // It may have ended meanwhile: who ended it found no membership.
    const present = await this.repository.load(invitationDecider, context.environment, invitation_id);
    if (present !== null && present.state !== 'pending' && present.state !== 'accepted') await this.end(context, present);
  }

  /** Nothing where the membership is not, or not any more, a pending one of this invitation. */
  async end(context: RequestContext, { id, organization_id, user_id }: StoredInvitation): Promise<void> {
    if (organization_id === null || user_id === null) return;
    await this.repository.transact(membershipDecider, context, membershipKey(organization_id, user_id), endPendingMembership(id));
  }
}
