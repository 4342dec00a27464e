import type { MetadataProperty, MetadataSchema } from '#libs/contracts/src/audit-log-schemas/audit-log-schema';
import type { FieldError } from '#libs/platform/src/domain-error';
import { isPlainText } from '#libs/platform/src/plain-text.decider';

// A schema is a caller's text: it is read by a closed list of keywords and walked as data. Nothing is generated from it, and nothing of it is compiled.

const KEYWORDS = new Set(['type', 'properties', 'required', 'additionalProperties']);
const PROPERTY_KEYWORDS = new Set(['type', 'enum', 'nullable']);
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean'] satisfies MetadataProperty['type'][]);
/** As of metadata itself: more names than that no event can have. */
const MAX_PROPERTIES = 50;
const NAME = /^[a-zA-Z0-9_-]{0,40}$/;
const MAX_VALUES = 500;
const LONGEST_VALUE = 500;

/** What metadata of an event holds. */
export type Metadata = Readonly<Record<string, string | number | boolean>>;

/** What is wrong with a schema: where, and why. */
export type Fault = Omit<FieldError, 'instancePath'>;

/**
 * Reads what metadata is to be like. `{}` and nothing: anything.
 * `field`: where it stands in the request. What is wrong with it is added to `faults`.
 */
export function readMetadataSchema(given: unknown, field: string, faults: Fault[]): MetadataSchema | null {
  const refuse = (code: string, at: string, message: string): null => {
    faults.push({ code, field: at, message: `${at} ${message}` });
    return null;
  };
  if (given === undefined || given === null) return null;
  const schema = givenKeywords(given);
  if (schema === null) return refuse('object', field, 'must be an object.');
  if (Object.keys(schema).length === 0) return null;
  for (const keyword of Object.keys(schema)) if (!KEYWORDS.has(keyword)) refuse('unknown_keyword', field, `may only have ${named(KEYWORDS)}.`);
  const { type, required, additionalProperties } = schema;
  if (type !== 'object') refuse('type', `${field}.type`, 'must be "object".');
  const properties = objectOf(schema['properties'] ?? {});
  if (properties === null) return refuse('object', `${field}.properties`, 'must be an object.');
  const names = Object.keys(properties);
  if (names.length > MAX_PROPERTIES) return refuse('too_many', `${field}.properties`, `must have at most ${MAX_PROPERTIES} properties.`);
  const read: Record<string, MetadataProperty> = Object.create(null) as Record<string, MetadataProperty>;
  for (const name of names) {
    if (!NAME.test(name)) refuse('name', `${field}.properties`, 'must have names of at most 40 letters, digits, hyphens and underscores.');
    const property = readProperty(properties[name], `${field}.properties.${name}`, refuse);
    if (property !== null) read[name] = property;
  }
  if (required !== undefined) {
    if (!Array.isArray(required) || !required.every((name) => typeof name === 'string') || new Set(required).size !== required.length)
      return refuse('required', `${field}.required`, 'must be a list of different names.');
    // A name that may not be there can never be.
    if (required.length > MAX_PROPERTIES || required.some((name) => !NAME.test(name) || (additionalProperties === false && !names.includes(name))))
      return refuse('contradiction', `${field}.required`, 'names what no metadata can have.');
  }
  if (additionalProperties !== undefined && typeof additionalProperties !== 'boolean')
    return refuse('boolean', `${field}.additionalProperties`, 'must be true or false.');
  return {
    type: 'object',
    properties: { ...read },
    ...(required !== undefined && { required }),
    ...(additionalProperties !== undefined && { additionalProperties }),
  };
}

