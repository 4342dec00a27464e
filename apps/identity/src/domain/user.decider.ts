import type { PasswordReset } from '#libs/contracts/src/password-reset/password-reset';
import type { User } from '#libs/contracts/src/users/user';
import { changes, namesOf } from '#libs/event-sourcing/src/deciding/changes.decider';
import type { NewPublicEvent, Claim, Decider, Decision, Erasable, Fact, Folded, Sealing } from '#libs/event-sourcing/src/deciding/decider';
import type { Erasure } from '#libs/event-sourcing/src/erasure/erasing';
import { notFound, refusedField, type DomainError } from '#libs/platform/src/domain-error';
import { foldedText } from '#libs/platform/src/folded-text.decider';
import { isUnknownTo, type Beginning, type LaterFact } from './known-version.decider.ts';
import { mergedMetadata } from './metadata.decider.ts';
import type { StoredPassword } from './stored-password.ts';

// These types are the storage format: a stored name or shape is never edited.

export type UserEvent =
  | Fact<'user.created', UserCreated>
  | Fact<'user.updated', UserUpdated>
  | Fact<'user.password_set', Erasable<PasswordSet, 'password'>>
  /** Elsewhere something lies under another key that is of this person: it is erased with them. */
  | Fact<'user.data_linked', { readonly holder: string }>
  /** What lies under the keys of these holders is gone for ever: the keys go, and every view forgets what it has of them. A user who lived ends with it. */
  | Fact<'user.erased', Erasure>
  /** The password that stands before it was set by whoever reads the mail of the address: sessions that began before are over. */
  | Fact<'password_reset.succeeded', SucceededReset>
  | Fact<'user.deleted', { readonly id: string }>;

/** What reads as null once the user is erased. */
export const PERSONAL = ['email', 'first_name', 'last_name', 'name', 'profile_picture_url', 'external_id', 'metadata'] as const;
type Personal = (typeof PERSONAL)[number];

/** What callers may set beside the address, and what a user has who was not given it. A new field is a line here, and one more in `foldVersion`. */
const DEFAULTS = {
  email_verified: false,
  first_name: null,
  last_name: null,
  name: null,
  external_id: null,
  metadata: {},
} satisfies Partial<User>;

type Settable = Pick<User, 'email' | keyof typeof DEFAULTS>;

/** Lacks what was not a field yet. */
type UserCreated = Erasable<Pick<User, 'id' | 'email'> & Partial<Omit<Settable, 'email'>>, Personal>;

/** What changed, as it is from now on; nothing where only the password did. */
type UserUpdated = Erasable<Partial<Settable & Pick<User, 'locale'>>, Personal> & {
  /**
   * The address was proven by somebody who need not be whoever set the password: password, factors and sessions of before are removed. Names what it was proven by: the session
   * that begins with it, the command that confirmed it, or the reset. Absent: nothing was removed.
   */
  readonly credentials_removed_by?: string;
};

/** The only place that holds a password: no state does, so that no row can. */
export interface PasswordSet {
  readonly id: string;
  /** Tells one password from the next, without saying anything about it. */
  readonly password_id: string;
  readonly password: StoredPassword;
}

/** What the reset was as it was created: an event shows it. */
export type SucceededReset = Erasable<Omit<PasswordReset, 'object' | 'user_id'>, 'email'>;

/** The public resource, and what of the password may be known outside of the log. */
export interface StoredUser extends Erasable<User, Personal> {
  /** Null while there is no password. */
  readonly password_id: string | null;
  /** Whose keys seal what else is known of them. Absent: nobody's. */
  readonly holders?: readonly string[];
  /** Of these holders nothing is known any more. Absent: nobody was erased. */
  readonly erased?: readonly string[];
  /** The last reset of the password. Whatever let this person in before is over: sessions, and codes on their way. */
  readonly last_reset?: LaterFact & { readonly id: string };
  /** When the address was last proven by somebody else than whoever set the password, and by what: sessions of before, but for `by`, and factors of before are over. */
  readonly credentials_removed?: LaterFact & { readonly by: string };
}

export type UserState = StoredUser | DeletedUser | null;

/** Dead for every reader. */
interface DeletedUser {
  readonly object: 'deleted_user';
  readonly id: string;
  readonly holders?: readonly string[];
  readonly erased?: readonly string[];
}

