import type { DirectoryGroup } from '#libs/contracts/src/directories/directory-group';
import type { DirectoryUser, DirectoryUserEmail, EventDirectoryUser } from '#libs/contracts/src/directories/directory-user';
import type { DirectoryAttribute } from '#libs/contracts/src/directories/directory';
import type { Claim, Decider, Decision, Erasable, Fact, NewPublicEvent, Sealing } from '#libs/event-sourcing/src/deciding/decider';
import type { DirectoryEvent } from './directory.decider.ts';
import { noSuchResource, ScimError } from './scim-domain-error.ts';
import {
  foldedValue,
  isObject,
  isSameValue,
  previousOf,
  stepsOf,
  textOf,
  truthOf,
  valueOf,
  valuesAt,
  ENTERPRISE_SCHEMA,
  type Attributes,
} from './scim-values.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type DirectoryUserEvent =
  | Fact<'dsync.user.created', DirectoryUserCreated>
  | Fact<'dsync.user.updated', Erasable<DirectoryUserUpdated, Personal>>
  /** `is_erased`: since the user was whose person it is, so that nothing personal is told of the end. */
  | Fact<'dsync.user.deleted', Ended & { readonly active: boolean; readonly is_erased?: true }>
  /** Its directory is gone: nobody is told of each person. */
  | Fact<'directory_user.ended', Ended>
  /** What the group's own stream says already, told of the person: nothing follows it that came before the person's end. */
  | Fact<'dsync.group.user_added', ToldOfGroup>
  | Fact<'dsync.group.user_removed', ToldOfGroup>;

export interface ToldOfGroup {
  readonly directory_id: string;
  readonly group: DirectoryGroup;
  /** Of the group's stream: the change of members that this tells of. Nobody is told again of it, or of an earlier one. Absent: an earlier release told it. */
  readonly group_version?: number;
}

interface Ended {
  readonly id: string;
  readonly directory_id: string;
}

/** What reads as null once the person is erased. `attributes`: as SCIM has them, without a password. */
type Personal = 'attributes' | 'custom_attributes';

interface PersonalAttributes {
  readonly attributes: Attributes;
  readonly custom_attributes: Attributes;
}

type DirectoryUserCreated = Pick<DirectoryUser, 'id' | 'directory_id' | 'organization_id'> &
  Erasable<PersonalAttributes, Personal> & { readonly active: boolean };

interface DirectoryUserUpdated extends PersonalAttributes, Ended {
  readonly active: boolean;
  /** Whether it was so before: what is counted is counted by that. */
  readonly was_active: boolean;
}

export interface StoredDirectoryUser extends DirectoryUserCreated {
  readonly object: 'directory_user';
  /** Counts its changes: the version that SCIM shows. */
  readonly version: number;
  /** Groups that it was told of last that the person is in. */
  readonly told: readonly string[];
  readonly created_at: string;
  readonly updated_at: string;
}

interface EndedDirectoryUser extends Pick<DirectoryUser, 'id' | 'directory_id' | 'organization_id'> {
  readonly object: 'ended_directory_user';
}

export type DirectoryUserState = StoredDirectoryUser | EndedDirectoryUser | null;

function evolve(state: DirectoryUserState, event: DirectoryUserEvent & { readonly at: string }): DirectoryUserState {
  if (event.type === 'dsync.user.created')
    return state ?? { object: 'directory_user', ...event.data, version: 1, told: [], created_at: event.at, updated_at: event.at };
  if (state?.object !== 'directory_user') return state;
  switch (event.type) {
    case 'dsync.user.updated': {
      const { attributes, custom_attributes, active } = event.data;
      return { ...state, attributes, custom_attributes, active, version: state.version + 1, updated_at: event.at };
    }
    case 'dsync.user.deleted':
    case 'directory_user.ended':
      return { object: 'ended_directory_user', id: state.id, directory_id: state.directory_id, organization_id: state.organization_id };
    case 'dsync.group.user_added':
      return { ...state, told: [...state.told, event.data.group.id] };
    case 'dsync.group.user_removed':
      return { ...state, told: state.told.filter((id) => id !== event.data.group.id) };
  }
}

