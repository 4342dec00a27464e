import type { AuthenticationEvent } from '#libs/contracts/src/feed/authentication-event';
import type { Session, SessionMethod } from '#libs/contracts/src/sessions/session';
import type { NewPublicEvent, Decider, Decision, Erasable, Fact, Sealing } from '#libs/event-sourcing/src/deciding/decider';
import { isUnknownTo, type Beginning, type LaterFact } from './known-version.decider.ts';
import { ASKED_AGAIN_WITHIN_MS } from './lost-answer.decider.ts';
import type { MembershipEvent, StoredMembership } from './membership.decider.ts';
import type { OrganizationEvent } from './organization.decider.ts';
import { holderOfUser, type UserEvent } from './user.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

/** A sign-in, from the first factor that was proven, and the session that comes of it. */
export type SessionEvent =
  | Fact<'authentication.password_succeeded', ProvenFactor>
  | Fact<'authentication.magic_auth_succeeded', ProvenFactor>
  | Fact<'authentication.email_verification_succeeded', ProvenFactor>
  | Fact<'authentication.mfa_succeeded', ProvenFactor>
  | Fact<'session.created', SessionCreated>
  | Fact<'session.revoked', { readonly id: string; readonly reason: EndReason }>;

export type Factor = AuthenticationEvent['type'];

/** Who proved it, and from where: what is personal is null once the person is erased. */
export type ProvenFactor = Erasable<
  {
    readonly id: string;
    readonly user_id: string;
    readonly email: string;
    readonly ip_address: string | null;
    readonly user_agent: string | null;
    /** Whether the application showed its secret: then it shows it at each refresh as well. */
    readonly has_secret: boolean;
    /** What the user's stream said when it was proven (`credentialsVersionOf`): of the first factor, what outdates credentials and came after that ends the sign-in. Absent in older records. */
    readonly credentials_version?: number;
    /** Of the first factor, where more is asked for: the user's second factors that counted then. Absent in older records. */
    readonly factor_ids?: readonly string[];
  },
  'email'
>;

interface SessionCreated extends Pick<Session, 'id' | 'user_id' | 'auth_method' | 'ip_address' | 'user_agent' | 'expires_at'> {
  readonly organization_id: string | null;
  readonly membership_id: string | null;
  /** As its first factor says. */
  readonly credentials_version?: number;
  /** Since which version of its stream the membership is active: once it was inactive, it is active since another. Absent without a membership, and in older records. */
  readonly membership_version?: number;
  /** Whether a second factor was proven on the way to it; absent: none was, or an older record, which leaves that to the proofs before it. */
  readonly has_second_factor?: true;
}

/** Private: outside it is told that the session was revoked, whatever the reason. */
export type EndReason = 'revoked' | 'signed_out' | 'refresh_token_reused' | 'password_reset' | 'membership_inactive' | 'parent_deleted' | 'credentials_removed';

export type SessionState = SignIn | EndedSignIn | StoredSession | EndedSession | null;

/** Not all that is asked for was proven yet. */
interface SignIn extends Omit<ProvenFactor, 'has_secret'> {
  readonly object: 'sign_in';
  readonly proven: readonly Factor[];
  readonly began_at: string;
}

export interface StoredSession extends SessionCreated {
  readonly object: 'session';
  readonly created_at: string;
}

export interface EndedSession extends Omit<StoredSession, 'object'> {
  readonly object: 'ended_session';
  readonly ended_at: string;
}

/** Nothing came of it, and nothing will. */
interface EndedSignIn extends Pick<SignIn, 'id' | 'user_id'> {
  readonly object: 'ended_sign_in';
}