/** What is left of a user between their erasure and the end that is recorded with it. */
const ERASED = {
  email: null,
  email_verified: false,
  first_name: null,
  last_name: null,
  name: null,
  profile_picture_url: null,
  external_id: null,
  metadata: null,
  last_sign_in_at: null,
  locale: null,
  password_id: null,
} satisfies Partial<StoredUser>;

function evolve(state: UserState, event: Folded<UserEvent>): UserState {
  if (event.type === 'user.created') return state ?? initialUser(event.data, event.at);
  if (event.type === 'user.data_linked') return state && { ...state, holders: [...(state.holders ?? []), event.data.holder] };
  if (event.type === 'user.erased')
    return state && { ...state, ...(state.object === 'user' && ERASED), erased: [...(state.erased ?? []), ...event.data.holders] };
  if (state?.object !== 'user') return state;
  switch (event.type) {
    case 'user.updated': {
      const { credentials_removed_by: by, ...fields } = event.data;
      const removed = by === undefined ? {} : { password_id: null, credentials_removed: { by, at: event.at, version: event.version } };
      return { ...state, ...fields, ...removed, updated_at: event.at };
    }
    case 'user.password_set':
      return { ...state, password_id: event.data.password_id };
    case 'password_reset.succeeded':
      return { ...state, last_reset: { id: event.data.id, at: event.at, version: event.version }, updated_at: event.at };
    case 'user.deleted':
      return { object: 'deleted_user', id: state.id, ...(state.holders && { holders: state.holders }), ...(state.erased && { erased: state.erased }) };
  }
}

function initialUser(fields: UserCreated, at: string): StoredUser {
  const unset = { profile_picture_url: null, last_sign_in_at: null, locale: null, password_id: null };
  return { object: 'user', ...DEFAULTS, ...fields, ...unset, created_at: at, updated_at: at };
}

/** The spelling in which addresses are the same. */
export function foldedEmail(email: string): string {
  return foldedText(email.trim());
}

/** Whether addresses were compared in another spelling before they were folded as they are now: who has such a one claimed only that. */
export function hadOtherFold(email: string): boolean {
  return formerFold(email) !== foldedEmail(email);
}

/** Whether mail to the one is read by whoever reads mail to the other: letters that only look alike are another mailbox. */
export function isSameMailbox(one: string, other: string): boolean {
  return formerFold(one.trim()) === formerFold(other.trim());
}

function formerFold(email: string): string {
  return email.normalize('NFC').toLowerCase();
}

function claims(state: UserState): readonly Claim[] {
  if (state?.object !== 'user') return [];
  const { email, external_id } = state;
  const held: Claim[] = [];
  if (email !== null) held.push(...emailClaims(email));
  if (external_id !== null)
    held.push({ kind: 'user.external_id', value: external_id, refusal: () => taken('external_id', 'external_id_already_used', external_id) });
  return held;
}

/** Both spellings, where there are two: older users hold the former one alone. */
function emailClaims(email: string): readonly Claim[] {
  const claim = { kind: 'user.email', refusal: () => emailTaken(email) };
  const folded: Claim = { ...claim, value: foldedEmail(email) };
  return hadOtherFold(email)
    ? [
        { ...folded, mayBeUnclaimed: true },
        { ...claim, value: formerFold(email) },
      ]
    : [folded];
}

/** A password is announced as a change of its user, and no event shows it. */
function toPublicEvent(event: UserEvent, before: UserState, after: UserState): NewPublicEvent | null {
  switch (event.type) {
    case 'user.created':
    case 'user.updated':
      return { payload: announced(after), names: [event.type] };
    case 'user.deleted':
      return { payload: announced(before), names: [event.type] };
    case 'password_reset.succeeded':
      return after?.object === 'user'
        ? { payload: { object: 'password_reset', ...event.data, user_id: after.id, email: event.data.email ?? '' }, names: [event.type] }
        : null;
    case 'user.password_set':
    case 'user.data_linked':
    case 'user.erased':
      return null;
  }
}

/** With null for what was erased: nothing can be sealed for whoever that was. It leaves as what the contract has instead. */
function announced(state: UserState): Erasable<User, Personal> | null {
  if (state?.object !== 'user') return null;
  return shownFields(state);
}

/** The contract knows no null where a key was given up. */
export function toPublicUser(stored: StoredUser): User {
  const { email, metadata, ...user } = shownFields(stored);
  return { ...user, email: email ?? '', metadata: metadata ?? {} };
}

