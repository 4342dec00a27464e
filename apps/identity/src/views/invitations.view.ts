import { primaryView, type View } from '#libs/event-sourcing/src/views/view';
import {
  holderOfInvitation,
  invitationDecider,
  openKey,
  type InvitationEvent,
  type InvitationState,
  type StoredInvitation,
} from '../domain/invitation.decider.ts';
import { foldedEmail } from '../domain/user.decider.ts';

/** Every invitation that ever was. Private: it holds what no answer shows, and its organization may be gone. */
export const invitationsView = primaryView<InvitationState, InvitationEvent, StoredInvitation>({
  name: 'invitations',
  noun: 'Invitation',
  version: 1,
  decider: invitationDecider,
  indexes: [
    { name: 'organization', keys: ({ organization_id }) => (organization_id === null ? [] : [organization_id]) },
    { name: 'email', keys: ({ email }) => (email === null ? [] : [foldedEmail(email)]) },
    { name: 'organization_and_email', keys: ({ organization_id, email }) => (email === null ? [] : [openKey(organization_id, email)]) },
    { name: 'user', keys: ({ user_id }) => (user_id === null ? [] : [user_id]) },
  ],
  personal: { holders: (invitation) => [holderOfInvitation(invitation)], columns: () => ['email'] },
  rowOf: (state) => state,
});

/** What is due, the first first. */
export interface OpenInvitation {
  readonly id: string;
  readonly expires_at: string;
}

/** Invitations that nobody has answered, by the time that they end. One that is sent again is another row: its time is another. */
export const openInvitationsView: View<OpenInvitation, InvitationEvent> = {
  name: 'open-invitations',
  version: 1,
  handles: ['invitation.created', 'invitation.resent', 'invitation.accepted', 'invitation.revoked', 'invitation.expired'],
  indexes: [],
  sortKey: ({ expires_at }) => expires_at,
  personal: null,
  awaited: false,
  idsOf: ({ type, data }) => {
    const round = type === 'invitation.created' ? 0 : data.round;
    const rows = type === 'invitation.resent' ? [round - 1, round] : [round];
    return rows.map((each) => `${data.id}.${each}`);
  },
  evolve: (_row, { type, data }, rowId) => {
    if (type === 'invitation.created') return { id: data.id, expires_at: data.expires_at };
    return type === 'invitation.resent' && rowId.endsWith(`.${data.round}`) ? { id: data.id, expires_at: data.expires_at } : null;
  },
};
