import { Injectable } from '@nestjs/common';
import { passOver, Repository } from '#libs/event-sourcing/src/deciding/repository';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { acceptInvitation, invitationDecider, ownHolder, requireInvitation, type StoredInvitation } from '../domain/invitation.decider.ts';
import { joinByInvitation, membershipDecider, membershipKey } from '../domain/membership.decider.ts';
import { linkData, userDecider } from '../domain/user.decider.ts';
import { RoleDirectory } from '../readers/role-directory.ts';

/** What comes of an invitation once it is accepted: a membership, and an address of which the user's erasure knows. */
@Injectable()
export class InvitationAcceptance {
  constructor(
    private readonly repository: Repository,
    private readonly roles: RoleDirectory,
  ) {}

  /**
   * Takes three places among the aggregates that the command asks.
   * @throws DomainError `invalid_invite` where the user is suspended in the organization; as `acceptInvitation` says
   */
  async accept(context: RequestContext, { id, state: known, organization_id }: StoredInvitation, userId: string): Promise<StoredInvitation> {
    if (known === 'pending' && (await this.isSuspended(context, organization_id, userId)))
      throw new DomainError('invalid', 'invalid_invite', 'The user is suspended in the organization.');
    const { state } = await this.repository.transact(invitationDecider, context, id, acceptInvitation(id, userId));
    const invitation = requireInvitation(state, id);
    await this.join(context, invitation, userId);
    await this.link(context, invitation, userId);
    return invitation;
  }

  async join(context: RequestContext, { id: invitation_id, organization_id, role }: StoredInvitation, user_id: string): Promise<void> {
    if (organization_id === null) return passOver(context);
    const roles = await this.roles.ofInvited(context, organization_id, role);
    const joining = joinByInvitation({ organization_id, user_id, roles, invitation_id });
    await this.repository.transact(membershipDecider, context, membershipKey(organization_id, user_id), joining);
  }

  /** What lies under the invitation's own key is theirs; another user's key is not. */
  async link(context: RequestContext, { id, user_id }: StoredInvitation, userId: string): Promise<void> {
    if (user_id === null) await this.repository.transact(userDecider, context, userId, linkData(userId, ownHolder(id)));
    else passOver(context);
  }

  private async isSuspended({ environment }: RequestContext, organizationId: string | null, userId: string): Promise<boolean> {
    if (organizationId === null) return false;
    const membership = await this.repository.load(membershipDecider, environment, membershipKey(organizationId, userId));
    return membership?.object === 'organization_membership' && membership.status === 'inactive';
  }
}