function shownFields({ password_id: _, holders: _holders, erased: _erased, last_reset: _reset, credentials_removed: _removed, ...user }: StoredUser) {
  return user;
}

/** What a credential that is made, or shown, now knows of: the last fact of the user's stream that outdates those of before it. */
export function credentialsVersionOf({ last_reset, credentials_removed }: StoredUser): number {
  return Math.max(last_reset?.version ?? 0, credentials_removed?.version ?? 0);
}

/** Whether the password was reset since. */
export function isBeforeReset({ last_reset }: StoredUser, beginning: Beginning): boolean {
  return last_reset !== undefined && isUnknownTo(beginning, last_reset);
}

/**
 * What ended a sign-in or a session of this user, or null. What lets somebody in may be in the hands of whoever the password was reset against, or of whoever set it for an
 * address that is not theirs.
 */
export function outdatedBy(user: StoredUser, beginning: Beginning & { readonly id: string }): 'password_reset' | 'credentials_removed' | null {
  if (isBeforeReset(user, beginning)) return 'password_reset';
  const { credentials_removed: removed } = user;
  return removed !== undefined && removed.by !== beginning.id && isUnknownTo(beginning, removed) ? 'credentials_removed' : null;
}

/** The name that a user's key has: who holds what is known of them. */
export function holderOfUser(id: string): string {
  return `user.${id}`;
}

const ofUser: Sealing<UserState, UserEvent> = { of: (_fact, { key }) => holderOfUser(key), fields: PERSONAL };

export const userDecider: Decider<UserState, UserEvent> = {
  category: 'user',
  foldVersion: 2,
  initial: null,
  sealed: {
    'user.created': [ofUser],
    'user.updated': [ofUser],
    'user.password_set': [{ ...ofUser, fields: ['password'] }],
    'user.data_linked': null,
    'user.erased': null,
    'password_reset.succeeded': [ofUser],
    'user.deleted': [ofUser],
  },
  evolve,
  claims,
  toPublicEvent,
};

type Decide = Decision<UserState, UserEvent>;

/** Fields as a request gives them; absent: not given. */
interface UserChanges extends Partial<Omit<Settable, 'metadata'>>, Partial<Pick<User, 'locale'>> {
  /** As the caller sent it: what is neither text nor null is refused here. */
  readonly metadata?: Readonly<Record<string, unknown>> | null;
}

interface NewUser extends Omit<UserChanges, 'locale'> {
  readonly email: string;
}

/** `password`: null for none. */
export function createUser(given: NewUser, password: StoredPassword | null): Decide {
  return (state, context) => {
    const id = context.id('user');
    if (state !== null) return nothingMoreOf(state, id);
    const fields = { ...DEFAULTS, email: given.email, ...changedFields(DEFAULTS, given) };
    return [{ type: 'user.created', data: { id, ...fields } }, ...(password === null ? [] : [passwordSet(id, context.id('password'), password)])];
  };
}

/** `password`: null leaves the one that there is. */
export function updateUser(id: string, given: UserChanges, password: StoredPassword | null): Decide {
  return (state, context) => {
    const user = requireUser(state, id);
    const data = changedFields(user, confirmedOnce(user, given));
    const passwordId = context.id('password');
    const isNew = password !== null && user.password_id !== passwordId;
    if (!isNew && Object.keys(data).length === 0) return [];
    return [...(isNew ? [passwordSet(id, passwordId, password)] : []), { type: 'user.updated', data }];
  };
}

/** How it was shown that the mail of an address is read. */
export interface AddressProof {
  readonly email: string;
  /** The session that begins with it, or the command that confirms the address. */
  readonly by: string;
  /** Whether whoever shows it has shown the password as well. */
  readonly hasPassword: boolean;
}

/**
 * Whoever this is reads the mail of this address; nothing where it is no longer theirs, or was verified before. A password that they did not show may be that of somebody who
 * took the address before them, and waits for them: it goes, with all that was set before.
 */
export function verifyEmail(id: string, { email, by, hasPassword }: AddressProof): Decide {
  return (state) => {
    const user = requireUser(state, id);
    const isTheirs = user.email !== null && foldedEmail(user.email) === foldedEmail(email);
    if (!isTheirs || user.email_verified) return [];
    return [{ type: 'user.updated', data: { email_verified: true, ...(!hasPassword && { credentials_removed_by: by }) } }];
  };
}

