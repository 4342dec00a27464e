import type { OpenApiDocument } from '#libs/contracts/src/openapi';
import { DocumentSchemas } from './document-schemas.ts';

type Json = Readonly<Record<string, unknown>>;
/** Header names in lower case, as Node and fetch give them. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

const schemas = new WeakMap<OpenApiDocument, DocumentSchemas>();
const templates = new WeakMap<OpenApiDocument, readonly Template[]>();

/**
 * Holds an answer to the document: its status is declared for the operation, its headers are there, its body has the declared fields and no
 * others. `path` is what was asked, query included; `body` the text or the value parsed from it.
 * @throws Error that names every divergence
 */
export function answerMatches(document: OpenApiDocument, method: string, path: string, status: number, headers: AnswerHeaders, body: unknown): void {
  const value = valueOf(body);
  const declared = responsesFor(document, method.toLowerCase(), path.split('?', 1)[0]!, value).map((response) => resolved(document, response[String(status)]));
  const problems = declared.map((response) => (response === undefined ? [`status ${status} is not declared`] : problemsOf(document, response, headers, value)));
  if (problems.some((found) => found.length === 0)) return;
  const shown = value === undefined ? 'no body' : JSON.stringify(value).slice(0, 500);
  throw new Error(`${method.toUpperCase()} ${path} answered ${status} otherwise than the API document says: ${(problems[0] ?? []).join('; ')} (${shown})`);
}

/** What an answer to this request may be, by status: each is tried, and one has to fit. */
function responsesFor(document: OpenApiDocument, method: string, path: string, value: unknown): readonly Json[] {
  const template = templateOf(document, path, 'segments') ?? (codeOf(value) === 'route_not_found' ? undefined : templateOf(document, path, 'anything'));
  const operation = template === undefined ? undefined : document.paths[template]?.[method];
  if (operation !== undefined) return [operation.responses];
  const { MethodNotAllowed, RouteNotFound, ...early } = document.components.responses;
  // Before a route is looked for, a request may have been refused as such.
  const common = Object.values(early).map((response) => byEveryStatus(response));
  return [template === undefined ? { 404: RouteNotFound } : { 405: MethodNotAllowed }, ...common];
}

/** Common responses do not say their status; their codes tell them apart. */
function byEveryStatus(response: Json): Json {
  return new Proxy({}, { get: () => response });
}

/** A path of the document, and what fits it: each placeholder one segment, or whatever there is. */
interface Template {
  readonly path: string;
  readonly segments: RegExp;
  readonly anything: RegExp;
}

/** The template that a path fits: the one with the fewest placeholders, since static segments come first. */
function templateOf(document: OpenApiDocument, path: string, placeholders: 'segments' | 'anything'): string | undefined {
  return templatesOf(document).find((template) => template[placeholders].test(path))?.path;
}

/** Those with the fewest placeholders first. They are compiled once: every answer of every spec is held to them. */
function templatesOf(document: OpenApiDocument): readonly Template[] {
  let found = templates.get(document);
  if (found === undefined) {
    const compiled = (path: string, placeholder: string) => new RegExp(`^${path.replaceAll(/[.]/g, '\\.').replaceAll(/\{\w+\}/g, placeholder)}$`);
    found = Object.keys(document.paths)
      .sort((one, other) => one.split('{').length - other.split('{').length)
      .map((path) => ({ path, segments: compiled(path, '[^/]+'), anything: compiled(path, '.+') }));
    templates.set(document, found);
  }
  return found;
}

function problemsOf(document: OpenApiDocument, response: Json, headers: AnswerHeaders, value: unknown): readonly string[] {
  const compiled = schemasOf(document);
  const problems: string[] = [];
  for (const [name, header] of Object.entries((response['headers'] ?? {}) as Record<string, Json>)) {
    const given = headers[name.toLowerCase()];
    if (given !== undefined)
      problems.push(...compiled.problemsOf(resolved(document, header)!['schema'], String(given)).map((problem) => `header ${name}: ${problem}`));
    else if (ALWAYS.includes(name) && !(name === 'Retry-After' && MAY_BE_LATE.includes(codeOf(value)))) problems.push(`header ${name} is missing`);
  }
  const content = (response['content'] as Record<string, Json> | undefined)?.['application/json'];
  const type = String(headers['content-type'] ?? '');
  if (content === undefined) {
    if (value !== undefined) problems.push('there is a body where none is declared');
    if (type.includes('json')) problems.push('an empty body claims to be JSON');
    return problems;
  }
  if (!type.startsWith('application/json')) problems.push(`the content type is '${type}'`);
  return [...problems, ...compiled.problemsOf(content['schema'], value)];
}

/** Declared headers that may not be left out. */
const ALWAYS = ['X-Request-ID', 'Retry-After', 'Allow'];
/** Where the wait may be longer than a minute, clients are not told of it: they would sleep for as long. */
const MAY_BE_LATE: readonly unknown[] = ['blob_store_not_configured', 'daily_quota_exceeded', 'event_log_damaged', 'rate_limit_exceeded'];

function schemasOf(document: OpenApiDocument): DocumentSchemas {
  let found = schemas.get(document);
  if (found === undefined) schemas.set(document, (found = new DocumentSchemas(document, 'closed')));
  return found;
}

function resolved(document: OpenApiDocument, object: unknown): Json | undefined {
  const reference = (object as Json | undefined)?.['$ref'];
  if (typeof reference !== 'string') return object as Json | undefined;
  const [kind, name] = reference.split('/').slice(2) as [string, string];
  return (document.components[kind] as Record<string, Json>)[name];
}

function valueOf(body: unknown): unknown {
  if (body === '' || body === null) return undefined;
  if (typeof body !== 'string') return body;
  try {
    return JSON.parse(body);
  } catch {
    throw new Error(`The body is not JSON: ${body.slice(0, 200)}`);
  }
}

function codeOf(value: unknown): unknown {
  return (value as Json | undefined)?.['code'];
}