function evolve(state: SessionState, event: SessionEvent & { readonly at: string }): SessionState {
  switch (event.type) {
    case 'authentication.password_succeeded':
    case 'authentication.magic_auth_succeeded':
    case 'authentication.email_verification_succeeded':
    case 'authentication.mfa_succeeded': {
      if (state?.object === 'sign_in') return { ...state, proven: [...state.proven, factorOf(event.type)] };
      const { has_secret: _, ...about } = event.data;
      return state ?? { object: 'sign_in', ...about, proven: [factorOf(event.type)], began_at: event.at };
    }
    case 'session.created':
      // Its fact says it all, since rows are none before it, and a view that is caught up or rebuilt begins here; but for older records, whose second factor the proofs tell.
      if (state !== null && state.object !== 'sign_in') return state;
      return { object: 'session', ...event.data, created_at: event.at, ...(state?.proven.includes('mfa') === true && { has_second_factor: true }) };
    case 'session.revoked':
      if (state?.object === 'session') return { ...state, object: 'ended_session', ended_at: event.at };
      return state?.object === 'sign_in' ? { object: 'ended_sign_in', id: state.id, user_id: state.user_id } : state;
  }
}

function toPublicEvent(event: SessionEvent, _before: SessionState, after: SessionState): NewPublicEvent | null {
  switch (event.type) {
    case 'authentication.password_succeeded':
    case 'authentication.magic_auth_succeeded':
    case 'authentication.email_verification_succeeded':
    case 'authentication.mfa_succeeded': {
      const { user_id, email, ip_address, user_agent } = event.data;
      const payload: AuthenticationEvent = { type: factorOf(event.type), status: 'succeeded', user_id, email, ip_address, user_agent };
      return { payload, names: [event.type] };
    }
    case 'session.created':
      return after?.object === 'session' ? { payload: toPublicSession(after), names: ['session.created'] } : null;
    case 'session.revoked':
      return after?.object === 'ended_session' ? { payload: toPublicSession(after), names: ['session.revoked'] } : null;
  }
}

/** The session as the API shows it: one that expired is not shown. */
export function toPublicSession(stored: StoredSession | EndedSession): Session {
  const { organization_id, membership_id: _, has_second_factor: _factor, credentials_version: _known, membership_version: _active, ...session } = stored;
  const chosen = organization_id === null ? {} : { organization_id };
  if (session.object === 'session') return { ...session, ...chosen, status: 'active', ended_at: null, updated_at: session.created_at };
  return { ...session, ...chosen, object: 'session', status: 'revoked', updated_at: session.ended_at };
}

const ofUser: Sealing<SessionState, Extract<SessionEvent, Fact<string, ProvenFactor>>> = {
  of: ({ data }) => holderOfUser(data.user_id),
  fields: ['email', 'ip_address', 'user_agent'],
};

export const sessionDecider: Decider<SessionState, SessionEvent> = {
  category: 'session',
  foldVersion: 1,
  initial: null,
  sealed: {
    'authentication.password_succeeded': [ofUser],
    'authentication.magic_auth_succeeded': [ofUser],
    'authentication.email_verification_succeeded': [ofUser],
    'authentication.mfa_succeeded': [ofUser],
    'session.created': [{ of: ({ data }) => holderOfUser(data.user_id), fields: ['ip_address', 'user_agent'] }],
    'session.revoked': [{ of: (_fact, { after }) => holderOfUser(after!.user_id), fields: ['ip_address', 'user_agent'] }],
  },
  evolve,
  organization: (state) => (state !== null && 'organization_id' in state ? (state.organization_id ?? undefined) : undefined),
  toPublicEvent,
  hangsOn: {
    reaction: 'end-sessions-with-what-they-hang-on',
    parents: [
      { ends: 'user.deleted' satisfies UserEvent['type'], index: 'user', category: 'user', field: 'user_id' },
      { ends: 'organization.deleted' satisfies OrganizationEvent['type'], index: 'organization', category: 'organization', field: 'organization_id' },
      {
        ends: 'organization_membership.deleted' satisfies MembershipEvent['type'],
        index: 'membership',
        category: 'organization_membership',
        field: 'membership_id',
      },
    ],
    begins: ['session.created'],
    end: (id) => endSession(id, 'parent_deleted'),
  },
};

type Decide = Decision<SessionState, SessionEvent>;

/** As a factor is proven from now on. */
export type NewProof = ProvenFactor & { readonly credentials_version: number };

/** What is shown beside the first factor, of whose proof nothing else has to be known. */
export interface NewSession {
  /** Null: it begins in none. */
  readonly membership: Pick<StoredMembership, 'id' | 'organization_id' | 'status_version'> | null;
  readonly expires_at: string;
}

