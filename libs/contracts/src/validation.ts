import { DomainError, type FieldError } from '#libs/platform/src/domain-error';
import { checkerOf } from './checker.ts';
import { fieldsOf, mayBeAbsent, type Field } from './field.ts';
import { fieldSchema, longestInPath, MAX_QUERY_ITEMS, placesOf, type Schema } from './json-schema.ts';
import type { Operation, RegisteredOperation } from './operation.ts';
import { bracketedLists } from './query-brackets.ts';
import { unsetNulls } from './unset-nulls.ts';

/**
 * Turns what came over HTTP into an instance of the operation's class that holds the fields given, and nothing else. Nested objects of `body`
 * lose what their class does not declare.
 * @throws DomainError `invalid_request_parameters`, naming each field
 */
export type RequestValidator<O extends Operation = Operation> = (
  parameters: Readonly<Record<string, string>>,
  query: Readonly<Record<string, unknown>>,
  body: unknown,
) => O;

const compiled = new WeakMap<RegisteredOperation, RequestValidator>();

/** The operation's validator, compiled at its first use. */
export function validatorOf<O extends Operation>(operation: RegisteredOperation): RequestValidator<O> {
  let validator = compiled.get(operation);
  if (validator === undefined) {
    validator = compile(operation);
    compiled.set(operation, validator);
  }
  return validator as RequestValidator<O>;
}

/**
 * Turns the fields of a message between services into an instance of the operation's class that holds those declared, and nothing else. They were read from
 * text before they were sent, so all are of their own types.
 * @throws DomainError `invalid_request_parameters`, naming each field
 */
export type MessageValidator = (fields: unknown) => Operation;

const compiledForMessages = new WeakMap<RegisteredOperation, MessageValidator>();

/** The validator of an operation that another service sent, compiled at its first use. */
export function messageValidatorOf(operation: RegisteredOperation): MessageValidator {
  let validator = compiledForMessages.get(operation);
  if (validator === undefined) {
    validator = compileForMessages(operation);
    compiledForMessages.set(operation, validator);
  }
  return validator;
}

function compileForMessages(operation: RegisteredOperation): MessageValidator {
  const { type } = operation;
  const names = fieldsOf(type).map((field) => field.name);
  const check = checkerOf(checkSchema(operation));
  return (fields) => {
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
      throw invalid([{ code: 'invalid_type', field: '', message: 'The fields must be a JSON object.' }]);
    const instance = new type() as unknown as Record<string, unknown>;
    for (const name of names) if (Object.hasOwn(fields, name)) instance[name] = (fields as Record<string, unknown>)[name];
    const errors = check(instance);
    if (errors !== null) throw invalid(errors);
    return instance as unknown as Operation;
  };
}

function compile(operation: RegisteredOperation): RequestValidator {
  const { path, query: queried, body: inBody, bodyOrQuery } = placesOf(operation);
  const { type } = operation;
  const check = checkerOf(checkSchema(operation));
  const pathNames = path.map((field) => field.name);
  const pathReaders = path.map(scalarReader);
  const queryReaders = queried.map((field) => ({ name: field.name, read: queryReader(field) }));
  const criteriaReaders = bodyOrQuery.map((field) => ({ name: field.name, read: queryReader(field) }));
  const lists = new Set([...queried, ...bodyOrQuery].filter(({ kind }) => kind === 'list').map(({ name }) => name));
  const whole = new Set(queried.flatMap((field) => (field.kind === 'list' && field.commas !== undefined ? [field.name] : [])));
  const bodyNames = inBody.map((field) => field.name);
  const needsBody = bodyOrQuery.length === 0 && inBody.some((field) => !mayBeAbsent(field));
  // Elsewhere a query means nothing: .NET repeats there what is in the body.
  const isFiltered = queried.length + bodyOrQuery.length > 0 || operation.route?.method === 'get' || operation.route?.method === 'delete';
  const unset = unsetNulls(inBody);

  return (parameters, given, inBodyGiven) => {
    const query = isFiltered ? bracketedLists(given, lists, whole) : given;
    const body = emptyObjectOf(inBodyGiven);
    // One schema for all places: names are unique in a class, so the instance itself is what is checked.
    const instance = new type() as unknown as Record<string, unknown>;
    for (let index = 0; index < pathNames.length; index++) instance[pathNames[index]!] = pathReaders[index]!(parameters[pathNames[index]!]);
    for (const { name, read } of queryReaders) {
      const value = read(query);
      if (value !== undefined) instance[name] = value;
    }
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) {
      for (const name of bodyNames) {
        const value = (body as Record<string, unknown>)[name];
        if (value !== undefined) instance[name] = value;
      }
    } else if (needsBody || (body != null && bodyNames.length > 0)) {
      throw invalid([{ code: 'invalid_type', field: '', message: 'The body must be a JSON object.' }]);
    }
    unset(instance);
    for (const { name, read } of criteriaReaders) {
      const value = read(query);
      if (value === undefined) continue;
      if (instance[name] !== undefined && instance[name] !== value) throw invalid([givenTwice(name)]);
      instance[name] = value;
    }
    const errors = check(instance);
    if (errors !== null) throw invalid(errors);
    return instance as unknown as Operation;
  };
}