const HOLDER = 'directory_user.';

/** The name of the key that seals what is known of a person in a directory. */
export function holderOfDirectoryUser(id: string): string {
  return HOLDER + id;
}

/** The person whose key has this name. */
export function directoryUserOfHolder(holder: string): string | null {
  return holder.startsWith(HOLDER) ? holder.slice(HOLDER.length) : null;
}

export const PERSONAL = ['attributes', 'custom_attributes'] as const;
/** What of the public person is personal. */
const SHOWN = ['idp_id', 'email', 'first_name', 'last_name', 'name', 'emails', 'username', 'job_title', 'custom_attributes', 'raw_attributes'] as const;
const NOTHING_SHOWN = Object.fromEntries(SHOWN.map((field) => [field, null])) as Readonly<Record<(typeof SHOWN)[number], null>>;
const ofPerson: Sealing<DirectoryUserState, DirectoryUserEvent> = {
  of: (_fact, { key }) => holderOfDirectoryUser(key),
  fields: [...new Set([...PERSONAL, ...SHOWN]), 'previous_attributes'],
};
const ofMember: Sealing<DirectoryUserState, DirectoryUserEvent> = { ...ofPerson, fields: SHOWN.map((field) => `user.${field}`) };

function claims(state: DirectoryUserState): readonly Claim[] {
  if (state?.object !== 'directory_user' || state.attributes === null) return [];
  const refusal = (): ScimError => new ScimError(409, 'uniqueness', 'Another User of this directory has this userName.');
  return [{ kind: 'directory_user.user_name', value: `${state.directory_id} ${foldedValue(textOf(state.attributes['userName']) ?? '')}`, refusal }];
}

function toPublicEvent(event: DirectoryUserEvent, before: DirectoryUserState, after: DirectoryUserState): NewPublicEvent | null {
  const names = [event.type];
  switch (event.type) {
    case 'dsync.user.created':
      return { payload: announced(after), names };
    case 'dsync.user.updated': {
      const [earlier, later] = [announced(before), announced(after)];
      return earlier === null || later === null ? null : { payload: { ...later, previous_attributes: previousAttributes(earlier, later) }, names };
    }
    case 'dsync.user.deleted':
      return { payload: announced(event.data.is_erased === true && before?.object === 'directory_user' ? { ...before, attributes: null } : before), names };
    case 'dsync.group.user_added':
    case 'dsync.group.user_removed': {
      const user = announced(after);
      return user === null
        ? null
        : {
            payload: {
              directory_id: event.data.directory_id,
              user: { ...user, raw_attributes: user.raw_attributes === null ? null : {} },
              group: event.data.group,
            },
            names,
          };
    }
    case 'directory_user.ended':
      return null;
  }
}

function previousAttributes(before: NonNullable<ReturnType<typeof announced>>, after: NonNullable<ReturnType<typeof announced>>): Attributes {
  const { updated_at: _, ...earlier } = before;
  const { updated_at: __, ...later } = after;
  const { raw_attributes: ___, ...changed } = previousOf({ ...earlier }, { ...later });
  const raw = previousOf(before.raw_attributes ?? {}, after.raw_attributes ?? {});
  return Object.keys(raw).length === 0 ? changed : { ...changed, raw_attributes: raw };
}

/** With null for what was erased: nothing can be sealed for whoever that was. */
function announced(state: DirectoryUserState): Erasable<EventDirectoryUser, (typeof SHOWN)[number]> | null {
  if (state?.object !== 'directory_user') return null;
  const shown = toPublicUser(state, state.custom_attributes ?? {});
  return state.attributes === null ? { ...shown, ...NOTHING_SHOWN } : shown;
}

