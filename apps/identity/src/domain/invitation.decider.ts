import type { Invitation } from '#libs/contracts/src/invitations/invitation';
import type { Claim, Decider, Decision, Erasable, Fact, NewPublicEvent, Sealing } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound, refusedField } from '#libs/platform/src/domain-error';
import { ASKED_AGAIN_WITHIN_MS } from './lost-answer.decider.ts';
import type { HeldRole } from './membership.decider.ts';
import type { OrganizationEvent } from './organization.decider.ts';
import { foldedEmail, holderOfUser, type UserEvent } from './user.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

/** `round`: of the token. Each time the invitation is sent again, another one takes its place. */
export type InvitationEvent =
  | Fact<'invitation.created', InvitationCreated>
  | Fact<'invitation.resent', { readonly id: string; readonly round: number; readonly expires_at: string; readonly locale: string | null }>
  | Fact<'invitation.accepted', Ended & { readonly accepted_user_id: string }>
  | Fact<'invitation.revoked', Ended>
  /** Its time was over. Nobody is told: it says itself when that is. */
  | Fact<'invitation.expired', Ended>;

type InvitationCreated = Erasable<
  Pick<Invitation, 'id' | 'email' | 'organization_id' | 'inviter_user_id' | 'expires_at'> & {
    /** Who had the address already; null: nobody, and what is known of whoever reads it lies under a key of the invitation's own. */
    readonly user_id: string | null;
    readonly role: HeldRole | null;
    readonly locale: string | null;
    readonly days: number;
  },
  'email'
>;

interface Ended {
  readonly id: string;
  readonly round: number;
}

export type InvitationState = StoredInvitation | null;

