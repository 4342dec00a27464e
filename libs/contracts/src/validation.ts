import { DomainError, type FieldError } from '#libs/platform/src/domain-error';
import { checkerOf } from './checker.ts';
import { fieldsOf, mayBeAbsent, type Field } from './field.ts';
import { fieldSchema, MAX_QUERY_ITEMS, MAX_REFERENCE, placesOf, type Schema } from './json-schema.ts';
import type { Operation, RegisteredOperation } from './operation.ts';

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
  const { path, query: queried, body: inBody } = placesOf(operation);
  const { type } = operation;
  const check = checkerOf(checkSchema(operation));
  const pathNames = path.map((field) => field.name);
  const pathReaders = path.map(scalarReader);
  const queryReaders = queried.map((field) => ({ name: field.name, read: queryReader(field) }));
  const bodyNames = inBody.map((field) => field.name);
  const needsBody = inBody.some((field) => !mayBeAbsent(field));

  return (parameters, query, body) => {
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
    const errors = check(instance);
    if (errors !== null) throw invalid(errors);
    return instance as unknown as Operation;
  };
}

/** The schema that an instance of the operation meets once it is allowed in. */
function checkSchema(operation: RegisteredOperation): Schema {
  const { path, query, body } = placesOf(operation);
  const properties: Record<string, Schema> = {};
  for (const field of path) properties[field.name] = isLookedUp(field) ? { type: 'string', maxLength: MAX_REFERENCE } : fieldSchema(field, 'check');
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
      return (text) => (typeof text === 'string' && /^-?\d{1,15}$/.test(text) ? Number(text) : text);
    case 'flag':
      return (text) => (text === 'true' ? true : text === 'false' ? false : text);
    case 'nested':
    case 'map':
    case 'json':
    case 'list':
      throw new Error(`${field.name}: a ${field.kind} cannot travel in a path or a query.`);
    default:
      return (text) => text;
  }
}

/** A list in a query is comma joined, a repeated key, `key[]`, or all of these; an empty one counts as not given. */
function queryReader(field: Field): (query: Readonly<Record<string, unknown>>) => unknown {
  const { name } = field;
  if (field.kind !== 'list') {
    const read = scalarReader(field);
    return (query) => read(query[name]);
  }
  if (field.items.kind === 'nested') throw new Error(`${name}: a list of objects cannot travel in a query.`);
  const bracketed = `${name}[]`;
  return (query) => {
    const given = query[name];
    const more = query[bracketed];
    if (given === undefined && more === undefined) return undefined;
    const values = [given, more].flat().flatMap((text) => (typeof text === 'string' ? text.split(',') : (text ?? [])));
    return values.length === 1 && values[0] === '' ? undefined : values;
  };
}

function invalid(errors: readonly FieldError[]): DomainError {
  return new DomainError('invalid', 'invalid_request_parameters', 'Validation failed.', { errors });
}
