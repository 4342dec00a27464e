import 'reflect-metadata';
import type { Class } from './operation.ts';
import type { TextFormat } from './text-formats.ts';

interface Common {
  /** One sentence; goes into the API docs. */
  readonly doc: string;
  readonly nullable?: boolean;
  readonly example?: unknown;
  /** Sealed in the log under a key per person: erasable. */
  readonly personal?: true;
  /** Sealed in the log and in rows under a key per environment: never leaves except where an answer class declares it. */
  readonly secret?: true;
}

export interface TextOptions extends Common {
  readonly min?: number;
  readonly max?: number;
  readonly pattern?: RegExp;
  readonly format?: TextFormat;
  /** Only ASCII characters. */
  readonly ascii?: true;
}

/** What a decorator recorded of one property. JSON Schema, validators, serialisers and docs all derive from it. */
export type Field = Common & { readonly name: string; readonly optional: boolean } & (
    | { readonly kind: 'const'; readonly value: string }
    | { readonly kind: 'id'; readonly prefix: string }
    | { readonly kind: 'ref'; readonly of: () => Class; readonly sameOrganization?: true }
    | ({ readonly kind: 'text' } & TextOptions)
    | { readonly kind: 'oneOf'; readonly values: readonly string[] }
    | { readonly kind: 'flag'; readonly default?: boolean }
    | { readonly kind: 'integer'; readonly minimum?: number; readonly maximum?: number; readonly default?: number }
    | { readonly kind: 'time' }
    | { readonly kind: 'map' }
    | { readonly kind: 'json' }
    | { readonly kind: 'nested'; readonly of: () => Class }
    | { readonly kind: 'list'; readonly items: ListItems; readonly maxItems?: number; readonly minItems?: number }
  );

export type ListItems =
  | { readonly kind: 'nested'; readonly of: () => Class }
  | { readonly kind: 'oneOf'; readonly values: readonly string[] }
  | ({ readonly kind: 'text' } & Omit<TextOptions, keyof Common>);

const FIELDS = Symbol('gatehouse:fields');
const OPTIONAL = Symbol('gatehouse:optional');

function record(field: Omit<Field, 'name' | 'optional'> & { kind: Field['kind'] }): PropertyDecorator {
  return (prototype, key) => {
    const own = Reflect.getOwnMetadata(FIELDS, prototype) as Map<string, Field> | undefined;
    const fields = own ?? new Map<string, Field>();
    fields.set(String(key), { ...field, name: String(key), optional: false } as Field);
    Reflect.defineMetadata(FIELDS, fields, prototype);
  };
}

/** The discriminator `object`. */
export const Const = (value: string, options: Common = { doc: 'Names the kind of object.' }) => record({ kind: 'const', value, ...options } as never);
/** The resource's own id: prefix + `_` + ULID. */
export const Id = (prefix: string, options: Common) => record({ kind: 'id', prefix, ...options } as never);
/** The id of another resource. `sameOrganization`: it must belong to the same organization as the other references. */
export const Ref = (of: () => Class, options: Common & { sameOrganization?: true }) => record({ kind: 'ref', of, ...options } as never);
export const Text = (options: TextOptions) => record({ kind: 'text', ...options } as never);
export const OneOf = (values: readonly string[], options: Common) => record({ kind: 'oneOf', values, ...options } as never);
export const Flag = (options: Common & { default?: boolean }) => record({ kind: 'flag', ...options } as never);
export const Integer = (options: Common & { minimum?: number; maximum?: number; default?: number }) => record({ kind: 'integer', ...options } as never);
/** ISO 8601 UTC with milliseconds. */
export const Time = (options: Common) => record({ kind: 'time', ...options } as never);
/** String values by name: metadata. Its limits are refused as `invalid_metadata` by the decision, not by the schema; in requests a value may be null. */
export const MapOfText = (options: Common) => record({ kind: 'map', ...options } as never);
/** Any JSON. */
export const Json = (options: Common) => record({ kind: 'json', ...options } as never);
export const Nested = (of: () => Class, options: Common) => record({ kind: 'nested', of, ...options } as never);
export const ListOf = (items: (() => Class) | { text: Omit<TextOptions, keyof Common> } | { oneOf: readonly string[] }, options: Common & { maxItems?: number; minItems?: number }) =>
  record({
    kind: 'list',
    items: typeof items === 'function' ? { kind: 'nested', of: items } : 'text' in items ? { kind: 'text', ...items.text } : { kind: 'oneOf', values: items.oneOf },
    ...options,
  } as never);

/** May be absent. Stands above the field's decorator. */
export const Optional = (): PropertyDecorator => (prototype, key) => {
  const own = (Reflect.getOwnMetadata(OPTIONAL, prototype) as Set<string> | undefined) ?? new Set<string>();
  Reflect.defineMetadata(OPTIONAL, own.add(String(key)), prototype);
};

/** Copies a field of a resource into an operation, instead of repeating it. */
export const Picked = (of: Class, name: string = ''): PropertyDecorator => (prototype, key) => {
  const field = fieldsOf(of).find((candidate) => candidate.name === (name || String(key)));
  if (field === undefined) throw new Error(`${of.name} has no field ${name || String(key)}.`);
  record(field as never)(prototype, key);
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

const cache = new WeakMap<Class, readonly Field[]>();

/** The fields of a contract class in order of declaration, those of its parents first. */
export function fieldsOf(type: Class): readonly Field[] {
  let fields = cache.get(type);
  if (fields === undefined) {
    const found = new Map<string, Field>();
    const chain: object[] = [];
    for (let prototype = type.prototype as object | null; prototype !== null && prototype !== Object.prototype; prototype = Object.getPrototypeOf(prototype) as object | null) chain.unshift(prototype);
    for (const prototype of chain) {
      const optional = Reflect.getOwnMetadata(OPTIONAL, prototype) as Set<string> | undefined;
      for (const field of (Reflect.getOwnMetadata(FIELDS, prototype) as Map<string, Field> | undefined)?.values() ?? [])
        found.set(field.name, { ...field, optional: optional?.has(field.name) ?? false });
    }
    fields = [...found.values()];
    cache.set(type, fields);
  }
  return fields;
}
