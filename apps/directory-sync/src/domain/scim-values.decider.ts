import { foldedText } from '#libs/platform/src/folded-text.decider';

/** Attributes as SCIM has them: an object of JSON. */
export type Attributes = Readonly<Record<string, unknown>>;

export const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const GROUP_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Group';
export const ENTERPRISE_SCHEMA = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
/** What we say of a person beside what the provider does. */
export const OWN_SCHEMA = 'urn:ietf:params:scim:schemas:extension:gatehouse:2.0:User';
export const CUSTOM_ATTRIBUTES = 'customAttributes';

/** Names that a path begins with: what follows a core schema is at the top, what follows another lies within the object of that name. */
const CORE: ReadonlySet<string> = new Set([USER_SCHEMA, GROUP_SCHEMA].map((schema) => schema.toLowerCase()));

export function isObject(value: unknown): value is Attributes {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The spelling that an object has of a name: names are the same in upper and lower case. */
export function ownName(object: Attributes, name: string): string | undefined {
  if (Object.hasOwn(object, name)) return name;
  const folded = name.toLowerCase();
  return Object.keys(object).find((key) => key.toLowerCase() === folded);
}

export function valueOf(object: Attributes, name: string): unknown {
  const own = ownName(object, name);
  return own === undefined ? undefined : object[own];
}

/** The names that a path goes through: `emails.value`, `urn:…:User:manager.value`, `name.givenName`. */
export function stepsOf(path: string): readonly string[] {
  const schemaEnd = path.toLowerCase().startsWith('urn:') ? path.lastIndexOf(':') : -1;
  if (schemaEnd === -1) return path.split('.');
  const schema = path.slice(0, schemaEnd);
  // The name of a schema alone is that of its object.
  if (/:\d+(\.\d+)*:[^:]+$/.test(path) && !/:\d+(\.\d+)*:[^:]+$/.test(schema)) return [path];
  const rest = path.slice(schemaEnd + 1).split('.');
  return CORE.has(schema.toLowerCase()) ? rest : [schema, ...rest];
}

/** All that stands at a path, of each item where there are several. */
export function valuesAt(value: unknown, steps: readonly string[]): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, steps));
  const [step, ...below] = steps;
  if (step === undefined) return value === undefined || value === null ? [] : [value];
  if (!isObject(value)) return step === 'value' && below.length === 0 ? [value] : [];
  return valuesAt(valueOf(value, step), below);
}

/** Whether two values are the same, whatever the order of their names. */
export function isSameValue(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((item, index) => isSameValue(item, other[index]));
  if (!isObject(one) || !isObject(other)) return false;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && isSameValue(one[name], other[name]));
}

/** What of two objects differs, as it was before: null for what was not there. */
export function previousOf(before: Attributes, after: Attributes): Attributes {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => !isSameValue(before[name], after[name]));
  return Object.fromEntries(changed.map((name) => [name, before[name] ?? null]));
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** In which texts are compared that say of themselves that case is no difference. */
export function foldedValue(text: string): string {
  return foldedText(text.trim());
}

/** What providers write where a truth value is meant. */
export function truthOf(value: unknown): boolean | null {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string') return null;
  const folded = value.toLowerCase();
  return folded === 'true' ? true : folded === 'false' ? false : null;
}
