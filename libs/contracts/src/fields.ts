import { fieldsOf, recordField, recordOptional, type Common, type DeclaredField, type TextItems, type TextOptions } from './field.ts';
import type { Class } from './operation.ts';
import { addRule } from './rules.ts';

function record(field: DeclaredField): PropertyDecorator {
  return (prototype, key) => {
    recordField(prototype, String(key), field);
    addRule(prototype, String(key));
  };
}

/** The discriminator `object`. */
export const Const = (value: string, options: Common = { doc: 'Names the kind of object.' }) => record({ kind: 'const', value, ...options });
/** The resource's own id: prefix + `_` + ULID. */
export const Id = (prefix: string, options: Common) => record({ kind: 'id', prefix, ...options });
/** The id of another resource. `sameOrganization`: it must belong to the same organization as the other references. */
export const Ref = (of: () => Class, options: Common & { sameOrganization?: true; orEnvironment?: true }) => record({ kind: 'ref', of, ...options });
export const Text = (options: TextOptions) => record({ kind: 'text', ...options });
export const OneOf = (values: readonly string[], options: Common) => record({ kind: 'oneOf', values, ...options });
export const Flag = (options: Common & { default?: boolean }) => record({ kind: 'flag', ...options });
export const Integer = (options: Common & { minimum?: number; maximum?: number; default?: number; values?: readonly number[] }) =>
  record({ kind: 'integer', ...options });
/** ISO 8601 UTC with milliseconds. */
export const Time = (options: Common) => record({ kind: 'time', ...options });
/** String values by name: metadata. Its limits are refused as `invalid_metadata` by the decision, not by the schema; in requests a value may be null. */
export const MapOfText = (options: Common) => record({ kind: 'map', ...options });
/** Texts, numbers and flags by name, held to `VALUES_LIMITS`; in requests a value may be null, and counts as not given. */
export const MapOfValues = (options: Common) => record({ kind: 'values', ...options });
/** Any JSON. */
export const Json = (options: Common) => record({ kind: 'json', ...options });
/** Any object of JSON: an empty one where it is not there any more. */
export const JsonObject = (options: Common) => record({ kind: 'json', isObject: true, ...options });
export const Nested = (of: () => Class, options: Common) => record({ kind: 'nested', of, ...options });
/** `unique`: the operation refuses an item that is there twice. `commas`: in a query, what stands in brackets is one item. */
export const ListOf = (
  items: (() => Class) | { text: TextItems } | { oneOf: readonly string[] },
  options: Common & { maxItems?: number; minItems?: number; unique?: true; commas?: 'kept in brackets' },
) =>
  record({
    kind: 'list',
    items:
      typeof items === 'function' ? { kind: 'nested', of: items } : 'text' in items ? { kind: 'text', ...items.text } : { kind: 'oneOf', values: items.oneOf },
    ...options,
  });

/** May be absent. Stands above the field's decorator. */
export const Optional = (): PropertyDecorator => (prototype, key) => recordOptional(prototype, String(key));

/** Copies a field of a resource into an operation, instead of repeating it. */
export const Picked =
  (of: Class, name: string = ''): PropertyDecorator =>
  (prototype, key) => {
    const field = fieldsOf(of).find((candidate) => candidate.name === (name || String(key)));
    if (field === undefined) throw new Error(`${of.name} has no field ${name || String(key)}.`);
    record(field)(prototype, key);
  };

/** A class with the fields of another except the named ones: what an event or a list shows of a resource. */
export function without<T, Name extends keyof T & string>(of: Class<T>, ...names: readonly Name[]): Class<Omit<T, Name>> {
  const type = class {};
  const fields = fieldsOf(of).filter((field) => !(names as readonly string[]).includes(field.name));
  for (const { optional, ...field } of fields) {
    record(field)(type.prototype, field.name);
    if (optional) Optional()(type.prototype, field.name);
  }
  return type as Class<Omit<T, Name>>;
}

/** A class with the fields of another, each of which may be absent: what a request changes of it. */
export function partial<T>(of: Class<T>): Class<Partial<T>> {
  const type = class {};
  for (const { optional: _, ...field } of fieldsOf(of)) {
    record(field)(type.prototype, field.name);
    Optional()(type.prototype, field.name);
  }
  return type;
}