/** The reset as it succeeds, and what it knew of the user's stream as it was created. */
type ConfirmedReset = SucceededReset & { readonly credentials_version?: number };

/**
 * Another password, set by whoever reads the mail of the address, which is verified by that.
 * @throws DomainError `entity_not_found` where the reset was used, another one came after it, or the address is another one by now
 */
export function resetPassword(id: string, { credentials_version: known_version, ...reset }: ConfirmedReset, password: StoredPassword): Decide {
  return (state, context) => {
    const user = requireUser(state, id);
    const password_id = context.id('password');
    if (user.last_reset?.id === reset.id) {
      if (user.password_id === password_id) return [];
      throw notFound('Password reset', reset.id);
    }
    const isTheirs = user.email !== null && reset.email !== null && foldedEmail(user.email) === foldedEmail(reset.email);
    if (!isTheirs || isBeforeReset(user, { began_at: reset.created_at, known_version })) throw notFound('Password reset', reset.id);
    const verified: UserUpdated = user.email_verified ? {} : { email_verified: true, credentials_removed_by: reset.id };
    return [{ type: 'user.updated', data: verified }, passwordSet(id, password_id, password), { type: 'password_reset.succeeded', data: reset }];
  };
}

/** Another hash of the same password: nobody is told. Nothing where there is another password by now. */
export function rehashPassword(id: string, password_id: string, password: StoredPassword): Decide {
  return (state, context) => (state?.object === 'user' && state.password_id === password_id ? [passwordSet(id, context.id('password'), password)] : []);
}

export function deleteUser(id: string): Decide {
  return (state) => {
    if (state?.object === 'deleted_user') return [];
    requireUser(state, id);
    return [{ type: 'user.deleted', data: { id } }];
  };
}

/** Recorded by whoever learns that something of this user lies under the key of another holder, such as an invitation that they accepted; also once the user is deleted, and erased at once where they were. */
export function linkData(id: string, holder: string): Decide {
  return (state) => {
    if (state === null) throw notFound('User', id);
    if (holder === holderOfUser(id) || state.holders?.includes(holder)) return [];
    return [{ type: 'user.data_linked', data: { holder } }, ...(state.erased === undefined ? [] : erasing([holder]))];
  };
}

/** Also of who is deleted already. What was erased once is not erased again. `others`: under which something lies that nobody has linked to the user. */
export function eraseUser(id: string, others: readonly string[] = []): Decide {
  return (state) => {
    if (state === null) throw notFound('User', id);
    const holders = [...new Set([holderOfUser(id), ...(state.holders ?? []), ...others])].filter((holder) => !state.erased?.includes(holder));
    return [...erasing(holders), ...(state.object === 'user' ? [{ type: 'user.deleted', data: { id } } as const] : [])];
  };
}

function erasing(holders: readonly string[]): readonly UserEvent[] {
  return holders.length === 0 ? [] : [{ type: 'user.erased', data: { holders } }];
}

/** @throws DomainError `entity_not_found` where it never was or is no more */
export function requireUser(state: UserState, id: string): StoredUser {
  if (state?.object !== 'user') throw notFound('User', id);
  return state;
}

/** A repeated command meets what it made; once that was deleted, it stays deleted. */
function nothingMoreOf(state: UserState, id: string): readonly UserEvent[] {
  requireUser(state, id);
  return [];
}

function passwordSet(id: string, password_id: string, password: StoredPassword): UserEvent {
  return { type: 'user.password_set', data: { id, password_id, password } };
}

/** Whoever reads the mail of the old address need not read that of the new one. */
function confirmedOnce(user: StoredUser, given: UserChanges): UserChanges {
  const isOther = given.email !== undefined && (user.email === null || foldedEmail(given.email) !== foldedEmail(user.email));
  return isOther ? { ...given, email_verified: given.email_verified ?? false } : given;
}

function changedFields(before: Erasable<Partial<User>, Personal>, given: UserChanges): UserUpdated {
  const metadata = given.metadata === undefined ? undefined : mergedMetadata(before.metadata ?? {}, given.metadata);
  return changes(before, { ...given, metadata }, ['email', ...namesOf(DEFAULTS), 'locale']);
}

export function emailTaken(email: string): DomainError {
  return taken('email', 'email_not_available', email);
}

function taken(field: 'email' | 'external_id', code: 'email_not_available' | 'external_id_already_used', value: string): DomainError {
  return refusedField('conflict', code, { field, message: `The ${field} '${value}' is already used.` });
}
