import type { AuthenticationEvent } from '#libs/contracts/src/feed/authentication-event';
import type { Decider, Decision, Erasable, Fact, Sealing } from '#libs/event-sourcing/src/deciding/decider';
import type { Factor } from './session.decider.ts';
import { holderOfUser } from './user.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type AttemptEvent =
  | Fact<'authentication.password_failed', FailedAttempt>
  | Fact<'authentication.magic_auth_failed', FailedAttempt>
  | Fact<'authentication.email_verification_failed', FailedAttempt>
  | Fact<'authentication.mfa_failed', FailedAttempt>;

/** Somebody could not show who they are. What is personal is null once the person is erased. */
export type FailedAttempt = Erasable<
  {
    readonly id: string;
    /** Null where nobody has the address. */
    readonly user_id: string | null;
    readonly email: string;
    readonly ip_address: string | null;
    readonly user_agent: string | null;
    readonly error: { readonly code: string; readonly message: string };
    /** Whose it is where nobody has the address: see `AddressHolders`. Absent: the attempt is itself, or the user is. */
    readonly holder?: string;
  },
  'email'
>;

/** One stream for each, with one record: nothing follows from it. */
export type AttemptState = { readonly object: 'attempt'; readonly id: string } | null;

type Failed = AttemptEvent['type'];

const ofPerson: Sealing<AttemptState, AttemptEvent> = {
  of: ({ data }, { key }) => (data.user_id === null ? (data.holder ?? `attempt.${key}`) : holderOfUser(data.user_id)),
  fields: ['email', 'ip_address', 'user_agent'],
};

export const attemptDecider: Decider<AttemptState, AttemptEvent> = {
  category: 'attempt',
  foldVersion: 1,
  initial: null,
  sealed: {
    'authentication.password_failed': [ofPerson],
    'authentication.magic_auth_failed': [ofPerson],
    'authentication.email_verification_failed': [ofPerson],
    'authentication.mfa_failed': [ofPerson],
  },
  evolve: (state, { data }) => state ?? { object: 'attempt', id: data.id },
  toPublicEvent: ({ type, data: { id: _, holder: _holder, ...told } }) => {
    const payload: AuthenticationEvent = { type: factorOf(type), status: 'failed', ...told };
    return { payload, names: [type] };
  },
};

/** Recorded once. */
export function recordFailure(factor: Factor, attempt: FailedAttempt): Decision<AttemptState, AttemptEvent> {
  return (state) => (state === null ? [{ type: `authentication.${factor}_failed`, data: attempt }] : []);
}

function factorOf(type: Failed): Factor {
  return type.slice('authentication.'.length, -'_failed'.length) as Factor;
}