/** As the API shows it, but for the groups. */
export function toPublicUser(stored: StoredDirectoryUser, custom_attributes: Attributes): EventDirectoryUser {
  const { id, directory_id, organization_id, active, created_at, updated_at } = stored;
  const attributes = stored.attributes ?? {};
  const name = valueOf(attributes, 'name');
  const part = (field: string): string | null => (isObject(name) ? textOf(valueOf(name, field)) : null);
  return {
    object: 'directory_user',
    id,
    directory_id,
    organization_id,
    idp_id: idpIdOf(stored),
    email: emailOf(attributes),
    first_name: part('givenName'),
    last_name: part('familyName'),
    name: textOf(attributes['displayName']) ?? part('formatted'),
    emails: emailsOf(attributes),
    username: textOf(attributes['userName']),
    job_title: textOf(attributes['title']),
    state: active ? 'active' : 'inactive',
    custom_attributes,
    raw_attributes: attributes,
    created_at,
    updated_at,
  };
}

export function idpIdOf({ id, attributes }: Pick<StoredDirectoryUser, 'id' | 'attributes'>): string {
  return textOf(attributes?.['externalId']) ?? id;
}

export function emailsOf(attributes: Attributes): readonly DirectoryUserEmail[] {
  const { emails } = attributes;
  if (!Array.isArray(emails)) return [];
  return emails.filter(isObject).map((email) => ({
    primary: truthOf(valueOf(email, 'primary')) ?? false,
    type: textOf(valueOf(email, 'type')),
    value: textOf(valueOf(email, 'value')),
  }));
}

const ADDRESS = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;

export function emailOf(attributes: Attributes): string | null {
  const emails = emailsOf(attributes).filter(({ value }) => value !== null);
  const found = emails.find(({ primary }) => primary) ?? emails.find(({ type }) => type?.toLowerCase() === 'work') ?? emails[0];
  if (found !== undefined) return found.value;
  const userName = textOf(attributes['userName']);
  return userName !== null && ADDRESS.test(userName) ? userName : null;
}

/** Where custom attributes come from, unless the settings of the directory say otherwise. */
export const DEFAULT_ATTRIBUTES: readonly DirectoryAttribute[] = [
  { name: 'job_title', source: 'title' },
  { name: 'department', source: `${ENTERPRISE_SCHEMA}:department` },
  { name: 'division', source: `${ENTERPRISE_SCHEMA}:division` },
  { name: 'organization', source: `${ENTERPRISE_SCHEMA}:organization` },
  { name: 'cost_center', source: `${ENTERPRISE_SCHEMA}:costCenter` },
  { name: 'employee_number', source: `${ENTERPRISE_SCHEMA}:employeeNumber` },
  { name: 'manager_id', source: `${ENTERPRISE_SCHEMA}:manager.value` },
];

