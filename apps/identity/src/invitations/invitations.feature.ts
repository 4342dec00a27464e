import { feature } from '#libs/runtime/src/feature';
import { invitationDecider } from '../domain/invitation.decider.ts';
import { invitationsView, openInvitationsView } from '../views/invitations.view.ts';
import { ExpiredInvitations, InvitationExpiry } from './expired-invitations.ts';
import { FollowInvitations } from './invitation.reactions.ts';
import { Invitations } from './invitations.ts';
import { PendingMemberships } from './pending-memberships.ts';

export const invitations = feature({
  deciders: [invitationDecider],
  views: [invitationsView, openInvitationsView],
  providers: [Invitations, PendingMemberships, InvitationExpiry],
  reactions: [FollowInvitations],
  backgroundComponents: [ExpiredInvitations],
});
