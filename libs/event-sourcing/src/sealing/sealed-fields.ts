import { eventDataOf, isPublicEventName } from '#libs/contracts/src/events';
import { fieldsOf, type Field } from '#libs/contracts/src/field';
import type { Class } from '#libs/contracts/src/operation';

/** The fields of a resource that the log must not hold in clear, at any depth; of a list, those of its items. */
export interface SealedFields {
  readonly [field: string]: 'personal' | 'secret' | SealedFields;
}

/** What is sealed in the events of a type; null for nothing, as for nearly all. */
export type SealedFieldsOf = (type: string) => SealedFields | null;

/**
 * Reads it off the contracts. `resources` are classes by the resource that event types begin with (`webhook_endpoint`), for events whose facts are fields of it; what
 * is public of an event has its class among the public events.
 */
export function sealedFieldsOf(resources: Readonly<Record<string, Class>>): SealedFieldsOf {
  const known = new Map<string, SealedFields | null>();
  return (type) => {
    let fields = known.get(type);
    if (fields === undefined) {
      const classes = [resources[type.slice(0, type.lastIndexOf('.'))], isPublicEventName(type) ? eventDataOf(type) : null];
      fields = merged(classes.map((each) => (each ? sealedIn(each, []) : null)));
      known.set(type, fields);
    }
    return fields;
  };
}

/** A copy of what was opened that leaves out what is personal, at any depth. */
export function withoutPersonal(value: unknown, fields: SealedFields): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutPersonal(item, fields));
  if (typeof value !== 'object' || value === null) return value;
  const copy: Record<string, unknown> = { ...value };
  for (const [name, field] of Object.entries(fields)) {
    if (field === 'personal') delete copy[name];
    else if (typeof field === 'object' && Object.hasOwn(copy, name)) copy[name] = withoutPersonal(copy[name], field);
  }
  return copy;
}

/** Whether a person's key seals any of these. */
export function hasPersonal(fields: SealedFields): boolean {
  return Object.values(fields).some((field) => field === 'personal' || (typeof field === 'object' && hasPersonal(field)));
}

/** What stands in the place of a sealed field; `path` leads to it. */
export type Replace = (value: unknown, kind: 'personal' | 'secret', path: string) => unknown;

/** A copy with every sealed field replaced, in which nothing else changes; what is absent or null stays so. */
export function replaced(value: unknown, fields: SealedFields, path: string, replace: Replace): unknown {
  if (Array.isArray(value)) return value.map((item, index) => replaced(item, fields, `${path}.${index}`, replace));
  if (typeof value !== 'object' || value === null) return value;
  const copy: Record<string, unknown> = { ...value };
  for (const [name, field] of Object.entries(fields)) {
    if (!Object.hasOwn(copy, name) || copy[name] === null || copy[name] === undefined) continue;
    const inner = `${path}.${name}`;
    copy[name] = typeof field === 'string' ? replace(copy[name], field, inner) : replaced(copy[name], field, inner, replace);
  }
  return copy;
}

function sealedIn(type: Class, above: readonly Class[]): SealedFields | null {
  // A class that holds itself adds nothing at the second look.
  if (above.includes(type)) return null;
  const sealed: Record<string, SealedFields[string]> = {};
  for (const field of fieldsOf(type)) {
    if (field.secret) sealed[field.name] = 'secret';
    else if (field.personal) sealed[field.name] = 'personal';
    else {
      const inner = innerOf(field);
      const deeper = inner === null ? null : sealedIn(inner, [...above, type]);
      if (deeper !== null) sealed[field.name] = deeper;
    }
  }
  return Object.keys(sealed).length === 0 ? null : sealed;
}

function innerOf(field: Field): Class | null {
  if (field.kind === 'nested') return field.of();
  return field.kind === 'list' && field.items.kind === 'nested' ? field.items.of() : null;
}

function merged(all: readonly (SealedFields | null)[]): SealedFields | null {
  const some = all.filter((fields) => fields !== null);
  return some.length === 0 ? null : (Object.assign({}, ...some) as SealedFields);
}
