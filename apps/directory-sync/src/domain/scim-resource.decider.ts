import { isPlainText } from '#libs/platform/src/plain-text.decider';
import { invalidValue, ScimError } from './scim-domain-error.ts';
import { attributeNamed, subAttributeNamed, type ResourceKind, type ScimAttribute } from './scim-schema.decider.ts';
import { CUSTOM_ATTRIBUTES, ENTERPRISE_SCHEMA, GROUP_SCHEMA, isObject, OWN_SCHEMA, truthOf, USER_SCHEMA, type Attributes } from './scim-values.decider.ts';

const SECRET = 'password';
/** What nobody keeps: what is secret, and what the answer is made of elsewhere. */
const LEFT_OUT: Readonly<Record<ResourceKind, ReadonlySet<string>>> = {
  User: new Set([SECRET, 'id', 'meta', 'groups']),
  Group: new Set(['id', 'meta', 'members']),
};
/** Names that nobody has to have: an empty one is none. */
const MAY_BE_EMPTY: Readonly<Record<ResourceKind, ReadonlySet<string>>> = { User: new Set(['displayname', 'externalid']), Group: new Set(['externalid']) };
const SCHEMA_OF: Readonly<Record<ResourceKind, string>> = { User: USER_SCHEMA, Group: GROUP_SCHEMA };
const ENTERPRISE = ENTERPRISE_SCHEMA.toLowerCase();
const MAX_TEXT = 255;
const MAX_ADDRESS = 320;
const MAX_DEPTH = 10;
/** Names that one object has, and items that one list has: what is asked of resources looks at each of them. */
const MAX_NAMES = 200;
const MAX_ITEMS = 500;
/** Names that a copy in some program would take for something else. */
const FORBIDDEN: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** Whether an attribute of this name is accepted, and left out of what is kept. */
export function keepsNothingOf(kind: ResourceKind, name: string): boolean {
  return LEFT_OUT[kind].has(name.toLowerCase());
}

/**
 * The attributes of a resource in the form in which they are kept: as they were sent, names spelled as their schemas have them, without what is empty.
 * @throws ScimError `invalidValue`
 */
export function keptAttributes(kind: ResourceKind, sent: Attributes): Attributes {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(sent)) put(kind, kept, name, value);
  requireFewNames(kept);
  requirePlainText(kept);
  requireText(kept, kind === 'User' ? 'userName' : 'displayName', true);
  for (const name of ['userName', 'displayName', 'externalId']) requireText(kept, name, false);
  const extensions = Object.keys(kept).filter((name) => name.toLowerCase().startsWith('urn:'));
  const named = Array.isArray(kept['schemas']) ? kept['schemas'].filter((schema) => typeof schema === 'string') : [];
  const { schemas: _, ...rest } = kept;
  return { schemas: [...new Set([SCHEMA_OF[kind], ...named, ...extensions])], ...rest };
}

function put(kind: ResourceKind, kept: Record<string, unknown>, name: string, said: unknown, depth = 1): void {
  if (depth > MAX_DEPTH) throw tooDeep();
  const folded = name.toLowerCase();
  const isOfSchema = folded.startsWith('urn:');
  const value = isOfSchema && isObject(said) ? withoutSecret(said) : said;
  if (LEFT_OUT[kind].has(folded) || (isOfSchema && folded.endsWith(`:${SECRET}`)) || isEmpty(value)) return;
  // Providers write so what they know nothing of.
  if (value === '' && MAY_BE_EMPTY[kind].has(folded)) return;
  requireName(name);
  const own = SCHEMA_OF[kind].toLowerCase();
  // What belongs to the schema of the resource itself may be said with its name.
  if (folded === own && isObject(value)) {
    for (const [inner, each] of Object.entries(value)) put(kind, kept, inner, each, depth + 1);
  } else if (folded.startsWith(`${own}:`)) {
    put(kind, kept, name.slice(own.length + 1), value, depth + 1);
  } else if (kind === 'User' && folded === ENTERPRISE) {
    putExtension(kept, keptExtension(value));
  } else if (kind === 'User' && folded.startsWith(`${ENTERPRISE}:`) && !folded.includes('.', ENTERPRISE.length)) {
    putExtension(kept, keptExtension({ [name.slice(ENTERPRISE.length + 1)]: value }));
  } else if (folded === OWN_SCHEMA.toLowerCase() && isObject(value)) {
    const own = Object.entries(value).filter(([inner]) => inner.toLowerCase() !== CUSTOM_ATTRIBUTES.toLowerCase());
    const rest = keptValueOf(Object.fromEntries(own), 1);
    if (!isEmpty(rest)) kept[OWN_SCHEMA] = rest;
  } else {
    const attribute = attributeNamed(kind, name);
    const keptValue = attribute === null ? keptValueOf(value, 1) : keptOf(attribute, value);
    if (!isEmpty(keptValue)) kept[attribute?.name ?? name] = keptValue;
  }
}

