import { invalidValue, ScimError } from './scim-domain-error.ts';
import { fits, type ScimFilter } from './scim-filter.decider.ts';
import { attributeNamed, subAttributeNamed, type ResourceKind, type ScimAttribute } from './scim-schema.decider.ts';
import { isObject, isSameValue, ownName, truthOf, type Attributes } from './scim-values.decider.ts';

/** One operation of a PATCH, its path taken apart. */
export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: PatchPath;
  readonly value: unknown;
}

/** `emails[type eq "work"].value`; of an extension `schema` says which, and `attribute` is null where all of it is meant. */
export interface PatchPath {
  readonly schema: string | null;
  readonly attribute: string | null;
  readonly filter: ScimFilter | null;
  readonly sub: string | null;
}

type Changeable = Record<string, unknown>;

/**
 * The attributes after the operations, one after the other; what they come to is still to be brought into the form in which it is kept.
 * @throws ScimError `invalidPath`, `mutability`, `noTarget`, `invalidValue`
 */
export function patched(kind: ResourceKind, attributes: Attributes, operations: readonly PatchOperation[]): Attributes {
  const copy = structuredClone(attributes) as Changeable;
  for (const operation of operations) apply(kind, copy, operation);
  return copy;
}

function apply(kind: ResourceKind, attributes: Changeable, operation: PatchOperation): void {
  const { schema, attribute: name } = operation.path;
  if (schema !== null) return applyToExtension(kind, attributes, operation);
  const attribute = attributeNamed(kind, name!);
  requireWritable(attribute);
  if (attribute?.name === 'schemas' || attribute?.name === 'password') return;
  // What is not of a schema can be changed where it was sent before.
  if (attribute === null && ownName(attributes, name!) === undefined && operation.op !== 'add') throw noSuchPath();
  change(attributes, attribute?.name ?? name!, attribute, operation);
}

function requireWritable(attribute: ScimAttribute | null): void {
  if (attribute?.mutability === 'readOnly') throw new ScimError(400, 'mutability', `${attribute.name} cannot be changed.`);
}

function applyToExtension(kind: ResourceKind, attributes: Changeable, { op, path, value }: PatchOperation): void {
  const { schema, attribute: name } = path;
  const own = ownName(attributes, schema!) ?? schema!;
  const extension = isObject(attributes[own]) ? { ...attributes[own] } : {};
  if (name !== null) {
    const attribute = attributeNamed(kind, name, schema);
    requireWritable(attribute);
    change(extension, attribute?.name ?? name, attribute, { op, path, value });
  } else if (op === 'remove') {
    delete attributes[own];
    return;
  } else {
    if (!isObject(value)) throw invalidValue('The attributes of a schema are an object.');
    for (const [inner, each] of Object.entries(value)) {
      const attribute = attributeNamed(kind, inner, schema);
      change(extension, attribute?.name ?? inner, attribute, { op, path: { ...path, attribute: inner }, value: each });
    }
  }
  attributes[own] = extension;
}

function change(holder: Changeable, name: string, attribute: ScimAttribute | null, operation: PatchOperation): void {
  const own = ownName(holder, name) ?? name;
  const { op, path, value } = operation;
  const { filter, sub } = path;
  const isSeveral = attribute?.multiValued === true || Array.isArray(holder[own]);
  if (sub !== null && attribute !== null && attribute.type === 'complex' && subAttributeNamed(attribute, sub) === null && !hasOwnSub(holder[own], sub))
    throw noSuchPath();
  if (filter !== null) {
    if (!isSeveral) throw noSuchPath();
    changeItems(holder, own, filter, operation);
  } else if (isSeveral && sub === null) changeList(holder, own, operation);
  else if (isSeveral) {
    // A part of every item.
    for (const item of listIn(holder, own)) setPart(item, sub!, op, value);
  } else if (sub !== null) {
    const inner = isObject(holder[own]) ? { ...holder[own] } : {};
    setPart(inner, sub, op, value);
    holder[own] = inner;
  } else if (op === 'remove') delete holder[own];
  // Of an object, what is not named stays.
  else holder[own] = isObject(value) && isObject(holder[own]) ? merged(holder[own], value) : value;
}

