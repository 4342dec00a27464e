import { fieldsOf, mayBeAbsent, type Field, type ListItems } from './field.ts';
import type { Class, RegisteredOperation } from './operation.ts';
import { PUBLISHED_FORMATS } from './text-formats.ts';

export type Schema = { readonly [keyword: string]: unknown };

/**
 * What a schema is derived for: `request` and `answer` are published; `check` is run on requests, where an id may be any text, because one
 * that cannot exist is simply not found; `serialise` is the allow-list of what leaves.
 */
export type Purpose = 'request' | 'answer' | 'check' | 'serialise';

/** Of a map of values: how many there may be, what their names may be, and how long a text. */
export const VALUES_LIMITS = { names: 50, name: '^[a-zA-Z0-9_-]{0,40}$', text: 500 } as const;

/** How a class that a field names appears: as a reference to a component in the published document, in place elsewhere. */
export type Nest = (type: Class, purpose: Purpose) => Schema;

/** The longest id that is looked up, and the longest text in a path unless its field takes more. */
export const MAX_REFERENCE = 128;
/** What a list in a request holds at most, unless its field says otherwise; in a query that is at most 100. */
const MAX_ITEMS = 1000;
export const MAX_QUERY_ITEMS = 100;
/** A ULID, as it follows a prefix. */
const ULID_PATTERN = '[0-7][0-9A-HJKMNP-TV-Z]{25}';
export const ULID_EXAMPLE = '01J0000000000000000000000A';

/** The schema of a class as an object: its fields, and which of them must be there. */
export function objectSchema(type: Class, purpose: Purpose, nest: Nest = inPlace): Schema {
  return schemaOfFields(fieldsOf(type), purpose, nest);
}

export function schemaOfFields(fields: readonly Field[], purpose: Purpose, nest: Nest = inPlace): Schema {
  const required = fields.filter((field) => !(purpose === 'answer' ? field.optional : mayBeAbsent(field))).map((field) => field.name);
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field.name, fieldSchema(asGiven(field, purpose), purpose, nest)])),
    // fast-json-stringify would write the required fields first; a serialiser keeps the order of declaration.
    ...(required.length > 0 && purpose !== 'serialise' && { required }),
  };
}

/** What a body may leave out may also be null there: it counts as left out. */
function asGiven(field: Field, purpose: Purpose): Field {
  return purpose === 'request' && mayBeAbsent(field) ? { ...field, nullable: true } : field;
}

function inPlace(type: Class, purpose: Purpose): Schema {
  const schema = objectSchema(type, purpose);
  // The checker removes what a class does not declare; a serialiser writes nothing else anyway.
  return purpose === 'check' ? { ...schema, additionalProperties: false } : schema;
}

export function fieldSchema(field: Field, purpose: Purpose, nest: Nest = inPlace): Schema {
  const bare = bareSchema(field, purpose, nest);
  const schema = field.nullable === true ? orNull(bare, purpose) : bare;
  if (purpose === 'check' || purpose === 'serialise') return schema;
  return { ...schema, description: field.doc, ...(field.example !== undefined && { examples: [field.example] }) };
}

function bareSchema(field: Field, purpose: Purpose, nest: Nest): Schema {
  switch (field.kind) {
    case 'const':
      return purpose === 'serialise' ? { const: field.value } : { type: 'string', const: field.value };
    case 'id':
      return referenceSchema(field.prefix, purpose);
    case 'ref':
      return referenceSchema(prefixOf(field.of()), purpose, field.orEnvironment);
    case 'text':
      return textSchema(field, purpose);
    case 'time':
      return textSchema({ format: 'date-time' }, purpose);
    case 'oneOf':
      return purpose === 'serialise' ? { type: 'string' } : { type: 'string', enum: field.values };
    case 'flag':
      return { type: 'boolean', ...(field.default !== undefined && purpose !== 'serialise' && { default: field.default }) };
    case 'integer':
      if (purpose === 'serialise') return { type: 'integer' };
      // One word says what is wrong with another value, whatever its type.
      if (field.values !== undefined) return { ...(purpose !== 'check' && { type: 'integer' }), enum: field.values };
      return {
        type: 'integer',
        minimum: field.minimum ?? Number.MIN_SAFE_INTEGER,
        maximum: field.maximum ?? Number.MAX_SAFE_INTEGER,
        ...(field.default !== undefined && { default: field.default }),
      };
    case 'map':
      // Limits and values are the decision's to refuse, as `invalid_metadata`.
      if (purpose === 'check') return { type: 'object' };
      return { type: 'object', additionalProperties: { type: purpose === 'request' ? ['string', 'null'] : 'string' } };
    case 'values':
      return valuesSchema(purpose);
    case 'json':
      return field.isObject === true ? { type: 'object', additionalProperties: true } : {};
    case 'nested':
      return nest(field.of(), purpose);
    case 'list':
      return listSchema(field, purpose, nest);
  }
}

function referenceSchema(prefix: string | null, purpose: Purpose, orEnvironment = false): Schema {
  if (purpose === 'serialise') return { type: 'string' };
  if (purpose === 'check' || prefix === null) return { type: 'string', maxLength: MAX_REFERENCE };
  return { type: 'string', pattern: `^${orEnvironment ? `(${prefix}|environment)` : prefix}_${ULID_PATTERN}$` };
}