export interface StoredInvitation extends InvitationCreated {
  readonly object: 'invitation';
  readonly round: number;
  /** Pending also where its time is over and nobody has noticed yet: see `stateAt`. */
  readonly state: Invitation['state'];
  readonly accepted_at: string | null;
  readonly revoked_at: string | null;
  readonly accepted_user_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

const DAY = 24 * 60 * 60_000;
const MOST_DAYS = 30;

function evolve(state: InvitationState, event: InvitationEvent & { readonly at: string }): InvitationState {
  const { at } = event;
  if (event.type === 'invitation.created') {
    const open = { round: 0, state: 'pending', accepted_at: null, revoked_at: null, accepted_user_id: null } as const;
    return { object: 'invitation', ...event.data, ...open, created_at: at, updated_at: at };
  }
  if (state === null) return state;
  switch (event.type) {
    case 'invitation.resent':
      return { ...state, ...event.data, updated_at: at };
    case 'invitation.accepted':
      return { ...state, state: 'accepted', accepted_at: at, accepted_user_id: event.data.accepted_user_id, updated_at: at };
    case 'invitation.revoked':
      return { ...state, state: 'revoked', revoked_at: at, updated_at: at };
    case 'invitation.expired':
      // To whoever looks, nothing changes: its time was over before.
      return { ...state, state: 'expired' };
  }
}

/** An address has one open invitation in an organization, and one beside that. */
function claims(state: InvitationState): readonly Claim[] {
  if (state?.state !== 'pending' || state.email === null) return [];
  const { email, organization_id } = state;
  return [{ kind: 'invitation.open', value: openKey(organization_id, email), refusal: () => alreadyInvited(organization_id, email) }];
}

/** By which the open invitations of an address to an organization, or to none, are found. */
export function openKey(organizationId: string | null, email: string): string {
  return `${organizationId ?? ''} ${foldedEmail(email)}`;
}

/** Whose key seals the address: the user's who had it when it was invited, else the invitation's own. */
export function holderOfInvitation({ id, user_id }: Pick<StoredInvitation, 'id' | 'user_id'>): string {
  return user_id === null ? ownHolder(id) : holderOfUser(user_id);
}

export function ownHolder(id: string): string {
  return `${OWN}${id}`;
}

const OWN = 'invitation.';

/** Of which invitation this is the own holder; null: of none. */
export function invitationOfHolder(holder: string): string | null {
  return holder.startsWith(OWN) ? holder.slice(OWN.length) : null;
}

function toPublicEvent({ type }: InvitationEvent, _before: InvitationState, after: InvitationState): NewPublicEvent | null {
  if (type === 'invitation.expired' || after === null) return null;
  // Nothing can be sealed for whoever was erased.
  return { payload: { ...toPublicInvitation(after, after.state), email: after.email }, names: [type] };
}

/** As events show it. */
export function toPublicInvitation(
  { user_id: _, role, locale: _locale, days: _days, round: _round, email, ...invitation }: StoredInvitation,
  state: Invitation['state'],
): Invitation {
  return { ...invitation, state, email: email ?? '', role_slug: role?.slug ?? null };
}

/** What it is at this time (ISO 8601). */
export function stateAt({ state, expires_at }: StoredInvitation, now: string): Invitation['state'] {
  return state === 'pending' && expires_at <= now ? 'expired' : state;
}

const ofInvited: Sealing<InvitationState, InvitationEvent> = { of: (_fact, { after }) => holderOfInvitation(after!), fields: ['email'] };

export const invitationDecider: Decider<InvitationState, InvitationEvent> = {
  category: 'invitation',
  foldVersion: 1,
  initial: null,
  sealed: {
    'invitation.created': [ofInvited],
    'invitation.resent': [ofInvited],
    'invitation.accepted': [ofInvited],
    'invitation.revoked': [ofInvited],
    'invitation.expired': null,
  },
  evolve,
  claims,
  organization: (state) => state?.organization_id ?? undefined,
  toPublicEvent,
  hangsOn: {
    reaction: 'revoke-invitations-with-what-they-hang-on',
    parents: [
      { ends: 'organization.deleted' satisfies OrganizationEvent['type'], index: 'organization', category: 'organization', field: 'organization_id' },
      { ends: 'user.deleted' satisfies UserEvent['type'], index: 'user', category: 'user', field: 'user_id' },
    ],
    begins: ['invitation.created'],
    end: (id) => endInvitation(id),
  },
};

type Decide = Decision<InvitationState, InvitationEvent>;

export type NewInvitation = Omit<InvitationCreated, 'id' | 'expires_at' | 'email'> & { readonly email: string };

/** @throws DomainError `expires_in_days_too_short`, `expires_in_days_too_long` */
export function requireDays(days: number): void {
  if (days < 1) throw refusedField('invalid', 'expires_in_days_too_short', { field: 'expires_in_days', message: 'An invitation works for a day or longer.' });
  if (days > MOST_DAYS)
    throw refusedField('invalid', 'expires_in_days_too_long', { field: 'expires_in_days', message: `An invitation works for ${MOST_DAYS} days at most.` });
}

export function createInvitation(invitation: NewInvitation): Decide {
  return (state, context) => {
    if (state !== null) return [];
    return [{ type: 'invitation.created', data: { id: context.id('invitation'), ...invitation, expires_at: after(context.now, invitation.days) } }];
  };
}

/** Another token, for as long as the first. `locale`: null leaves the language as it is. @throws DomainError `invite_accepted`, `invite_revoked`, `invite_expired` */
export function resendInvitation(id: string, locale: string | null): Decide {
  return (state, { now }) => {
    const invitation = requireInvitation(state, id);
    const shown = stateAt(invitation, now);
    if (shown !== 'pending') throw new DomainError('conflict', RESEND_REFUSALS[shown], `The invitation is ${shown}.`);
    const { round, days } = invitation;
    return [{ type: 'invitation.resent', data: { id, round: round + 1, expires_at: after(now, days), locale: locale ?? invitation.locale } }];
  };
}

const RESEND_REFUSALS = { accepted: 'invite_accepted', revoked: 'invite_revoked', expired: 'invite_expired' } as const;

/** By whoever has the address. @throws DomainError `invite_has_accepted_user_id`, `invite_not_pending` */
export function acceptInvitation(id: string, accepted_user_id: string): Decide {
  return (state, { now }) => {
    const { round, email } = requirePending(state, id, now);
    if (email === null) throw notPending('revoked');
    return [{ type: 'invitation.accepted', data: { id, round, accepted_user_id } }];
  };
}

/** @throws DomainError `invite_not_pending` */
export function revokeInvitation(id: string): Decide {
  return (state, { now }) => {
    const invitation = requireInvitation(state, id);
    const shown = stateAt(invitation, now);
    if (shown !== 'pending') throw notPending(shown);
    return [{ type: 'invitation.revoked', data: { id, round: invitation.round } }];
  };
}

/** Revokes it where it is open: what it hangs on is gone. */
export function endInvitation(id: string): Decide {
  return (state, { now }) => {
    if (state?.id !== id || state.state !== 'pending') return [];
    const { round } = state;
    return [{ type: stateAt(state, now) === 'pending' ? 'invitation.revoked' : 'invitation.expired', data: { id, round } }];
  };
}

/** Nothing where it has ended, or its time is not over. */
export function expireInvitation(id: string): Decide {
  return (state, { now }) =>
    state?.state === 'pending' && stateAt(state, now) === 'expired' ? [{ type: 'invitation.expired', data: { id, round: state.round } }] : [];
}

/** Whether somebody may go on with it at this time: it is open, or was accepted a moment ago by a client that heard no answer. `userId`: by whom, once that is known. */
export function isUsable(invitation: StoredInvitation, now: string, userId?: string): boolean {
  if (stateAt(invitation, now) === 'pending') return true;
  const { accepted_at, accepted_user_id } = invitation;
  return accepted_at !== null && (userId ?? accepted_user_id) === accepted_user_id && Date.parse(now) - Date.parse(accepted_at) <= ASKED_AGAIN_WITHIN_MS;
}

/** @throws DomainError `entity_not_found` */
export function requireInvitation(state: InvitationState, id: string): StoredInvitation {
  if (state === null) throw notFound('Invitation', id);
  return state;
}

function requirePending(state: InvitationState, id: string, now: string): StoredInvitation {
  const invitation = requireInvitation(state, id);
  const shown = stateAt(invitation, now);
  if (shown === 'accepted') throw new DomainError('conflict', 'invite_has_accepted_user_id', 'The invitation was accepted.');
  if (shown !== 'pending') throw notPending(shown);
  return invitation;
}

function notPending(state: Invitation['state']): DomainError {
  return new DomainError('conflict', 'invite_not_pending', `The invitation is ${state}.`);
}

export function alreadyInvited(organizationId: string | null, email: string): DomainError {
  return organizationId === null
    ? new DomainError('conflict', 'email_already_invited', `'${email}' has a pending invitation.`)
    : new DomainError('conflict', 'email_already_invited_to_organization', `'${email}' has a pending invitation to the organization '${organizationId}'.`);
}

function after(now: string, days: number): string {
  return new Date(Date.parse(now) + days * DAY).toISOString();
}