function hasOwnSub(value: unknown, sub: string): boolean {
  return isObject(value) && ownName(value, sub) !== undefined;
}

function merged(before: Attributes, value: Attributes): Attributes {
  const after: Changeable = { ...before };
  for (const [name, each] of Object.entries(value)) after[ownName(after, name) ?? name] = each;
  return after;
}

/** The items of a list, as objects of their own. */
function listIn(holder: Changeable, name: string): Changeable[] {
  const list: readonly unknown[] = Array.isArray(holder[name]) ? holder[name] : holder[name] === undefined ? [] : [holder[name]];
  const items = list.map((item) => (isObject(item) ? { ...item } : { value: item }));
  holder[name] = items;
  return items;
}

function changeList(holder: Changeable, name: string, { op, value }: PatchOperation): void {
  const given: readonly unknown[] = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
  if (op === 'replace') {
    holder[name] = given;
  } else if (op === 'remove') {
    // With a value, those alone that have it.
    if (given.length === 0) delete holder[name];
    else holder[name] = listIn(holder, name).filter((item) => !given.some((each) => isMeant(item, each)));
  } else {
    const items = listIn(holder, name);
    const added = given.map((each) => (isObject(each) ? { ...each } : { value: each })).filter((each) => !items.some((item) => isSameValue(item, each)));
    holder[name] = [...items, ...added];
    keepOnePrimary([...items, ...added], added);
  }
}

/** Whether an item is what a removal names: by its value, where it has one. */
function isMeant(item: Attributes, given: unknown): boolean {
  if (!isObject(given)) return item['value'] === given;
  // What names nothing is nobody.
  const named = Object.entries(given);
  return named.length > 0 && named.every(([name, value]) => isSameValue(item[ownName(item, name) ?? name], value));
}

function changeItems(holder: Changeable, name: string, filter: ScimFilter, { op, path: { sub }, value }: PatchOperation): void {
  const items = listIn(holder, name);
  const found = items.filter((item) => fits(item, filter, `${name}.`));
  if (op === 'remove') {
    if (sub === null) holder[name] = items.filter((item) => !found.includes(item));
    else for (const item of found) setPart(item, sub, op, value);
    return;
  }
  if (sub === null && !isObject(value)) throw invalidValue('The value of an item is an object.');
  if (found.length === 0) {
    const made = namedBy(filter);
    if (made === null) throw new ScimError(400, 'noTarget', 'No item fits the filter of the path.');
    items.push(made);
    found.push(made);
  }
  for (const item of found) {
    if (sub === null) Object.assign(item, merged(item, value as Attributes));
    else setPart(item, sub, op, value);
  }
  keepOnePrimary(items, found);
}

/** The item that a filter describes, where it says what it has and nothing else: providers count on it being made. */
function namedBy(filter: ScimFilter): Changeable | null {
  if (filter.op === 'and') {
    const parts = filter.filters.map(namedBy);
    return parts.includes(null) ? null : (Object.assign({}, ...parts) as Changeable);
  }
  if (filter.op !== 'eq' || filter.value === null || filter.path.includes('.')) return null;
  return { [filter.path]: filter.path.toLowerCase() === 'primary' ? (truthOf(filter.value) ?? filter.value) : filter.value };
}

function setPart(item: Changeable, name: string, op: PatchOperation['op'], value: unknown): void {
  const own = ownName(item, name) ?? name;
  if (op === 'remove' || value === null) delete item[own];
  else item[own] = value;
}

/** Of several that say to be primary, the one that was changed last stays so. */
function keepOnePrimary(items: readonly Changeable[], changed: readonly Changeable[]): void {
  const primary = items.filter((item) => truthOf(item['primary']) === true);
  if (primary.length < 2) return;
  const kept = primary.findLast((item) => changed.includes(item)) ?? primary.at(-1);
  for (const item of primary) if (item !== kept) item['primary'] = false;
}

function noSuchPath(): ScimError {
  return new ScimError(400, 'invalidPath', 'The path names no attribute of the resource.');
}