/** Beside what was said of it in another way. */
function putExtension(kept: Record<string, unknown>, extension: Attributes): void {
  if (Object.keys(extension).length > 0) kept[ENTERPRISE_SCHEMA] = { ...(kept[ENTERPRISE_SCHEMA] as Attributes | undefined), ...extension };
}

function keptExtension(value: unknown): Attributes {
  if (!isObject(value)) throw invalidValue('The attributes of a schema are an object.');
  requireFewNames(value);
  const kept: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(value)) {
    requireName(name);
    const attribute = attributeNamed('User', name, ENTERPRISE_SCHEMA);
    // Entra sends the manager as a text alone.
    const meant = attribute?.name === 'manager' && typeof each === 'string' ? (each === '' ? null : { value: each }) : each;
    const keptValue = isEmpty(meant) ? null : attribute === null ? keptValueOf(meant, 1) : keptOf(attribute, meant);
    if (!isEmpty(keptValue)) kept[attribute?.name ?? name] = keptValue;
  }
  return kept;
}

function keptOf(attribute: ScimAttribute, value: unknown): unknown {
  if (attribute.multiValued !== true) return keptOne(attribute, value);
  if (Array.isArray(value)) requireFewItems(value);
  const items = (Array.isArray(value) ? value : [value]).filter((item) => !isEmpty(item)).map((item) => keptOne(attribute, item));
  if (items.filter((item) => isObject(item) && item['primary'] === true).length > 1) throw invalidValue(`At most one of ${attribute.name} is primary.`);
  return items;
}

function keptOne(attribute: ScimAttribute, value: unknown): unknown {
  if (attribute.type === 'boolean') {
    const truth = truthOf(value);
    if (truth === null) throw invalidValue(`${attribute.name} is true or false.`);
    return truth;
  }
  if (attribute.type !== 'complex') {
    if (typeof value === 'object') throw invalidValue(`${attribute.name} is a text.`);
    return value;
  }
  if (!isObject(value)) {
    if (typeof value !== 'string' || subAttributeNamed(attribute, 'value') === null) throw invalidValue(`${attribute.name} is an object.`);
    return { value };
  }
  requireFewNames(value);
  const kept: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(value)) {
    requireName(name);
    if (each === null || each === undefined) continue;
    const sub = subAttributeNamed(attribute, name);
    kept[sub?.name ?? name] = sub === null ? keptValueOf(each, 2) : keptOne(sub, each);
  }
  const address = kept['value'];
  if (attribute.name === 'emails' && typeof address === 'string' && address.length > MAX_ADDRESS) throw invalidValue('An address of mail is too long.');
  return kept;
}

/** What no schema describes is kept as it is, within limits. */
function keptValueOf(value: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) throw tooDeep();
  if (Array.isArray(value)) {
    requireFewItems(value);
    return value.map((item) => keptValueOf(item, depth + 1));
  }
  if (!isObject(value)) return value;
  requireFewNames(value);
  const entries = Object.entries(value).filter(([, each]) => each !== null && each !== undefined);
  for (const [name] of entries) requireName(name);
  return Object.fromEntries(entries.map(([name, each]) => [name, keptValueOf(each, depth + 1)]));
}

/** Providers' mappings put it into any schema. */
function withoutSecret(extension: Attributes): Attributes {
  return Object.fromEntries(Object.entries(extension).filter(([name]) => name.toLowerCase() !== SECRET));
}

function tooDeep(): ScimError {
  return invalidValue('The resource is nested too deeply.');
}

function requireFewNames(object: Attributes): void {
  if (Object.keys(object).length > MAX_NAMES) throw invalidValue(`An object has at most ${MAX_NAMES} attributes.`);
}

function requireFewItems(list: readonly unknown[]): void {
  if (list.length > MAX_ITEMS) throw invalidValue(`An attribute has at most ${MAX_ITEMS} values.`);
}

function requireName(name: string): void {
  if (name === '' || name.length > MAX_TEXT || FORBIDDEN.has(name)) throw new ScimError(400, 'invalidSyntax', 'An attribute has a name that none can have.');
}

/** What the log, rows and receivers would not give back as it came. */
function requirePlainText(value: unknown): void {
  if (typeof value === 'string' && !isPlainText(value)) throw invalidValue('A text holds a NUL, or half a character.');
  if (typeof value !== 'object' || value === null) return;
  for (const [name, each] of Object.entries(value)) {
    requirePlainText(name);
    requirePlainText(each);
  }
}

function requireText(kept: Attributes, name: string, isRequired: boolean): void {
  const value = kept[name];
  if (value === undefined && !isRequired) return;
  if (typeof value !== 'string' || value.trim() === '') throw invalidValue(`${name} is a text that is not empty.`);
  if (value.length > MAX_TEXT) throw invalidValue(`${name} has at most ${MAX_TEXT} characters.`);
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || (Array.isArray(value) && value.length === 0) || (isObject(value) && Object.keys(value).length === 0);
}
