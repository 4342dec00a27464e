import 'reflect-metadata';
import type { Class } from './operation.ts';
import type { TextFormat } from './text-formats.ts';

export interface Common {
  /** One sentence; goes into the API docs. */
  readonly doc: string;
  readonly nullable?: boolean;
  readonly example?: unknown;
  /** Sealed in the log under the key of whom it is about, which the decider names: erasable. */
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
  /** No character that nobody sees: none of control, format, direction or zero width; white space at either end is left to whoever reads it. */
  readonly visible?: true;
}

/** What a decorator recorded of one property. JSON Schema, validators, serialisers and docs all derive from it. */
export type Field = Common & { readonly name: string; readonly optional: boolean } & (
    | { readonly kind: 'const'; readonly value: string }
    | { readonly kind: 'id'; readonly prefix: string }
    | {
        readonly kind: 'ref';
        readonly of: () => Class;
        readonly sameOrganization?: true;
        /** Its environment may stand in its place. */ readonly orEnvironment?: true;
      }
    | ({ readonly kind: 'text' } & TextOptions)
    | { readonly kind: 'oneOf'; readonly values: readonly string[] }
    | { readonly kind: 'flag'; readonly default?: boolean }
    /** `values`: no others. */
    | {
        readonly kind: 'integer';
        readonly minimum?: number;
        readonly maximum?: number;
        readonly default?: number;
        readonly values?: readonly number[];
      }
    | { readonly kind: 'time' }
    | { readonly kind: 'map' }
    | { readonly kind: 'values' }
    /** `isObject`: an object, whatever is in it. */
    | { readonly kind: 'json'; readonly isObject?: true }
    | { readonly kind: 'nested'; readonly of: () => Class }
    | {
        readonly kind: 'list';
        readonly items: ListItems;
        readonly maxItems?: number;
        readonly minItems?: number;
        readonly unique?: true;
        readonly commas?: 'kept in brackets';
      }
  );

export type ListItems =
  | { readonly kind: 'nested'; readonly of: () => Class }
  | { readonly kind: 'oneOf'; readonly values: readonly string[] }
  | ({ readonly kind: 'text' } & TextItems);

/** `known`: the texts that the operation takes. They are published; another is refused by the operation, with a code of its own. */
export type TextItems = Omit<TextOptions, keyof Common> & { readonly known?: readonly string[] };

const FIELDS = Symbol('gatehouse:fields');
const OPTIONAL = Symbol('gatehouse:optional');

type Declared<F> = F extends Field ? Omit<F, 'name' | 'optional'> : never;
/** A field as its decorator gives it; the property gives the name. */
export type DeclaredField = Declared<Field>;

export function recordField(prototype: object, name: string, field: DeclaredField): void {
  const fields = (Reflect.getOwnMetadata(FIELDS, prototype) as Map<string, Field> | undefined) ?? new Map<string, Field>();
  fields.set(name, { ...field, name, optional: false });
  Reflect.defineMetadata(FIELDS, fields, prototype);
}

export function recordOptional(prototype: object, name: string): void {
  const names = (Reflect.getOwnMetadata(OPTIONAL, prototype) as Set<string> | undefined) ?? new Set<string>();
  Reflect.defineMetadata(OPTIONAL, names.add(name), prototype);
}

const cache = new WeakMap<Class, readonly Field[]>();

/** The fields of a contract class in order of declaration, those of its parents first. */
export function fieldsOf(type: Class): readonly Field[] {
  let fields = cache.get(type);
  if (fields === undefined) {
    const found = new Map<string, Field>();
    const chain: object[] = [];
    for (
      let prototype = type.prototype as object | null;
      prototype !== null && prototype !== Object.prototype;
      prototype = Object.getPrototypeOf(prototype) as object | null
    )
      chain.unshift(prototype);
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

/** Whether a request may leave the field out; a default is set for it then. */
export function mayBeAbsent(field: Field): boolean {
  return field.optional || ('default' in field && field.default !== undefined);
}
