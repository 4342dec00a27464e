import type { AuthenticationEvent } from '#libs/contracts/src/feed/authentication-event';
import type { RadarRiskDetected } from '#libs/contracts/src/feed/radar-events';
import type { Decider, Decision, Erasable, Fact, Sealing } from '#libs/event-sourcing/src/deciding/decider';
import type { Factor } from './session.decider.ts';
import { holderOfUser } from './user.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type AttemptEvent =
  | Fact<'authentication.password_failed', FailedAttempt>
  | Fact<'authentication.magic_auth_failed', FailedAttempt>
  | Fact<'authentication.email_verification_failed', FailedAttempt>
  | Fact<'authentication.mfa_failed', FailedAttempt>
  /** Something spoke against a sign-in of a user. */
  | Fact<'authentication.radar_risk_detected', DetectedRisk>;

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

/** What was found that weighs most. What is personal is null once the person is erased. */
export interface DetectedRisk extends RadarRiskDetected {
  readonly id: string;
}

/** One stream for each, with one record: nothing follows from it. */
export type AttemptState = { readonly object: 'attempt'; readonly id: string } | null;

type Failed = Exclude<AttemptEvent['type'], 'authentication.radar_risk_detected'>;

const ofPerson: Sealing<AttemptState, Fact<Failed, FailedAttempt>> = {
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
    'authentication.radar_risk_detected': [{ of: ({ data }) => holderOfUser(data.user_id), fields: ['email', 'ip_address', 'user_agent'] }],
  },
  evolve: (state, { data }) => state ?? { object: 'attempt', id: data.id },
  toPublicEvent: (event) => {
    if (event.type === 'authentication.radar_risk_detected') {
      const { id: _, ...payload } = event.data;
      return { payload, names: [event.type] };
    }
    const { id: _, holder: _holder, ...told } = event.data;
    const payload: AuthenticationEvent = { type: factorOf(event.type), status: 'failed', ...told };
    return { payload, names: [event.type] };
  },
};

/** Recorded once. */
export function recordFailure(factor: Factor, attempt: FailedAttempt): Decision<AttemptState, AttemptEvent> {
  return (state) => (state === null ? [{ type: `authentication.${factor}_failed`, data: attempt }] : []);
}

/** Recorded once. */
export function recordRisk(risk: DetectedRisk): Decision<AttemptState, AttemptEvent> {
  return (state) => (state === null ? [{ type: 'authentication.radar_risk_detected', data: risk }] : []);
}

function factorOf(type: Failed): Factor {
  return type.slice('authentication.'.length, -'_failed'.length) as Factor;
}
