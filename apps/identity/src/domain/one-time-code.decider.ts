import type { RadarChallengeCreated } from '#libs/contracts/src/feed/radar-events';
import type { Decider, Decision, Erasable, Fact, NewPublicEvent } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { ASKED_AGAIN_WITHIN_MS } from './lost-answer.decider.ts';
import { foldedEmail, holderOfUser, isBeforeReset, type StoredUser, type UserEvent } from './user.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

/** What is sent to an address. The code itself is derived, and stands nowhere. */
export type OneTimeCodeKind = 'magic_auth' | 'email_verification' | 'password_reset' | 'radar_challenge';
/** As the events of a kind are called. */
type Named<Kind extends string, What extends string> = Kind extends 'radar_challenge' ? `radar.challenge_${What}` : `${Kind}.${What}`;
export type CodeCreatedType<Kind extends OneTimeCodeKind = OneTimeCodeKind> = Named<Kind, 'created'>;
/** Of these the stream says whether they were used; of a password reset, its user's does. */
export type RedeemableKind = Exclude<OneTimeCodeKind, 'password_reset'>;

export type OneTimeCodeEvent<Kind extends OneTimeCodeKind> =
  | Fact<Named<Kind, 'created'>, OneTimeCodeCreated>
  /** Its user was deleted. */
  | Fact<Named<Kind, 'removed'>, { readonly id: string }>
  | (Kind extends RedeemableKind ? Fact<Named<Kind, 'redeemed'>, { readonly id: string; readonly redeemed_by: string }> : never);

type OneTimeCodeCreated = Erasable<
  {
    readonly id: string;
    readonly user_id: string;
    readonly email: string;
    readonly expires_at: string;
    /** What it knew of its user's stream (`credentialsVersionOf`): a reset of the password that came after that voids it. Absent in older records. */
    readonly credentials_version?: number;
  },
  'email'
>;

/** One stream per user and kind: the code that was created last is the one that works. */
export type OneTimeCodeState<Kind extends OneTimeCodeKind = OneTimeCodeKind> = StoredCode<Kind> | RemovedCode | null;

export interface StoredCode<Kind extends OneTimeCodeKind = OneTimeCodeKind> extends OneTimeCodeCreated {
  readonly object: Kind;
  readonly created_at: string;
  readonly updated_at: string;
  readonly redemption: Redemption | null;
}

/** `by`: the session that began with it, or the command that verified an address by it. */
interface Redemption {
  readonly by: string;
  readonly at: string;
}

interface RemovedCode {
  readonly object: 'removed_code';
  readonly id: string;
}

type AnyEvent = OneTimeCodeEvent<RedeemableKind>;

/** What the kinds have in common is all but their names, and what events show of them. */
function oneTimeCodeDecider<Kind extends OneTimeCodeKind>(
  kind: Kind,
  shown: (code: StoredCode<Kind>) => unknown,
): Decider<OneTimeCodeState<Kind>, OneTimeCodeEvent<Kind>> {
  const created = typeOf(kind, 'created');
  const sealing = { of: (_fact: unknown, { key }: { readonly key: string }) => holderOfUser(key), fields: ['email'] };
  const decider: Decider<OneTimeCodeState<Kind>, Fact<AnyEvent['type']>> = {
    category: kind,
    foldVersion: 1,
    initial: null,
    evolve: (state, fact) => {
      const { type, data, at } = fact as AnyEvent & { readonly at: string };
      if (type === created) return { object: kind, ...data, created_at: at, updated_at: at, redemption: null };
      if (state?.object !== kind || state.id !== data.id) return state;
      return 'redeemed_by' in data ? { ...state, updated_at: at, redemption: { by: data.redeemed_by, at } } : { object: 'removed_code', id: data.id };
    },
    toPublicEvent: ({ type }, _before, after): NewPublicEvent | null => (type === created ? { payload: shown(codeOf(after)!), names: [type] } : null),
    sealed: { [created]: [sealing], [typeOf(kind, 'removed')]: null, ...(kind !== 'password_reset' && { [typeOf(kind, 'redeemed')]: null }) } as never,
    hangsOn: {
      reaction: 'remove-codes-with-their-users',
      parents: [{ ends: 'user.deleted' satisfies UserEvent['type'], category: 'user', field: 'user_id' }],
      begins: [created as AnyEvent['type']],
      end: () => removeCode(kind) as Decision<OneTimeCodeState<Kind>, Fact<AnyEvent['type']>>,
    },
  };
  return decider as unknown as Decider<OneTimeCodeState<Kind>, OneTimeCodeEvent<Kind>>;
}

