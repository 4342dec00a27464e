import { Injectable } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { factsOf } from '#libs/event-sourcing/src/deciding/records';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { Clock } from '#libs/platform/src/clock';
import { systemContext } from '#libs/platform/src/system-context';
import { InvitationAcceptance } from '../codes/invitation-acceptance.ts';
import { endInvitation, invitationDecider, invitationOfHolder, type InvitationEvent, type StoredInvitation } from '../domain/invitation.decider.ts';
import { membershipDecider, membershipKey, type MembershipEvent } from '../domain/membership.decider.ts';
import type { UserEvent } from '../domain/user.decider.ts';
import { PendingMemberships } from './pending-memberships.ts';

type Handled =
  | FactOf<InvitationEvent, 'invitation.created' | 'invitation.accepted' | 'invitation.revoked' | 'invitation.expired'>
  | FactOf<MembershipEvent, 'organization_membership.created' | 'organization_membership.deleted'>
  | FactOf<UserEvent, 'user.erased'>;

/** Brings memberships and invitations together: stands in for whoever recorded the one and died before the other, and ends the one with the other. */
@Injectable()
export class FollowInvitations implements Reaction<Handled> {
  readonly name = 'follow-invitations';
  readonly handles = [
    ...(['invitation.created', 'invitation.accepted', 'invitation.revoked', 'invitation.expired'] as const),
    ...(['organization_membership.created', 'organization_membership.deleted', 'user.erased'] as const),
  ];

  constructor(
    private readonly repository: Repository,
    private readonly events: EventStore,
    private readonly pending: PendingMemberships,
    private readonly acceptance: InvitationAcceptance,
    private readonly clock: Clock,
  ) {}

  async react(event: Recorded<Handled>): Promise<void> {
    const { environment } = event.meta;
    switch (event.type) {
      case 'invitation.created':
      case 'invitation.accepted':
      case 'invitation.revoked':
      case 'invitation.expired': {
        const invitation = await this.repository.load(invitationDecider, environment, event.data.id);
        return invitation === null ? undefined : this.follow(event, invitation);
      }
      case 'organization_membership.created': {
        const { invitation_id, status } = event.data;
        if (invitation_id === undefined || status !== 'pending') return;
        const invitation = await this.repository.load(invitationDecider, environment, invitation_id);
        // Ended before the membership began: nobody has seen it then.
        if (invitation !== null && invitation.state !== 'pending') await this.settle(environment, invitation);
        return;
      }
      case 'organization_membership.deleted': {
        const facts = await factsOf(this.events, membershipDecider, environment, streamKeyOf(event.stream));
        const began = facts.find((fact) => fact.type === 'organization_membership.created' && fact.data.id === event.data.id);
        if (began?.type === 'organization_membership.created' && began.data.invitation_id !== undefined) await this.end(environment, began.data.invitation_id);
        return;
      }
      case 'user.erased':
        for (const id of event.data.holders.map(invitationOfHolder)) if (id !== null) await this.end(environment, id);
    }
  }

  private async follow(event: Recorded<Extract<Handled, { readonly type: `invitation.${string}` }>>, invitation: StoredInvitation): Promise<void> {
    const { environment } = event.meta;
    if (event.type === 'invitation.created') {
      if (invitation.state === 'pending' && !(await this.isFollowed(event, invitation.organization_id, invitation.user_id)))
        await this.pending.begin(this.context(environment), invitation);
      return;
    }
    if (event.type === 'invitation.accepted') {
      const { accepted_user_id: userId } = event.data;
      if (!(await this.isFollowed(event, invitation.organization_id, userId))) await this.acceptance.join(this.context(environment), invitation, userId);
      await this.acceptance.link(this.context(environment), invitation, userId);
    }
    await this.settle(environment, invitation);
  }

  /** A pending membership of an invitation that is answered is a real one, or none; also that of who had the address before whoever accepted. */
  private async settle(environment: string, invitation: StoredInvitation): Promise<void> {
    const { organization_id, user_id, accepted_user_id } = invitation;
    if (accepted_user_id === null || accepted_user_id !== user_id) await this.pending.end(this.context(environment), invitation);
    else if (organization_id !== null) {
      const membership = await this.repository.load(membershipDecider, environment, membershipKey(organization_id, user_id));
      if (membership?.object === 'organization_membership' && membership.invitation_id === invitation.id)
        await this.acceptance.join(this.context(environment), invitation, user_id);
    }
  }

  private async end(environment: string, id: string): Promise<void> {
    await this.repository.transact(invitationDecider, this.context(environment), id, endInvitation(id));
  }

  /** Whether the membership has a history since: whoever recorded the event went on, or somebody has decided otherwise. */
  private async isFollowed({ meta, position }: Recorded<Handled>, organizationId: string | null, userId: string | null): Promise<boolean> {
    if (organizationId === null || userId === null) return false;
    const facts = await factsOf(this.events, membershipDecider, meta.environment, membershipKey(organizationId, userId));
    return facts.some((fact) => fact.position > position);
  }

  private context(environment: string) {
    return systemContext(environment, this.clock.now());
  }
}
