import { ScimError } from '../domain/scim-domain-error.ts';
import type { PatchOperation, PatchPath } from '../domain/scim-patch.decider.ts';
import type { ResourceKind } from '../domain/scim-schema.decider.ts';
import { GROUP_SCHEMA, isObject, USER_SCHEMA, valueOf } from '../domain/scim-values.decider.ts';
import { parseFilter } from './parse-filter.ts';

const MAX_OPERATIONS = 1_000;
/** Of attributes other than members: each is looked at beside all others, and nobody else is answered meanwhile. */
const MAX_OF_ATTRIBUTES = 250;
const MAX_VALUES = 2_000;
const MAX_DEPTH = 20;
const CORE: Readonly<Record<ResourceKind, string>> = { User: USER_SCHEMA.toLowerCase(), Group: GROUP_SCHEMA.toLowerCase() };
/** What an object without a path may hold and nobody can change: providers send the whole resource. */
const IGNORED: ReadonlySet<string> = new Set(['id', 'meta', 'schemas', 'groups']);
const NAME = /^[$A-Za-z][\w$-]*$/;

/**
 * The operations of a PATCH, each with one path: an object without a path is one operation for each of its attributes, whose names may be paths themselves.
 * @throws ScimError `invalidSyntax`, `invalidPath`, `invalidFilter`, `noTarget`
 */
export function parsePatch(kind: ResourceKind, body: unknown): readonly PatchOperation[] {
  const operations = isObject(body) ? valueOf(body, 'Operations') : undefined;
  if (!Array.isArray(operations) || operations.length === 0) throw invalidSyntax('A PATCH has a list of Operations.');
  if (operations.length > MAX_OPERATIONS) throw invalidSyntax(`A PATCH has at most ${MAX_OPERATIONS} Operations.`);
  const parsed = operations.flatMap((operation) => parseOperation(kind, operation));
  const ofAttributes = parsed.filter((operation) => !isOfMembers(operation));
  const values = ofAttributes.reduce((sum, { value }) => (sum > MAX_VALUES ? sum : sum + valuesIn(value, MAX_VALUES)), 0);
  if (ofAttributes.length > MAX_OF_ATTRIBUTES || values > MAX_VALUES) throw invalidSyntax('A PATCH changes too many attributes.');
  return parsed;
}

/** Whether an operation is about the members of a group: those may be many. */
export function isOfMembers({ path }: PatchOperation): boolean {
  return path.schema === null && path.attribute?.toLowerCase() === 'members';
}

/** How many values there are in one, all that is nested counted, up to a little more than `most`: no deeper than that goes the look. */
function valuesIn(value: unknown, most: number, depth = 1): number {
  if (typeof value !== 'object' || value === null) return 1;
  if (depth > MAX_DEPTH) return most + 1;
  let values = 1;
  for (const each of Object.values(value) as readonly unknown[]) {
    if (values > most) break;
    values += valuesIn(each, most, depth + 1);
  }
  return values;
}

function parseOperation(kind: ResourceKind, operation: unknown): readonly PatchOperation[] {
  if (!isObject(operation)) throw invalidSyntax('Each of Operations is an object.');
  const named = valueOf(operation, 'op');
  const op = typeof named === 'string' ? named.toLowerCase() : '';
  if (op !== 'add' && op !== 'replace' && op !== 'remove') throw invalidSyntax('op is add, replace or remove.');
  const path = valueOf(operation, 'path');
  const value = valueOf(operation, 'value');
  if (op !== 'remove' && value === undefined) throw invalidSyntax('An operation that adds or replaces has a value.');
  if (path !== undefined && path !== null && path !== '') {
    if (typeof path !== 'string') throw invalidPath();
    const parsed = parsePath(kind, path);
    if (isOfAttribute(parsed)) return [{ op, path: parsed, value }];
  }
  // Without a path, or with one that names the schema of the resource itself.
  if (op === 'remove') throw new ScimError(400, 'noTarget', 'An operation that removes has the path of an attribute.');
  if (!isObject(value)) throw invalidSyntax('Without a path, the value is an object of attributes.');
  return Object.entries(value).flatMap(([name, each]) => (IGNORED.has(name.toLowerCase()) ? [] : withoutPath(kind, op, name, each)));
}

/** An attribute that is null is removed. */
function withoutPath(kind: ResourceKind, op: 'add' | 'replace', name: string, value: unknown, depth = 1): readonly PatchOperation[] {
  if (depth > MAX_DEPTH) throw invalidSyntax('An operation is nested too deeply.');
  const path = parsePath(kind, name);
  if (isOfAttribute(path)) return [{ op: value === null ? 'remove' : op, path, value: value === null ? undefined : value }];
  // The schema of the resource itself, by its name.
  if (!isObject(value)) throw invalidSyntax('The attributes of a schema are an object.');
  return Object.entries(value).flatMap(([inner, each]) => (IGNORED.has(inner.toLowerCase()) ? [] : withoutPath(kind, op, inner, each, depth + 1)));
}

/** Whether a path leads to an attribute, or to a schema that is no part of the resource's own. */
function isOfAttribute({ schema, attribute }: PatchPath): boolean {
  return schema !== null || attribute !== null;
}

/** @throws ScimError `invalidPath`, `invalidFilter` */
function parsePath(kind: ResourceKind, path: string): PatchPath {
  if (path.length > 2_048) throw invalidPath();
  const bracket = path.indexOf('[');
  const end = path.lastIndexOf(']');
  if (bracket === -1) return { ...namesOf(kind, path), filter: null };
  if (end < bracket) throw invalidPath();
  const { schema, attribute, sub } = namesOf(kind, path.slice(0, bracket));
  const rest = path.slice(end + 1);
  if (attribute === null || sub !== null || (rest !== '' && !(rest.startsWith('.') && NAME.test(rest.slice(1))))) throw invalidPath();
  return { schema, attribute, filter: parseFilter(path.slice(bracket + 1, end)), sub: rest === '' ? null : rest.slice(1) };
}

function namesOf(kind: ResourceKind, path: string): Omit<PatchPath, 'filter'> {
  const folded = path.toLowerCase();
  if (folded === CORE[kind]) return { schema: null, attribute: null, sub: null };
  if (folded.startsWith(`${CORE[kind]}:`)) return namesOf(kind, path.slice(CORE[kind].length + 1));
  if (!folded.startsWith('urn:')) return { schema: null, ...partsOf(path) };
  // `urn:…:2.0:User:department`: what follows the kind of resource is an attribute; without one, all of the extension is meant.
  const whole = /^(urn:.*:\d+(?:\.\d+)*:[^:.]+)$/i.exec(path);
  if (whole !== null) return { schema: path, attribute: null, sub: null };
  const schemaEnd = path.lastIndexOf(':');
  return { schema: path.slice(0, schemaEnd), ...partsOf(path.slice(schemaEnd + 1)) };
}

function partsOf(path: string): { readonly attribute: string; readonly sub: string | null } {
  const [attribute, sub = null, ...more] = path.split('.');
  if (!NAME.test(attribute!) || (sub !== null && !NAME.test(sub)) || more.length > 0) throw invalidPath();
  return { attribute: attribute!, sub };
}

function invalidPath(): ScimError {
  return new ScimError(400, 'invalidPath', 'The path cannot be read.');
}

export function invalidSyntax(detail: string): ScimError {
  return new ScimError(400, 'invalidSyntax', detail);
}
