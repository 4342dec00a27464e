import fc from 'fast-check';
import { fieldsOf, mayBeAbsent, type Field, type ListItems } from '#libs/contracts/src/field';
import { longestInPath, MAX_QUERY_ITEMS, MAX_REFERENCE, placesOf, prefixOf, VALUES_LIMITS } from '#libs/contracts/src/json-schema';
import type { Class, Method, RegisteredOperation } from '#libs/contracts/src/operation';
import { isVisibleText } from '#libs/contracts/src/text-formats';
import { seededNumbers, seedOf } from './seed.ts';

const chosen = seededNumbers(seedOf('generated values'));

/** A request as it is sent. */
export interface GeneratedRequest {
  readonly method: Method;
  /** Percent-encoded, with the query. */
  readonly path: string;
  /** Undefined: none is sent. */
  readonly body: unknown;
  /** What the body is, as text, where it is no JSON. */
  readonly type?: string;
}

/** The one place in which a request is wrong. */
export interface Breakage {
  readonly place: 'path' | 'query' | 'body';
  /** As the answer names it: `domain_data.0.domain`. */
  readonly field: string;
  /** The code that the answer gives. */
  readonly code: string;
}

export interface BrokenRequest {
  readonly request: GeneratedRequest;
  readonly broken: Breakage;
}

/** Ids of existing objects of a class, where there are any; other ids are made up. */
export type KnownIds = (type: Class) => readonly string[];

type Values = Readonly<Record<string, unknown>>;

interface Parts {
  readonly path: Values;
  readonly query: Values;
  readonly body: unknown;
}

/** Requests that validation takes; what they mean may still be refused. Criteria that may come in the query come in the body. */
export function validRequest(operation: RegisteredOperation, known: KnownIds = () => []): fc.Arbitrary<GeneratedRequest> {
  return partsOf(operation, known).map((parts) => assembled(operation, parts));
}

/** Requests that are valid except in one place. Null for an operation that nothing can be wrong with. */
export function brokenRequest(operation: RegisteredOperation, known: KnownIds = () => []): fc.Arbitrary<BrokenRequest> | null {
  const wrongs = wrongsOf(operation);
  if (wrongs.length === 0) return null;
  return fc.tuple(partsOf(operation, known), fc.constantFrom(...wrongs)).map(([parts, { place, field, code, spoil }]) => ({
    request: assembled(operation, { ...parts, [place]: spoil(parts[place]) }),
    broken: { place, field, code },
  }));
}

/** A field by which an operation names an object of another environment, if it is let. */
export interface Reference {
  readonly place: 'path' | 'query' | 'body';
  readonly field: string;
  /** The list whose objects have the field; null: the request itself has it. */
  readonly within: string | null;
  readonly of: Class;
  /** Whether it must belong to the same organization as the other references. */
  readonly sameOrganization: boolean;
}

export function referencesOf(operation: RegisteredOperation): readonly Reference[] {
  const { path, query, body } = placesOf(operation);
  return Object.entries({ path, query, body }).flatMap(([place, fields]: [string, readonly Field[]]) =>
    fields.flatMap((field) => {
      if (field.kind === 'list' && field.items.kind === 'nested')
        return fieldsOf(field.items.of()).flatMap((inner) => referenceOf(inner, place as Reference['place'], field.name));
      return referenceOf(field, place as Reference['place'], null);
    }),
  );
}

function referenceOf(field: Field, place: Reference['place'], within: string | null): readonly Reference[] {
  if (field.kind !== 'ref') return [];
  return [{ place, field: field.name, within, of: field.of(), sameOrganization: field.sameOrganization === true }];
}

/** Valid requests in which one reference holds the given id. */
export function requestNaming(
  operation: RegisteredOperation,
  { place, field, within }: Reference,
  id: string,
  known: KnownIds = () => [],
): fc.Arbitrary<GeneratedRequest> {
  return partsOf(operation, known)
    .map((parts) => ({ parts, values: parts[place] as Values }))
    .filter(({ values }) => within === null || itemsOf(values, within).length > 0)
    .map(({ parts, values }) => {
      const named = within === null ? { [field]: id } : { [within]: itemsOf(values, within).map((item) => ({ ...item, [field]: id })) };
      return assembled(operation, { ...parts, [place]: { ...values, ...named } });
    });
}