/** The schema that an instance of the operation meets once it is allowed in. */
function checkSchema(operation: RegisteredOperation): Schema {
  const { path, query, body } = placesOf(operation);
  const properties: Record<string, Schema> = {};
  for (const field of path) properties[field.name] = isLookedUp(field) ? { type: 'string', maxLength: longestInPath(field) } : fieldSchema(field, 'check');
  for (const field of query)
    properties[field.name] = fieldSchema(field.kind === 'list' ? { ...field, maxItems: field.maxItems ?? MAX_QUERY_ITEMS } : field, 'check');
  for (const field of body) properties[field.name] = fieldSchema(field, 'check');
  const required = [...path, ...query, ...body].filter((field) => !mayBeAbsent(field)).map((field) => field.name);
  return { type: 'object', properties, required };
}

/** Text in a path names something: what cannot exist is not found, rather than invalid. */
function isLookedUp(field: Field): boolean {
  return field.kind === 'id' || field.kind === 'ref' || field.kind === 'text';
}

/** Reads text as what the field holds; text that is no such thing stays text, and the schema refuses it. */
function scalarReader(field: Field): (text: unknown) => unknown {
  switch (field.kind) {
    case 'integer':
      // One that a number cannot hold comes out larger than any that a field takes.
      return (text) => (typeof text === 'string' && /^-?\d+$/.test(text) ? Number(text) : text);
    case 'flag':
      return (text) => (text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text);
    case 'nested':
    case 'map':
    case 'values':
    case 'json':
    case 'list':
      throw new Error(`${field.name}: a ${field.kind} cannot travel in a path or a query.`);
    default:
      return (text) => text;
  }
}

/** Reads the texts of a form as what the operation's fields hold; objects cannot travel in one. */
export function formReaderOf(operation: RegisteredOperation): (form: Readonly<Record<string, string>>) => Readonly<Record<string, unknown>> {
  const readers = new Map(
    placesOf(operation)
      .body.filter(({ kind }) => kind === 'integer' || kind === 'flag')
      .map((field) => [field.name, scalarReader(field)]),
  );
  return (form) => Object.fromEntries(Object.entries(form).map(([name, text]) => [name, readers.get(name)?.(text) ?? text]));
}

/** A list in a query is comma joined, a repeated key, or both; `bracketedLists` has put what came in brackets beside it. An empty one counts as not given. */
function queryReader(field: Field): (query: Readonly<Record<string, unknown>>) => unknown {
  const { name } = field;
  if (field.kind !== 'list') {
    const read = scalarReader(field);
    return (query) => read(query[name]);
  }
  if (field.items.kind === 'nested') throw new Error(`${name}: a list of objects cannot travel in a query.`);
  return (query) => {
    const given = query[name];
    if (given === undefined) return undefined;
    const values = [given].flat().flatMap((text) => (typeof text === 'string' ? text.split(',') : (text ?? [])));
    return values.length === 1 && values[0] === '' ? undefined : values;
  };
}

/** PHP writes an empty object as `[]`. */
function emptyObjectOf(body: unknown): unknown {
  return Array.isArray(body) && body.length === 0 ? {} : body;
}

function givenTwice(field: string): FieldError {
  return { code: 'given_twice', field, message: `${field} has one value in the query and another one in the body.` };
}

function invalid(errors: readonly FieldError[]): DomainError {
  return new DomainError('invalid', 'invalid_request_parameters', 'Validation failed.', { errors });
}