/** What the settings of a directory pick from what is known of a person; what is not there is left out. */
export function customAttributesOf(attributes: Attributes | null, mapping: readonly DirectoryAttribute[]): Attributes {
  const picked = sourcesOf(mapping).flatMap(({ name, steps }) => {
    const [value] = valuesAt(attributes ?? {}, steps);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(picked);
}

interface Source {
  readonly name: string;
  readonly steps: readonly string[];
}

/** The settings of a directory are the same object for all who come while nobody changes them. */
const knownSources = new WeakMap<readonly DirectoryAttribute[], readonly Source[]>();

function sourcesOf(mapping: readonly DirectoryAttribute[]): readonly Source[] {
  let sources = knownSources.get(mapping);
  if (sources === undefined) knownSources.set(mapping, (sources = mapping.map(({ name, source }) => ({ name, steps: stepsOf(source) }))));
  return sources;
}

export const directoryUserDecider: Decider<DirectoryUserState, DirectoryUserEvent> = {
  category: 'directory_user',
  foldVersion: 1,
  initial: null,
  sealed: {
    'dsync.user.created': [ofPerson],
    'dsync.user.updated': [ofPerson],
    'dsync.user.deleted': [ofPerson],
    'directory_user.ended': null,
    'dsync.group.user_added': [ofMember],
    'dsync.group.user_removed': [ofMember],
  },
  evolve,
  claims,
  organization: (state) => state?.organization_id,
  toPublicEvent,
  hangsOn: {
    reaction: 'end-directory-users-with-their-directory',
    parents: [{ ends: 'dsync.deleted' satisfies DirectoryEvent['type'], index: 'directory', category: 'directory', field: 'directory_id' }],
    begins: ['dsync.user.created'],
    end: recordEnd,
  },
};

type Decide = Decision<DirectoryUserState, DirectoryUserEvent>;

/** The directory that a person comes into, as far as it matters to them. */
export interface DirectoryOfUser {
  readonly id: string;
  readonly organization_id: string;
  readonly attributes: readonly DirectoryAttribute[];
}

/** What a provider expects to change: the versions that it names, or `*`. Absent: whatever is there. */
export type ExpectedVersion = readonly string[] | undefined;

export function createDirectoryUser(directory: DirectoryOfUser, attributes: Attributes): Decide {
  return (state, context) => {
    const id = context.id('directory_user');
    if (state === null)
      return [
        { type: 'dsync.user.created', data: { id, directory_id: directory.id, organization_id: directory.organization_id, ...folded(directory, attributes) } },
      ];
    // A repeated command meets what it made; once that was deleted, it stays deleted.
    requireScimUser(state);
    return [];
  };
}

/** `change` makes the attributes from those that there are; @throws ScimError where it refuses, or another version is there than was expected. */
export function changeDirectoryUser(directory: DirectoryOfUser, expected: ExpectedVersion, change: (attributes: Attributes) => Attributes): Decide {
  return (state) => {
    const user = requireScimUser(state);
    requireVersion(user, expected);
    const before = user.attributes ?? {};
    const data = folded(directory, change(before));
    if (isSameValue(data.attributes, before)) return [];
    return [{ type: 'dsync.user.updated', data: { id: user.id, directory_id: directory.id, was_active: user.active, ...data } }];
  };
}

function folded({ attributes: mapping }: DirectoryOfUser, attributes: Attributes) {
  return { active: truthOf(attributes['active']) ?? true, attributes, custom_attributes: customAttributesOf(attributes, mapping) };
}

/** Nothing where it is gone. @throws ScimError where it never was, or another version is there than was expected */
export function deleteDirectoryUser(expected: ExpectedVersion): Decide {
  return (state) => {
    if (state?.object === 'ended_directory_user') return [];
    const user = requireScimUser(state);
    requireVersion(user, expected);
    return [{ type: 'dsync.user.deleted', data: { id: user.id, directory_id: user.directory_id, active: user.active } }];
  };
}

/** The end of a person whose user was erased: the product may make another. Nothing where it is gone. */
export function eraseDirectoryUser(): Decide {
  return (state) =>
    state?.object === 'directory_user'
      ? [{ type: 'dsync.user.deleted', data: { id: state.id, directory_id: state.directory_id, active: state.active, is_erased: true } }]
      : [];
}

/** What follows where its directory is gone. */
function recordEnd(id: string): Decide {
  return (state) => (state?.object === 'directory_user' ? [{ type: 'directory_user.ended', data: { id, directory_id: state.directory_id } }] : []);
}

/** That a person joined a group, or left it. */
export interface GroupNews extends Pick<ToldOfGroup, 'group'> {
  readonly isMember: boolean;
  readonly group_version: number;
}

/** Tells of groups that the person joined or left, in this order; nothing where that was told, or the person is gone. */
export function tellOfGroups(news: readonly GroupNews[]): Decide {
  return (state) => {
    if (state?.object !== 'directory_user') return [];
    const told = new Set(state.told);
    return news.flatMap(({ group, isMember, group_version }) => {
      if (told.has(group.id) === isMember) return [];
      if (isMember) told.add(group.id);
      else told.delete(group.id);
      return [
        { type: isMember ? 'dsync.group.user_added' : 'dsync.group.user_removed', data: { directory_id: state.directory_id, group, group_version } } as const,
      ];
    });
  };
}

/** @throws ScimError where it never was or is no more, or was erased */
export function requireScimUser(state: DirectoryUserState): StoredDirectoryUser {
  if (state?.object !== 'directory_user' || state.attributes === null) throw noSuchResource('User');
  return state;
}

/** @throws ScimError `412` */
export function requireVersion({ version }: { readonly version: number }, expected: ExpectedVersion): void {
  if (expected === undefined || expected.includes('*') || expected.includes(String(version))) return;
  throw new ScimError(412, null, 'The resource has changed: it has another version than If-Match names.');
}