export const magicAuthDecider = oneTimeCodeDecider('magic_auth', shownCode);
export const emailVerificationDecider = oneTimeCodeDecider('email_verification', shownCode);
export const radarChallengeDecider = oneTimeCodeDecider('radar_challenge', ({ id, user_id, email }): RadarChallengeCreated => ({
  type: 'email',
  radar_challenge_id: id,
  user_id,
  email: email ?? '',
}));
export const passwordResetDecider = oneTimeCodeDecider('password_reset', (code) => shownReset(code));

/** As the API shows it, but for the code. */
export function shownCode<Kind extends OneTimeCodeKind>({
  redemption: _,
  credentials_version: _known,
  email,
  ...code
}: StoredCode<Kind>): Omit<StoredCode<Kind>, 'redemption' | 'credentials_version' | 'email'> & { readonly email: string } {
  return { ...code, email: email ?? '' };
}

export function shownReset(code: StoredCode<'password_reset'>) {
  const { updated_at: _, ...shown } = shownCode(code);
  return shown;
}

interface NewCode {
  readonly user_id: string;
  readonly email: string;
  readonly credentials_version: number;
  /** Milliseconds. */
  readonly lifetime: number;
}

export function createCode<Kind extends OneTimeCodeKind>(kind: Kind, { lifetime, ...code }: NewCode): Decision<OneTimeCodeState<Kind>, OneTimeCodeEvent<Kind>> {
  return (state, context) => {
    const id = context.id(kind);
    if (state?.id === id) {
      if (state.object === 'removed_code') throw notFound('User', code.user_id);
      return [];
    }
    const expires_at = new Date(Date.parse(context.now) + lifetime).toISOString();
    return [{ type: typeOf(kind, 'created'), data: { id, ...code, expires_at } }] as unknown as OneTimeCodeEvent<Kind>[];
  };
}

/**
 * Spends a code that was found to be the right one. The same redeemer may ask again for a while, and gets nothing that it has not.
 * @throws DomainError `invalid_one_time_code` where another code has taken its place, `one_time_code_previously_used`, `one_time_code_expired`
 */
export function redeemCode<Kind extends RedeemableKind>(kind: Kind, id: string, redeemed_by: string): Decision<OneTimeCodeState<Kind>, OneTimeCodeEvent<Kind>> {
  return (state, { now }) => {
    const code = codeOf(state);
    if (code?.id !== id) throw invalidCode();
    const { redemption, expires_at } = code;
    if (redemption !== null) {
      if (redemption.by === redeemed_by && Date.parse(now) - Date.parse(redemption.at) <= ASKED_AGAIN_WITHIN_MS) return [];
      throw new DomainError('conflict', 'one_time_code_previously_used', 'The code was used already.');
    }
    if (expires_at <= now) throw new DomainError('conflict', 'one_time_code_expired', 'The code has expired.');
    return [{ type: typeOf(kind, 'redeemed'), data: { id, redeemed_by } }] as unknown as OneTimeCodeEvent<Kind>[];
  };
}

function removeCode(kind: OneTimeCodeKind): Decision<OneTimeCodeState, Fact> {
  return (state) => (state?.object === kind ? [{ type: typeOf(kind, 'removed'), data: { id: state.id } }] : []);
}

function typeOf<What extends string>(kind: OneTimeCodeKind, what: What): Named<OneTimeCodeKind, What> {
  return kind === 'radar_challenge' ? `radar.challenge_${what}` : `${kind}.${what}`;
}

/** The code that is there, or null. */
export function codeOf<Kind extends OneTimeCodeKind>(state: OneTimeCodeState<Kind>): StoredCode<Kind> | null {
  return state === null || state.object === 'removed_code' ? null : (state as StoredCode<Kind>);
}

/** Whether it is still of use: neither another address nor a reset of the password came after it. */
export function isOfUser({ email, created_at, credentials_version }: StoredCode, user: StoredUser): boolean {
  if (email === null || user.email === null || foldedEmail(email) !== foldedEmail(user.email)) return false;
  return !isBeforeReset(user, { began_at: created_at, known_version: credentials_version });
}

/** A wrong code, and one for nobody. */
export function invalidCode(): DomainError {
  return new DomainError('invalid', 'invalid_one_time_code', 'This is not the code that was sent last.');
}

export function tooManyTries(): DomainError {
  return new DomainError('limited', 'one_time_code_too_many_attempts', 'Too many codes were tried.');
}
