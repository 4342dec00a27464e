import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { invitationDecider, isUsable, type StoredInvitation } from '../domain/invitation.decider.ts';
import { organizationDecider } from '../domain/organization.decider.ts';
import { isSameMailbox } from '../domain/user.decider.ts';
import { idInToken, OneTimeCodes } from './one-time-codes.ts';

/** Tokens of invitations, and what they are good for. Each time an invitation is sent it has another one. */
@Injectable()
export class InvitationTokens {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly repository: Repository,
    private readonly clock: Clock,
  ) {}

  of({ environment }: Pick<RequestContext, 'environment'>, { id, round }: StoredInvitation): Promise<string> {
    return this.codes.token({ environment, kind: 'invitation', id, round });
  }

  /** As the end of the log has it, whatever became of it; null where the token is none, or was replaced. */
  async find(context: RequestContext, token: string): Promise<StoredInvitation | null> {
    const id = idInToken('invitation', token);
    const invitation = id === null ? null : await this.withId(context, id);
    if (invitation === null) return null;
    const name = { environment: context.environment, kind: 'invitation', id: invitation.id, round: invitation.round };
    return (await this.codes.isToken(name, token)) ? invitation : null;
  }

  withId({ environment }: RequestContext, id: string): Promise<StoredInvitation | null> {
    return this.repository.load(invitationDecider, environment, id);
  }

  /**
   * The invitation, where whoever has this address may accept it; what is not known yet of them is not asked.
   * @throws DomainError `invitation_invalid`, also where its organization is gone; `invitation_cannot_be_used_for_email`
   */
  async requireUsable(
    context: RequestContext,
    invitation: StoredInvitation | null,
    { email, userId }: { readonly email: string | undefined; readonly userId?: string },
  ): Promise<StoredInvitation> {
    const now = new Date(this.clock.now()).toISOString();
    if (invitation?.email == null || !isUsable(invitation, now, userId) || !(await this.hasOrganization(context, invitation))) throw invalidInvitation();
    if (email !== undefined && !isSameMailbox(invitation.email, email))
      throw new DomainError('invalid', 'invitation_cannot_be_used_for_email', 'The invitation was sent to another address.');
    return invitation;
  }

  private async hasOrganization({ environment }: RequestContext, { organization_id }: StoredInvitation): Promise<boolean> {
    return organization_id === null || (await this.repository.load(organizationDecider, environment, organization_id))?.object === 'organization';
  }
}

export function invalidInvitation(): DomainError {
  return new DomainError('invalid', 'invitation_invalid', 'The invitation is unknown, or was accepted, revoked or replaced, or has expired.');
}
