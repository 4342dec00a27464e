import { ScimError } from './scim-domain-error.ts';
import { keptAttributes } from './scim-resource.decider.ts';
import { ENTERPRISE_SCHEMA, isObject, type Attributes } from './scim-values.decider.ts';

/** A person as a listing has them. */
export interface ListedUser {
  readonly type: 'user';
  /** What the product knows the person by. */
  readonly key: string;
  readonly attributes: Attributes;
  /** Names of groups, where the listing says them with the person. */
  readonly groups: readonly string[];
}

/** A group as a listing has it. */
export interface ListedGroup {
  readonly type: 'group';
  readonly key: string;
  readonly attributes: Attributes;
  /** Keys of its people. */
  readonly members: readonly string[];
}

/** What is wrong with a line of a listing; its words hold nothing that the line says. */
export class ListingFault extends Error {
  constructor(
    readonly code: 'invalid_json' | 'invalid_csv' | 'invalid_columns' | 'invalid_utf8' | 'invalid_entry' | 'line_too_long',
    message: string,
  ) {
    super(message);
  }
}

const STATES: ReadonlySet<unknown> = new Set(['active', 'inactive', 'suspended']);
const MAX_KEY = 255;
const MAX_USER = 32 * 1024;
const MAX_MEMBERS = 100_000;
const MAX_GROUPS = 500;
/** What stands elsewhere in SCIM: the names that the default `custom_attributes` have. */
const PLACES: ReadonlyMap<string, { readonly schema: string | null; readonly name: string }> = new Map([
  ['job_title', { schema: null, name: 'title' }],
  ['department', { schema: ENTERPRISE_SCHEMA, name: 'department' }],
  ['division', { schema: ENTERPRISE_SCHEMA, name: 'division' }],
  ['organization', { schema: ENTERPRISE_SCHEMA, name: 'organization' }],
  ['cost_center', { schema: ENTERPRISE_SCHEMA, name: 'costCenter' }],
  ['employee_number', { schema: ENTERPRISE_SCHEMA, name: 'employeeNumber' }],
  ['manager_id', { schema: ENTERPRISE_SCHEMA, name: 'manager' }],
]);
/** What is said by names of the listing's own. */
const OWN: ReadonlySet<string> = new Set(['schemas', 'meta', 'members', 'password', 'active', 'username', 'externalid', 'emails', 'displayname']);
/** Those names in another spelling: whoever is inactive would be active for a `State`. */
const OF_USER: ReadonlySet<string> = new Set([...OWN, 'id', 'email', 'first_name', 'last_name', 'name', 'state', 'groups']);

/** A line of JSON. @throws ListingFault */
export function entryOfJson(value: unknown): ListedUser | ListedGroup {
  if (!isObject(value)) throw fault('A line is an object.');
  const { type, ...fields } = value;
  if (type === 'user' && 'groups' in fields) throw fault('Groups are lines of their own, which name their members.');
  if (type === 'user') return userOf(fields);
  if (type === 'group') return groupOf(fields);
  throw fault('The type of a line is user or group.');
}

/** @throws ListingFault */
export function userOf({ id, email, username, first_name, last_name, name, state = 'active', groups = [], ...others }: Attributes): ListedUser {
  const key = keyOf(id);
  const texts = { email, username, first_name, last_name, name };
  for (const [field, value] of Object.entries(texts)) if (!isTextOrAbsent(value)) throw fault(`${field} is a text.`);
  if (!STATES.has(state ?? 'active')) throw fault('state is active, inactive or suspended.');
  if (!Array.isArray(groups) || groups.length > MAX_GROUPS || !groups.every((group) => typeof group === 'string' && group !== '' && group.length <= MAX_KEY))
    throw fault(`groups are at most ${MAX_GROUPS} names.`);
  const said = others[ENTERPRISE_SCHEMA] ?? {};
  if (!isObject(said)) throw fault('The attributes of a schema are an object.');
  const extension: Record<string, unknown> = { ...said };
  const top: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(others)) {
    if (OF_USER.has(field.toLowerCase())) throw fault('An attribute has a name that is said otherwise in a listing.');
    const place = PLACES.get(field);
    if (place !== undefined && place.schema !== null) extension[place.name] = value;
    else top[place?.name ?? field] = value;
  }
  const attributes = kept('User', {
    ...top,
    externalId: key,
    userName: textOr(username) ?? textOr(email) ?? key,
    ...(textOr(name) !== null && { displayName: name }),
    name: { givenName: textOr(first_name), familyName: textOr(last_name) },
    emails: textOr(email) === null ? [] : [{ value: email, type: 'work', primary: true }],
    active: (state ?? 'active') === 'active',
    [ENTERPRISE_SCHEMA]: extension,
  });
  if (JSON.stringify(attributes).length > MAX_USER) throw fault('A person has at most 32 KiB.');
  return { type: 'user', key, attributes, groups: [...new Set(groups as readonly string[])] };
}

function groupOf({ id, name, members = [], ...others }: Attributes): ListedGroup {
  const key = keyOf(id);
  if (!Array.isArray(members) || members.length > MAX_MEMBERS || !members.every((member) => typeof member === 'string'))
    throw fault(`members are at most ${MAX_MEMBERS} ids of people.`);
  for (const field of Object.keys(others)) if (OWN.has(field.toLowerCase())) throw fault('An attribute has a name that is said otherwise in a listing.');
  return { type: 'group', key, attributes: groupAttributes(key, name, others), members: [...new Set(members as readonly string[])] };
}

/** A group that people name. */
export function groupNamed(name: string): ListedGroup {
  return { type: 'group', key: name, attributes: groupAttributes(name, name, {}), members: [] };
}

function groupAttributes(key: string, name: unknown, others: Attributes): Attributes {
  const attributes = kept('Group', { ...others, externalId: key, displayName: name });
  if (JSON.stringify(attributes).length > MAX_USER) throw fault('A group has at most 32 KiB beside its members.');
  return attributes;
}

function kept(kind: 'User' | 'Group', sent: Attributes): Attributes {
  try {
    return keptAttributes(kind, sent);
  } catch (error) {
    if (error instanceof ScimError) throw fault(error.message);
    throw error;
  }
}

function keyOf(id: unknown): string {
  if (typeof id !== 'string' || id.trim() === '' || id.length > MAX_KEY) throw fault(`id is a text of 1 to ${MAX_KEY} characters.`);
  return id;
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string';
}

function textOr(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null;
}

function fault(message: string): ListingFault {
  return new ListingFault('invalid_entry', message);
}