function readProperty(given: unknown, field: string, refuse: (code: string, at: string, message: string) => null): MetadataProperty | null {
  const schema = givenKeywords(given);
  if (schema === null) return refuse('object', field, 'must be an object.');
  for (const keyword of Object.keys(schema))
    if (!PROPERTY_KEYWORDS.has(keyword)) return refuse('unknown_keyword', field, `may only have ${named(PROPERTY_KEYWORDS)}.`);
  const { type, enum: values, nullable } = schema;
  if (!TYPES.has(type)) return refuse('type', `${field}.type`, `must be one of ${named(TYPES)}.`);
  if (nullable !== undefined && typeof nullable !== 'boolean') return refuse('boolean', `${field}.nullable`, 'must be true or false.');
  const property = { type: type as MetadataProperty['type'], ...(nullable !== undefined && { nullable }) };
  if (values === undefined) return property;
  if (!Array.isArray(values) || values.length === 0 || values.length > MAX_VALUES || new Set(values).size !== values.length)
    return refuse('enum', `${field}.enum`, `must be a list of 1 to ${MAX_VALUES} different values.`);
  const isPossible = (value: unknown): boolean =>
    (value === null && nullable === true) ||
    (isOfType(value, property.type) && (typeof value !== 'string' || (isWithin(value, LONGEST_VALUE) && isPlainText(value))));
  if (!values.every(isPossible) || values.every((value) => value === null))
    return refuse('contradiction', `${field}.enum`, `names what no ${property.type} can be.`);
  return { ...property, enum: values as NonNullable<MetadataProperty['enum']> };
}

/** What of the metadata breaks its schema, by the places that JSON Schema names: `at` and below. */
export function faultsOfMetadata(schema: MetadataSchema, metadata: Metadata, at: string): readonly SchemaFault[] {
  // Null is the same as nothing in an event, so what may be null may be left out.
  const mayBeLeftOut = (name: string): boolean => Object.hasOwn(schema.properties, name) && schema.properties[name]!.nullable === true;
  const missing = (schema.required ?? []).filter((name) => !Object.hasOwn(metadata, name) && !mayBeLeftOut(name));
  return [
    ...missing.map((name) => ({ code: 'required', instancePath: at, message: `must have required property '${name}'` })),
    ...Object.entries(metadata).flatMap(([name, value]): SchemaFault[] => {
      if (!Object.hasOwn(schema.properties, name))
        return schema.additionalProperties === false
          ? [{ code: 'additionalProperties', instancePath: at, message: `must not have the property '${name}'` }]
          : [];
      const { type, enum: values } = schema.properties[name]!;
      const instancePath = `${at}/${name}`;
      if (!isOfType(value, type)) return [{ code: 'type', instancePath, message: `must be ${type}` }];
      return values === undefined || values.includes(value) ? [] : [{ code: 'enum', instancePath, message: 'must be one of the allowed values' }];
    }),
  ];
}

/** Where an event breaks its schema: a JSON pointer into it. */
export interface SchemaFault {
  readonly code: string;
  readonly instancePath: string;
  readonly message: string;
}

function isOfType(value: unknown, type: MetadataProperty['type']): boolean {
  return type === 'integer' ? Number.isInteger(value) : typeof value === type && (type !== 'number' || Number.isFinite(value));
}

/** What an object says: null for one that is none. PHP writes an empty one as `[]`. */
function objectOf(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null) return null;
  if (!Array.isArray(value)) return value as Readonly<Record<string, unknown>>;
  return value.length === 0 ? {} : null;
}

/** Keywords that are null were not given: clients of typed languages write them so. */
function givenKeywords(value: unknown): Readonly<Record<string, unknown>> | null {
  const keywords = objectOf(value);
  return keywords && Object.fromEntries(Object.entries(keywords).filter(([, each]) => each !== null));
}

/** Counted as those of metadata are, in which no character counts twice. */
function isWithin(text: string, characters: number): boolean {
  return text.length <= characters || (text.length <= 2 * characters && [...text].length <= characters);
}

function named(words: ReadonlySet<unknown>): string {
  return [...words].map((word) => `\`${String(word)}\``).join(', ');
}
