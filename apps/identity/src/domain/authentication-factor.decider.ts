import type { AuthenticationFactor } from '#libs/contracts/src/authentication-factors/authentication-factor';
import type { Decider, Decision, Erasable, Fact, Sealing } from '#libs/event-sourcing/src/deciding/decider';
import type { Erasure, FACTOR_ERASED } from '#libs/event-sourcing/src/erasure/erasing';
import { notFound } from '#libs/platform/src/domain-error';
import { isUnknownTo, type Beginning, type LaterFact } from './known-version.decider.ts';
import { holderOfUser, type StoredUser, type UserEvent } from './user.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type AuthenticationFactorEvent =
  | Fact<'authentication_factor.enrolled', FactorEnrolled>
  /** Somebody has shown to have it: it counts. */
  | Fact<'authentication_factor.verified', { readonly id: string }>
  /** A text with a code is to be sent: the code of an earlier challenge works no more. */
  | Fact<'authentication_factor.challenged', FactorChallenged>
  | Fact<'authentication_factor.deleted', { readonly id: string }>
  /** With the deletion of one of whom nobody knows whose it is: no erasure of a user would ever take its key along. */
  | Fact<typeof FACTOR_ERASED, Erasure>;

const PERSONAL = ['totp_issuer', 'totp_user', 'totp_secret', 'phone_number'] as const;

/** What its type does not have is null, and what is personal once the person is erased. */
export type FactorEnrolled = Erasable<
  {
    readonly id: string;
    /** Null: the application knows whose it is. */
    readonly user_id: string | null;
    readonly type: 'totp' | 'sms' | 'generic_otp';
    readonly totp_issuer: string | null;
    readonly totp_user: string | null;
    /** Sealed by the vault: no row, no log and no backup has it. */
    readonly totp_secret: string | null;
    readonly phone_number: string | null;
    /** What its user's stream said when it was enrolled (`credentialsVersionOf`). Absent without a user, and in older records. */
    readonly credentials_version?: number;
  },
  (typeof PERSONAL)[number]
>;

/** The code itself is derived, and stands nowhere. */
export type FactorChallenged = Erasable<
  {
    readonly id: string;
    readonly user_id: string | null;
    readonly challenge_id: string;
    /** What the caller wants to have written around the code; null: the words of this product. */
    readonly sms_template: string | null;
    readonly expires_at: string;
  },
  'sms_template'
>;

