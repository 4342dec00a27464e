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
const NO_GROUPS: readonly string[] = [];
const TEXTS = ['email', 'username', 'first_name', 'last_name', 'name'] as const;
/** What a line says of a person by names of the listing's own. */
const FIELDS: ReadonlySet<string> = new Set([...TEXTS, 'id', 'state', 'groups', ENTERPRISE_SCHEMA]);
/** What is said by names of the listing's own. */
const OWN: ReadonlySet<string> = new Set(['schemas', 'meta', 'members', 'password', 'active', 'username', 'externalid', 'emails', 'displayname']);
/** Those names in another spelling: whoever is inactive would be active for a `State`. */
const OF_USER: ReadonlySet<string> = new Set([...OWN, 'id', 'email', 'first_name', 'last_name', 'name', 'state', 'groups']);

/** A line of JSON. @throws ListingFault */
export function entryOfJson(value: unknown): ListedUser | ListedGroup {
  if (!isObject(value)) throw fault('A line is an object.');
  const { type } = value;
  if (type === 'user' && 'groups' in value) throw fault('Groups are lines of their own, which name their members.');
  if (type === 'user') return userOf(value, 'type');
  if (type === 'group') return groupOf(value);
  throw fault('The type of a line is user or group.');
}

/** `kind`: the field that says what the line is, where there is one. @throws ListingFault */
export function userOf(line: Attributes, kind: string | null = null): ListedUser {
  // Nothing is copied with what is left of it: of a million such objects, most of the memory would be theirs.
  const { id, email, username, first_name, last_name, name, state = 'active', groups = [] } = line;
  const key = keyOf(id);
  for (const field of TEXTS) if (!isTextOrAbsent(line[field])) throw fault(`${field} is a text.`);
  if (!STATES.has(state ?? 'active')) throw fault('state is active, inactive or suspended.');
  if (!Array.isArray(groups) || groups.length > MAX_GROUPS || !groups.every((group) => typeof group === 'string' && group !== '' && group.length <= MAX_KEY))
    throw fault(`groups are at most ${MAX_GROUPS} names.`);
  const said = line[ENTERPRISE_SCHEMA] ?? {};
  if (!isObject(said)) throw fault('The attributes of a schema are an object.');
  const extension: Record<string, unknown> = {};
  for (const field of Object.keys(said)) put(extension, field, said[field]);
  const sent: Record<string, unknown> = {};
  for (const field of Object.keys(line)) {
    if (field === kind || FIELDS.has(field)) continue;
    if (OF_USER.has(field.toLowerCase())) throw fault('An attribute has a name that is said otherwise in a listing.');
    const place = PLACES.get(field);
    put(place !== undefined && place.schema !== null ? extension : sent, place?.name ?? field, line[field]);
  }
  sent['externalId'] = key;
  sent['userName'] = textOr(username) ?? textOr(email) ?? key;
  if (textOr(name) !== null) sent['displayName'] = name;
  sent['name'] = { givenName: textOr(first_name), familyName: textOr(last_name) };
  sent['emails'] = textOr(email) === null ? [] : [{ value: email, type: 'work', primary: true }];
  sent['active'] = (state ?? 'active') === 'active';
  sent[ENTERPRISE_SCHEMA] = extension;
  const attributes = kept('User', sent);
  if (JSON.stringify(attributes).length > MAX_USER) throw fault('A person has at most 32 KiB.');
  return { type: 'user', key, attributes, groups: groups.length === 0 ? NO_GROUPS : [...new Set(groups as readonly string[])] };
}

function groupOf({ type: _, id, name, members = [], ...others }: Attributes): ListedGroup {
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

/** What would be no attribute of the copy, but where it inherits from. */
function put(copy: Record<string, unknown>, field: string, value: unknown): void {
  if (field === '__proto__') throw fault('An attribute has a name that none can have.');
  copy[field] = value;
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
