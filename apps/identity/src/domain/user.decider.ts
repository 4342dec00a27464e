import type { User } from '#libs/contracts/src/users/user';
import { changes, namesOf } from '#libs/event-sourcing/src/deciding/changes.decider';
import type { Announcement, Claim, Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { notFound, refusedField, type DomainError } from '#libs/platform/src/domain-error';
import { foldedText } from './folded-text.decider.ts';
import { mergedMetadata } from './metadata.decider.ts';
import type { StoredPassword } from './stored-password.ts';

// These types are the storage format: a stored name or shape is never edited.

export type UserEvent =
  | Fact<'user.created', UserCreated>
  | Fact<'user.updated', UserUpdated>
  | Fact<'user.password_set', PasswordSet>
  | Fact<'user.deleted', { readonly id: string }>;

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
interface UserCreated extends Pick<User, 'id' | 'email'>, Partial<Omit<Settable, 'email'>> {}

/** What changed, as it is from now on; nothing where only the password did. */
interface UserUpdated extends Partial<Settable>, Partial<Pick<User, 'locale'>> {}

/** The only place that holds a password: no state does, so that no row can. */
export interface PasswordSet {
  readonly id: string;
  /** Tells one password from the next, without saying anything about it. */
  readonly password_id: string;
  readonly password: StoredPassword;
}

/** The public resource, and what of the password may be known outside of the log. */
export interface StoredUser extends User {
  /** Null while there is no password. */
  readonly password_id: string | null;
}

export type UserState = StoredUser | DeletedUser | null;

/** Dead for every reader. */
interface DeletedUser {
  readonly object: 'deleted_user';
  readonly id: string;
}

function evolve(state: UserState, event: UserEvent & { readonly at: string }): UserState {
  if (event.type === 'user.created') return state ?? initialUser(event.data, event.at);
  if (state?.object !== 'user') return state;
  switch (event.type) {
    case 'user.updated':
      return { ...state, ...event.data, updated_at: event.at };
    case 'user.password_set':
      return { ...state, password_id: event.data.password_id };
    case 'user.deleted':
      return { object: 'deleted_user', id: state.id };
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

function formerFold(email: string): string {
  return email.normalize('NFC').toLowerCase();
}

function claims(state: UserState): readonly Claim[] {
  if (state?.object !== 'user') return [];
  // Null of a person who was erased.
  const { email, external_id }: { readonly email: string | null; readonly external_id: string | null } = state;
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
function announce(event: UserEvent, before: UserState, after: UserState): Announcement | null {
  switch (event.type) {
    case 'user.created':
    case 'user.updated':
      return { subject: toPublicUser(after), names: [event.type] };
    case 'user.deleted':
      return { subject: toPublicUser(before), names: [event.type] };
    case 'user.password_set':
      return null;
  }
}

function toPublicUser(state: UserState): User | null {
  if (state?.object !== 'user') return null;
  const { password_id: _, ...user } = state;
  return user;
}

export const userDecider: Decider<UserState, UserEvent> = { category: 'user', foldVersion: 1, initial: null, evolve, claims, announce };

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

export function deleteUser(id: string): Decide {
  return (state) => {
    if (state?.object === 'deleted_user') return [];
    requireUser(state, id);
    return [{ type: 'user.deleted', data: { id } }];
  };
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
  const isOther = given.email !== undefined && foldedEmail(given.email) !== foldedEmail(user.email);
  return isOther ? { ...given, email_verified: given.email_verified ?? false } : given;
}

function changedFields(before: Partial<User>, given: UserChanges): UserUpdated {
  const metadata = given.metadata === undefined ? undefined : mergedMetadata(before.metadata ?? {}, given.metadata);
  return changes(before, { ...given, metadata }, ['email', ...namesOf(DEFAULTS), 'locale']);
}

export function emailTaken(email: string): DomainError {
  return taken('email', 'email_not_available', email);
}

function taken(field: 'email' | 'external_id', code: 'email_not_available' | 'external_id_already_used', value: string): DomainError {
  return refusedField('conflict', code, { field, message: `The ${field} '${value}' is already used.` });
}