type TextLimits = Omit<Extract<ListItems, { kind: 'text' }>, 'kind'>;

function textSchema(field: TextLimits, purpose: Purpose): Schema {
  if (purpose === 'serialise') return { type: 'string' };
  return {
    type: 'string',
    ...(field.min !== undefined && { minLength: field.min }),
    ...(field.max !== undefined && { maxLength: field.max }),
    ...(field.pattern !== undefined ? { pattern: portable(field.pattern) } : field.ascii && purpose !== 'check' && { pattern: '^[\\x01-\\x7F]*$' }),
    ...(field.format !== undefined && { format: purpose === 'check' ? field.format : PUBLISHED_FORMATS[field.format] }),
    ...(purpose === 'check' && { characters: field.ascii ? 'ascii' : field.visible ? 'visible' : 'text' }),
  };
}

/** JSON Schema knows no flags; its patterns are read as Unicode. */
function portable(pattern: RegExp): string {
  if (pattern.flags.replace('u', '') !== '') throw new Error(`A field's pattern cannot have flags: ${String(pattern)}.`);
  return pattern.source;
}

function valuesSchema(purpose: Purpose): Schema {
  const type = ['string', 'number', 'boolean'];
  if (purpose === 'serialise') return { type: 'object', additionalProperties: { type } };
  const value = { type: purpose === 'request' ? [...type, 'null'] : type, maxLength: VALUES_LIMITS.text, ...(purpose === 'check' && { characters: 'text' }) };
  return { type: 'object', maxProperties: VALUES_LIMITS.names, propertyNames: { pattern: VALUES_LIMITS.name }, additionalProperties: value };
}

function listSchema(field: Extract<Field, { kind: 'list' }>, purpose: Purpose, nest: Nest): Schema {
  const items = itemSchema(field.items, purpose, nest);
  if (purpose === 'serialise') return { type: 'array', items };
  const maxItems = field.maxItems ?? (purpose === 'answer' ? undefined : MAX_ITEMS);
  const limits = { ...(field.minItems !== undefined && { minItems: field.minItems }), ...(maxItems !== undefined && { maxItems }) };
  if (purpose !== 'check') return { type: 'array', ...limits, ...(field.unique === true && { uniqueItems: true }), items };
  // Items of a list that is too long anyway are not looked at: a body of a million wrong ones costs one error.
  return { type: 'array', ...limits, if: { maxItems }, then: { items } };
}

function itemSchema(items: ListItems, purpose: Purpose, nest: Nest): Schema {
  if (items.kind === 'nested') return nest(items.of(), purpose);
  if (items.kind === 'text' && items.known !== undefined && (purpose === 'request' || purpose === 'answer')) return { type: 'string', enum: items.known };
  if (items.kind === 'text') return textSchema(items, purpose);
  return purpose === 'serialise' ? { type: 'string' } : { type: 'string', enum: items.values };
}

function orNull(schema: Schema, purpose: Purpose): Schema {
  if (purpose === 'serialise') return { ...schema, nullable: true };
  if ('$ref' in schema) return { oneOf: [schema, { type: 'null' }] };
  return {
    ...schema,
    ...('type' in schema && { type: [schema['type'], 'null'] }),
    ...('enum' in schema && { enum: [...(schema['enum'] as readonly unknown[]), null] }),
  };
}

/** What names something in a path is looked up as it comes, up to this many characters. */
export function longestInPath(field: Field): number {
  return field.kind === 'text' ? Math.max(field.max ?? 0, MAX_REFERENCE) : MAX_REFERENCE;
}

/** The prefix of a resource's ids; null for a class without an id of its own. */
export function prefixOf(type: Class): string | null {
  const id = fieldsOf(type).find((field) => field.kind === 'id');
  return id?.kind === 'id' ? id.prefix : null;
}

export interface Places {
  readonly path: readonly Field[];
  readonly query: readonly Field[];
  readonly body: readonly Field[];
  /** Those of the body that may come in the query instead: criteria of a DELETE, whose body some clients cannot send. */
  readonly bodyOrQuery: readonly Field[];
}

/**
 * Where each field of an operation travels: in the path if its template names it; in the query of a GET or DELETE, or of what takes an upload; in the body of the rest,
 * and in either of a DELETE that says so.
 */
export function placesOf(operation: RegisteredOperation): Places {
  const fields = fieldsOf(operation.type);
  const { route, options } = operation;
  if (route === null) return { path: [], query: [], body: fields, bodyOrQuery: [] };
  const path = route.parameters.map((name) => {
    const field = fields.find((candidate) => candidate.name === name);
    if (field === undefined) throw new Error(`${operation.name} has no field for {${name}} of its path.`);
    return field;
  });
  const rest = fields.filter((field) => !path.includes(field));
  const inQuery = options.upload !== undefined || ((route.method === 'get' || route.method === 'delete') && options.body !== true);
  return { path, query: inQuery ? rest : [], body: inQuery ? [] : rest, bodyOrQuery: options.body === true ? rest : [] };
}