export interface StoredFactor extends FactorEnrolled {
  readonly object: 'authentication_factor';
  /** Of type `sms`: the challenge whose code was sent last. Absent: none was. */
  readonly last_challenge_id?: string;
  /** Null: nobody has shown to have it. */
  readonly verified_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

interface DeletedFactor {
  readonly object: 'deleted_authentication_factor';
  readonly id: string;
}

export type AuthenticationFactorState = StoredFactor | DeletedFactor | null;

function evolve(state: AuthenticationFactorState, event: AuthenticationFactorEvent & { readonly at: string }): AuthenticationFactorState {
  if (event.type === 'authentication_factor.enrolled')
    return state ?? { object: 'authentication_factor', ...event.data, verified_at: null, created_at: event.at, updated_at: event.at };
  if (state?.object !== 'authentication_factor') return state;
  switch (event.type) {
    case 'authentication_factor.verified':
      return { ...state, verified_at: event.at, updated_at: event.at };
    case 'authentication_factor.challenged':
      return { ...state, last_challenge_id: event.data.challenge_id };
    case 'authentication_factor.deleted':
      return { object: 'deleted_authentication_factor', id: state.id };
    case 'authentication_factor.erased':
      return state;
  }
}

/** Of whom nobody knows whose factor it is, the factor itself is the holder. */
export function holderOfFactor({ id, user_id }: Pick<FactorEnrolled, 'id' | 'user_id'>): string {
  return user_id === null ? `authentication_factor.${id}` : holderOfUser(user_id);
}

const ofTemplate: Sealing<AuthenticationFactorState, Extract<AuthenticationFactorEvent, Fact<string, FactorChallenged>>> = {
  of: ({ data }) => holderOfFactor(data),
  fields: ['sms_template'],
};

const ofPerson: Sealing<AuthenticationFactorState, Extract<AuthenticationFactorEvent, Fact<string, FactorEnrolled>>> = {
  of: ({ data }) => holderOfFactor(data),
  fields: PERSONAL,
};

export const authenticationFactorDecider: Decider<AuthenticationFactorState, AuthenticationFactorEvent> = {
  category: 'authentication_factor',
  foldVersion: 1,
  initial: null,
  sealed: {
    'authentication_factor.enrolled': [ofPerson],
    'authentication_factor.verified': null,
    'authentication_factor.challenged': [ofTemplate],
    'authentication_factor.deleted': null,
    'authentication_factor.erased': null,
  },
  evolve,
  // The contract has no events of factors.
  toPublicEvent: () => null,
  hangsOn: {
    reaction: 'delete-authentication-factors-with-their-users',
    parents: [{ ends: 'user.deleted' satisfies UserEvent['type'], index: 'user', category: 'user', field: 'user_id' }],
    begins: ['authentication_factor.enrolled'],
    end: deleteFactor,
  },
};

type Decide = Decision<AuthenticationFactorState, AuthenticationFactorEvent>;

export function enrolFactor(factor: Omit<FactorEnrolled, 'id'>): Decide {
  return (state, context) => {
    const id = context.id('auth_factor');
    if (state === null) return [{ type: 'authentication_factor.enrolled', data: { id, ...factor } }];
    requireFactor(state, id);
    return [];
  };
}

/** Somebody has shown to have it. */
export function verifyFactor(id: string): Decide {
  return (state) => (requireFactor(state, id).verified_at === null ? [{ type: 'authentication_factor.verified', data: { id } }] : []);
}

/** A text with the code of this challenge is to be sent. */
export function challengeFactor(challenged: FactorChallenged): Decide {
  return (state) =>
    requireFactor(state, challenged.id).last_challenge_id === challenged.challenge_id ? [] : [{ type: 'authentication_factor.challenged', data: challenged }];
}

/** Nothing where it is gone already. */
export function deleteFactor(id: string): Decide {
  return (state) => {
    if (state?.object !== 'authentication_factor') return [];
    const erased: AuthenticationFactorEvent[] =
      state.user_id === null ? [{ type: 'authentication_factor.erased', data: { holders: [holderOfFactor(state)] } }] : [];
    return [{ type: 'authentication_factor.deleted', data: { id } }, ...erased];
  };
}

/** As `deleteFactor`, of one that was enrolled before this fact removed what its user had. */
export function deleteRemovedFactor(id: string, fact: LaterFact): Decide {
  return (state, context) => (state?.object === 'authentication_factor' && !isUnknownTo(enrolmentOf(state), fact) ? [] : deleteFactor(id)(state, context));
}

/** @throws DomainError `entity_not_found` where it never was or is no more */
export function requireFactor(state: AuthenticationFactorState, id: string): StoredFactor {
  if (state?.object !== 'authentication_factor') throw notFound('Authentication factor', id);
  return state;
}

/** Whether it was removed with the first proof of its user's address, which need not be recorded yet. */
export function isRemoved(factor: StoredFactor, { credentials_removed }: Pick<StoredUser, 'credentials_removed'>): boolean {
  return credentials_removed !== undefined && isUnknownTo(enrolmentOf(factor), credentials_removed);
}

function enrolmentOf({ created_at, credentials_version }: StoredFactor): Beginning {
  return { began_at: created_at, known_version: credentials_version };
}

/** Whether a code of the challenge works: of those that are sent, the last one alone. */
export function isLastChallenge({ type, last_challenge_id }: StoredFactor, challengeId: string): boolean {
  return type !== 'sms' || last_challenge_id === challengeId;
}

/** A sign-in that has begun, as far as it goes by the factors of its user. */
export interface BegunSignIn {
  /** ISO 8601. */
  readonly began_at: string;
  /** Those that counted when it began. Absent: it was recorded before they were kept, and goes by times. */
  readonly factor_ids?: readonly string[];
}

/**
 * Those that count for a sign-in: whoever had one that was verified when it began does not get in with one that came after, or a stolen password would enrol its own.
 * `begun`: null where it begins now.
 */
export function countingFactors(factors: readonly StoredFactor[], begun: BegunSignIn | null): readonly StoredFactor[] {
  const verified = factors.filter(({ verified_at }) => verified_at !== null);
  const before = begun === null ? verified : verified.filter((factor) => hasCountedFor(factor, begun));
  return before.length > 0 ? before : verified;
}

function hasCountedFor({ id, verified_at }: StoredFactor, { began_at, factor_ids }: BegunSignIn): boolean {
  return factor_ids === undefined ? verified_at! <= began_at : factor_ids.includes(id);
}

/** As the API shows it. */
export function toPublicFactor({ id, type, user_id, totp_issuer, totp_user, phone_number, created_at, updated_at }: StoredFactor): AuthenticationFactor {
  return {
    ...{ object: 'authentication_factor', id, type },
    ...(user_id !== null && { user_id }),
    ...(type === 'totp' && { totp: { issuer: totp_issuer ?? '', user: totp_user ?? '' } }),
    ...(type === 'sms' && { sms: { phone_number: phone_number ?? '' } }),
    ...{ created_at, updated_at },
  };
}