/**
 * A factor was proven, and where nothing else is asked for (`session`), the session begins with it. Nothing follows once there is a session, or was one: a repeated request
 * meets what it made.
 */
export function proveFactor(factor: Factor, about: NewProof, session: NewSession | null): Decide {
  return (state, context) => {
    if (state !== null && state.object !== 'sign_in') return [];
    const proof: SessionEvent = { type: `authentication.${factor}_succeeded`, data: about };
    const isProven = state?.proven.includes(factor) === true;
    const signIn = isProven ? state : (evolve(state, { ...proof, at: context.now }) as SignIn);
    return [...(isProven ? [] : [proof]), ...(session === null ? [] : [sessionOf(signIn, session)])];
  };
}

/** Whether a client that heard no answer may still ask again for a session that has begun (milliseconds since the epoch). */
export function mayBeAskedAgain({ created_at }: StoredSession, now: number): boolean {
  return now - Date.parse(created_at) <= ASKED_AGAIN_WITHIN_MS;
}

/** Nothing else is asked for. */
export function beginSession(session: NewSession): Decide {
  return (state) => (state?.object === 'sign_in' ? [sessionOf(state, session)] : []);
}

/** Nothing where there was none, or it is over: of one that expires nobody is told. */
export function endSession(id: string, reason: EndReason): Decide {
  return (state, { now }) => {
    const goesOn = state?.object === 'sign_in' || (state?.object === 'session' && state.expires_at > now);
    return goesOn ? [{ type: 'session.revoked', data: { id, reason } }] : [];
  };
}

/** As `endSession`, of one that began without knowing of this fact of its user's: who has signed in since stays, however late this is asked. */
export function endOutdatedSession(id: string, fact: LaterFact, reason: 'password_reset' | 'credentials_removed'): Decide {
  return (state, context) => (state?.object === 'session' && !isUnknownTo(beginningOf(state), fact) ? [] : endSession(id, reason)(state, context));
}

/** As `endSession`, of one that began before its membership was made inactive by this fact. */
export function endSessionOfInactive(id: string, fact: LaterFact): Decide {
  return (state, context) =>
    state?.object === 'session' && !isUnknownTo(activationOf(state), fact) ? [] : endSession(id, 'membership_inactive')(state, context);
}

/** What a sign-in or a session goes by of its user's stream. */
export function beginningOf(state: SignIn | StoredSession): Beginning & { readonly id: string } {
  const { id, credentials_version: known_version } = state;
  return { id, began_at: state.object === 'sign_in' ? state.began_at : state.created_at, known_version };
}

/** Whether this is the membership that the session began with, and has been active ever since; null: there is none that is active. */
export function isStillMember(session: StoredSession, membership: StoredMembership | null): boolean {
  if (session.membership_id === null) return true;
  if (membership?.id !== session.membership_id || membership.status !== 'active') return false;
  return session.membership_version === undefined || membership.status_version <= session.membership_version;
}

function activationOf({ created_at, membership_version }: StoredSession): Beginning {
  return { began_at: created_at, known_version: membership_version };
}

function sessionOf({ id, user_id, proven, ip_address, user_agent, credentials_version }: SignIn, { membership, expires_at }: NewSession): SessionEvent {
  const began = { id, user_id, auth_method: METHODS[proven[0]!], ip_address, user_agent, expires_at, credentials_version };
  const chosen = membership === null ? { organization_id: null, membership_id: null } : membershipOf(membership);
  return { type: 'session.created', data: { ...began, ...chosen, ...(proven.includes('mfa') && { has_second_factor: true as const }) } };
}

function membershipOf({ id, organization_id, status_version }: NonNullable<NewSession['membership']>) {
  return { organization_id, membership_id: id, membership_version: status_version };
}

/** By what somebody showed at first who they are. */
const METHODS: Readonly<Record<Factor, SessionMethod>> = { password: 'password', magic_auth: 'magic_code', email_verification: 'unknown', mfa: 'unknown' };

type Proof = Extract<SessionEvent['type'], `authentication.${string}`>;

function factorOf(type: Proof): Factor {
  return type.slice('authentication.'.length, -'_succeeded'.length) as Factor;
}