function itemsOf(values: Values, list: string): readonly Values[] {
  return (values[list] ?? []) as readonly Values[];
}

function partsOf(operation: RegisteredOperation, known: KnownIds): fc.Arbitrary<Parts> {
  const { path, body, query: queried } = placesOf(operation);
  const query = queried.map((field) => asCursor(field, operation));
  return fc.record({
    path: fc.record(Object.fromEntries(path.map((field) => [field.name, pathValue(field, known)]))),
    // A comma in a value of a list would make two of it.
    query: objectOf(query, known).filter(
      (values) => !Object.values(values).some((value) => Array.isArray(value) && value.some((item) => item === '' || String(item).includes(','))),
    ),
    body: body.length === 0 ? fc.constant(undefined) : objectOf(body, known),
  });
}

/** A cursor is the id of what is listed. */
function asCursor(field: Field, { options: { answers } }: RegisteredOperation): Field {
  const isCursor = (answers.shape === 'list' || answers.shape === 'feed') && (field.name === 'after' || field.name === 'before');
  return isCursor ? { ...field, kind: 'ref', of: () => answers.of! } : field;
}

/** What is uploaded may be anything: whoever carries it out tells later what is wrong with it. */
const UPLOADED = '{}\n';

function assembled({ route, options }: RegisteredOperation, { path: named, query, body }: Parts): GeneratedRequest {
  if (route === null) throw new Error('An internal operation has no request.');
  const search = Object.entries(query).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent([value].flat().join(','))}`);
  const filled = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(named[name])));
  const path = search.length === 0 ? filled : `${filled}?${search.join('&')}`;
  return options.upload === undefined
    ? { method: route.method, path, body }
    : { method: route.method, path, body: UPLOADED, type: options.upload.contentTypes[0]! };
}

// ── values ──

const CHARACTERS = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) },
  { weight: 1, arbitrary: fc.constantFrom('ü', '😀', '\u2028', '\n', '\u0001', 'İ', 'ß') },
);
const ASCII = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code));
/** Longer texts add time and find nothing. */
const LONG = 40;
const PLAIN_KEYS = fc.constantFrom('plan', 'seats', 'constructor', 'prototype', 'toString');
const STRANGE_KEYS = fc.constantFrom('plan', '', 'ü', '__defineGetter__', ' ');
const ULID = fc.stringMatching(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
const FORMATS = {
  'date-time': fc.date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }).map((date) => date.toISOString()),
  'date-or-time': fc.constantFrom('2026-01-15', '2026-01-15T12:00:00Z', '2026-01-15T12:00:00.1234567+01:00'),
  uri: fc.constantFrom('https://acme.test/', 'http://127.0.0.1:1/hook?a=b'),
  hostname: fc.domain(),
  email: fc.constantFrom('ada@acme.test', 'ADA+x@acme.test'),
} as const;

function objectOf(fields: readonly Field[], known: KnownIds): fc.Arbitrary<Values> {
  const optional = fields.filter(mayBeAbsent).map((field) => field.name);
  const model = Object.fromEntries(fields.map((field) => [field.name, fieldValue(field, known)]));
  // A record that leaves keys out by itself has most of them most of the time.
  return fc
    .tuple(fc.record(model), fc.subarray(optional))
    .map(([values, chosen]) => Object.fromEntries(Object.entries(values).filter(([name]) => !optional.includes(name) || chosen.includes(name))));
}

function fieldValue(field: Field, known: KnownIds): fc.Arbitrary<unknown> {
  const value = bareValue(field, known);
  return field.nullable === true ? fc.option(value, { nil: null, freq: 4 }) : value;
}

function bareValue(field: Field, known: KnownIds): fc.Arbitrary<unknown> {
  switch (field.kind) {
    case 'const':
      return fc.constant(field.value);
    case 'id':
      return ULID.map((ulid) => `${field.prefix}_${ulid}`);
    case 'ref':
      return idOf(field.of(), known);
    case 'text':
      return typeof field.example === 'string' ? fc.oneof(fc.constant(field.example), textValue(field)) : textValue(field);
    case 'time':
      return FORMATS['date-time'];
    case 'oneOf':
      return fc.constantFrom(...field.values);
    case 'flag':
      return fc.boolean();
    case 'integer':
      return field.values === undefined ? fc.integer({ min: field.minimum ?? -1000, max: field.maximum ?? 1000 }) : fc.constantFrom(...field.values);
    case 'map':
      return fc.oneof({ weight: 2, arbitrary: metadataOf(PLAIN_KEYS, ASCII) }, { weight: 1, arbitrary: metadataOf(STRANGE_KEYS, CHARACTERS) });
    case 'values':
      return fc.oneof({ weight: 2, arbitrary: valuesOf(PLAIN_KEYS, ASCII) }, { weight: 1, arbitrary: valuesOf(PLAIN_KEYS, CHARACTERS) });
    case 'json':
      return fc.jsonValue({ maxDepth: 2 });
    case 'nested':
      return objectOf(fieldsOf(field.of()), known);
    case 'list':
      return fc.array(itemValue(field.items, known), {
        minLength: field.minItems ?? 0,
        maxLength: Math.max(field.minItems ?? 0, Math.min(field.maxItems ?? 3, 3)),
      });
  }
}

function metadataOf(keys: fc.Arbitrary<string>, characters: fc.Arbitrary<string>): fc.Arbitrary<Values> {
  const value = fc.array(characters, { maxLength: 10 }).map((all) => all.join(''));
  return fc.dictionary(keys, fc.option(value, { freq: 8 }), { maxKeys: 4, noNullPrototype: true });
}

function valuesOf(names: fc.Arbitrary<string>, characters: fc.Arbitrary<string>): fc.Arbitrary<Values> {
  const text = fc.array(characters, { maxLength: 10 }).map((all) => all.join(''));
  const value = fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean());
  return fc.dictionary(names, fc.option(value, { freq: 8 }), { maxKeys: 4, noNullPrototype: true });
}

function itemValue(items: ListItems, known: KnownIds): fc.Arbitrary<unknown> {
  if (items.kind === 'nested') return objectOf(fieldsOf(items.of()), known);
  if (items.kind === 'oneOf') return fc.constantFrom(...items.values);
  // Most lists of texts are of domain names.
  return items.format === undefined && items.pattern === undefined ? fc.oneof(FORMATS.hostname, textValue(items)) : textValue(items);
}

function textValue({ min = 0, max = LONG, pattern, format, ascii, visible }: Omit<Extract<ListItems, { kind: 'text' }>, 'kind'>): fc.Arbitrary<string> {
  if (visible === true && format === undefined) return textValue({ min, max, pattern, ascii }).filter(isVisibleText);
  if (format !== undefined) return FORMATS[format];
  if (pattern !== undefined) return fc.stringMatching(pattern).filter((text) => text.length >= min && text.length <= max);
  return fc.array(ascii ? ASCII : CHARACTERS, { minLength: min, maxLength: Math.max(min, Math.min(max, LONG)) }).map((characters) => characters.join(''));
}

function idOf(type: Class, known: KnownIds): fc.Arbitrary<string> {
  const prefix = prefixOf(type);
  const unknown = fc.oneof(
    ULID.map((ulid) => (prefix === null ? ulid : `${prefix}_${ulid}`)),
    textValue({ min: 1, max: 20 }),
  );
  const ids = known(type);
  return ids.length === 0 ? unknown : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...ids) }, { weight: 1, arbitrary: unknown });
}

/** What names something in a path; never the two texts that a URL takes for a direction. */
function pathValue(field: Field, known: KnownIds): fc.Arbitrary<unknown> {
  if (field.kind !== 'text') return bareValue(field, known).filter(isSegment);
  const anything = textValue({ min: 1, max: Math.min(field.max ?? LONG, longestInPath(field)) }).filter(isSegment);
  return typeof field.example === 'string' ? fc.oneof(fc.constant(field.example), anything) : anything;
}

function isSegment(value: unknown): boolean {
  return value !== '' && value !== '.' && value !== '..';
}

// ── one wrong place ──

interface Wrong extends Breakage {
  /** The place's values with the wrong one in them. */
  readonly spoil: (values: unknown) => unknown;
}

type WrongValue = Pick<Wrong, 'field' | 'code' | 'spoil'>;

function wrongsOf(operation: RegisteredOperation): readonly Wrong[] {
  const { path, query, body, bodyOrQuery } = placesOf(operation);
  return [
    ...path
      .filter((field) => ['id', 'ref', 'text'].includes(field.kind))
      .map((field) => ({ place: 'path' as const, ...set(field.name, 'too_long', 'x'.repeat(longestInPath(field) + 1)) })),
    ...query
      .flatMap((field) => wrongsOfField(field.kind === 'list' ? { ...field, maxItems: field.maxItems ?? MAX_QUERY_ITEMS } : field, 'query'))
      .map((wrong) => ({ place: 'query' as const, ...wrong })),
    ...body.flatMap((field) => wrongsOfField(field, 'body')).map((wrong) => ({ place: 'body' as const, ...wrong })),
    ...(body.some((field) => !mayBeAbsent(field)) && bodyOrQuery.length === 0 ? [undefined, null, [1], 'text', 1] : []).map((value) => ({
      place: 'body' as const,
      field: '',
      code: 'invalid_type',
      spoil: () => value,
    })),
  ];
}

function wrongsOfField(field: Field, place: 'query' | 'body'): readonly WrongValue[] {
  const { name } = field;
  const missing: WrongValue[] = mayBeAbsent(field)
    ? []
    : [{ field: name, code: 'required', spoil: (values) => Object.fromEntries(Object.entries(values as Values).filter(([key]) => key !== name)) }];
  const isNull: WrongValue[] =
    field.nullable === true || field.kind === 'json' || place === 'query' || mayBeAbsent(field)
      ? []
      : [set(name, field.kind === 'const' || 'values' in field ? 'not_allowed' : 'invalid_type', null)];
  return [...missing, ...isNull, ...wrongValues(field, place)];
}

function wrongValues(field: Field, place: 'query' | 'body'): readonly WrongValue[] {
  const { name } = field;
  const wrongType = (value: unknown): WrongValue[] => (place === 'body' ? [set(name, 'invalid_type', value)] : []);
  switch (field.kind) {
    case 'const':
    case 'oneOf':
      return [set(name, 'not_allowed', 'no such value')];
    case 'id':
    case 'ref':
      return [...wrongType(1), set(name, 'too_long', 'x'.repeat(MAX_REFERENCE + 1))];
    case 'text':
      return [...wrongType(true), ...wrongTexts(field).map(([code, text]) => set(name, code, text))];
    case 'time':
      return [...wrongType(0), set(name, 'invalid_format', '2026-02-30T00:00:00.000Z')];
    case 'flag':
      return [set(name, 'invalid_type', 'yes')];
    case 'integer':
      if (field.values !== undefined) return [Math.max(...field.values) + 1, '1.5'].map((value) => set(name, 'not_allowed', value));
      return [
        set(name, 'invalid_type', '1.5'),
        ...(field.minimum === undefined ? [] : [set(name, 'out_of_range', field.minimum - 1)]),
        ...(field.maximum === undefined ? [] : [set(name, 'out_of_range', field.maximum + 1)]),
      ];
    case 'map':
      return [set(name, 'invalid_type', 'text'), set(name, 'invalid_type', ['a'])];
    case 'values':
      return [
        set(name, 'invalid_type', 'text'),
        set(name, 'invalid_type', ['a']),
        set(name, 'too_many', Object.fromEntries(Array.from({ length: VALUES_LIMITS.names + 1 }, (_, index) => [`name_${index}`, index]))),
        ...[`x`.repeat(41), 'a b', 'é'].map((wrong) => set(name, 'invalid_name', { [wrong]: 'text' })),
        ...[['a'], {}].map((value) => ({ ...set(name, 'invalid_type', { name: value }), field: `${name}.name` })),
        { ...set(name, 'too_long', { name: 'x'.repeat(VALUES_LIMITS.text + 1) }), field: `${name}.name` },
        ...['\ud800', 'a\0'].map((text) => ({ ...set(name, 'invalid_characters', { name: text }), field: `${name}.name` })),
      ];
    case 'json':
      return [];
    case 'nested': {
      const inner = fieldsOf(field.of()).flatMap((each) => wrongsOfField(each, place));
      return [
        set(name, 'invalid_type', 'text'),
        ...inner.map((wrong) =>
          within(
            name,
            wrong,
            (value) =>
              value ??
              fc.sample(
                objectOf(fieldsOf(field.of()), () => []),
                { numRuns: 1, seed: chosen(2 ** 31) },
              )[0],
          ),
        ),
      ];
    }
    case 'list':
      return [...wrongType({}), ...wrongLists(field, place)];
  }
}

function wrongLists(field: Extract<Field, { kind: 'list' }>, place: 'query' | 'body'): readonly WrongValue[] {
  const { name, items, maxItems, minItems } = field;
  const one = (): unknown =>
    fc.sample(
      itemValue(items, () => []),
      { numRuns: 1, seed: chosen(2 ** 31) },
    )[0];
  const first: readonly WrongValue[] =
    items.kind === 'nested'
      ? fieldsOf(items.of()).flatMap((each) => wrongsOfField(each, place))
      : items.kind === 'oneOf'
        ? [{ field: '', code: 'not_allowed', spoil: () => 'no such value' }]
        : wrongTexts(items).map(([code, text]) => ({ field: '', code, spoil: () => text }));
  return [
    ...(maxItems === undefined
      ? []
      : [
          set(
            name,
            'too_many',
            Array.from({ length: maxItems + 1 }, () => (items.kind === 'nested' ? one() : 'x')),
          ),
        ]),
    ...(minItems === undefined || minItems === 0 || place === 'query' ? [] : [set(name, 'too_few', [])]),
    // An empty text is no value of a list in a query.
    ...first
      .filter(({ code }) => place === 'body' || code !== 'too_short')
      .map(({ field: inner, code, spoil }) => ({
        field: inner === '' ? `${name}.0` : `${name}.0.${inner}`,
        code,
        spoil: (values: unknown) => ({ ...(values as Values), [name]: [spoil(one())] }),
      })),
  ];
}

/** Texts that break exactly one limit. */
function wrongTexts({ min, max, pattern, format, ascii, visible }: Omit<Extract<ListItems, { kind: 'text' }>, 'kind'>): readonly (readonly [string, string])[] {
  const hidden = visible === true ? [['invalid_characters', 'a\u200bda@acme.test'] as const] : [];
  if (format !== undefined) return [['invalid_format', 'no such thing'], ...hidden];
  const valid = fc.sample(textValue({ min: Math.max(min ?? 1, 1), max, pattern, ascii }), { numRuns: 1, seed: 1 })[0]!;
  return [
    ...(max === undefined || pattern !== undefined ? [] : [['too_long', 'x'.repeat(max + 1)] as const]),
    ...(min === undefined || min === 0 || pattern !== undefined ? [] : [['too_short', 'x'.repeat(min - 1)] as const]),
    ...(pattern === undefined ? [['invalid_characters', `${valid.slice(0, -1)}\0`] as const] : []),
    ...hidden,
    ...(ascii === true && pattern === undefined ? [['invalid_characters', `${valid.slice(0, -1)}ü`] as const] : []),
  ];
}

function set(name: string, code: string, value: unknown): WrongValue {
  return { field: name, code, spoil: (values) => ({ ...(values as Values), [name]: value }) };
}

function within(name: string, { field, code, spoil }: WrongValue, present: (value: unknown) => unknown): WrongValue {
  return { field: `${name}.${field}`, code, spoil: (values) => ({ ...(values as Values), [name]: spoil(present((values as Values)[name])) }) };
}
