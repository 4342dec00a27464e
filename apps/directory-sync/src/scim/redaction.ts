import { isIdOf } from '#libs/platform/src/ids';
import type { ScimFilter } from '../domain/scim-filter.decider.ts';
import { isObject, valueOf, type Attributes } from '../domain/scim-values.decider.ts';
import { parseFilter } from './parse-filter.ts';

/** What may be personal, or cannot be told to be anything else. */
const LEFT_OUT = '…';
/** Names of attributes are words; what is longer, or has many digits, may be a secret in their place. */
const NAME = /^(?!.*\d.*\d.*\d.*\d)[\w$-]{1,32}(\.[\w$-]{1,32}){0,2}$|^urn:[\w:.$-]{1,124}$/i;
const KINDS: ReadonlySet<string> = new Set(['.search', 'User', 'Group']);
const QUERY = ['filter', 'startIndex', 'count', 'attributes', 'excludedAttributes', 'sortBy', 'sortOrder'];
const MOST_NAMES = 50;
const LONGEST_NAME = 128;
const LONGEST_TEXT = 512;

/** The path of a request below the address of its directory, with names and our own ids alone: clients put what is personal anywhere. */
export function shownPath([kind, ...segments]: readonly string[], query: Attributes): string {
  const path = [
    ...(kind === undefined ? [] : [/^\.?[A-Za-z]{1,32}$/.test(kind) ? kind : LEFT_OUT]),
    ...segments.map((segment) => (isHarmless(segment) ? segment : LEFT_OUT)),
  ];
  const parts = QUERY.flatMap((name) => (typeof query[name] === 'string' ? [`${name}=${shownParameter(name, query[name])}`] : []));
  return `/${path.join('/')}${parts.length === 0 ? '' : `?${parts.join('&')}`}`;
}

/** Names of what a body holds; of a PATCH, its operations and their paths. */
export function shownNames(body: unknown): readonly string[] {
  if (!isObject(body)) return [];
  const operations = valueOf(body, 'Operations');
  if (!Array.isArray(operations)) return namesOf(body);
  return operations.slice(0, MOST_NAMES).map((operation) => {
    if (!isObject(operation)) return LEFT_OUT;
    const [op, path, value] = [valueOf(operation, 'op'), valueOf(operation, 'path'), valueOf(operation, 'value')];
    const target = typeof path === 'string' ? shownTarget(path) : isObject(value) ? namesOf(value).join(', ') : '';
    return `${typeof op === 'string' && /^[A-Za-z]{1,8}$/.test(op) ? op.toLowerCase() : LEFT_OUT} ${target}`.trimEnd().slice(0, LONGEST_NAME);
  });
}

function namesOf(object: Attributes): readonly string[] {
  return Object.keys(object)
    .slice(0, MOST_NAMES)
    .map((name) => shownTarget(name).slice(0, LONGEST_NAME));
}

function isHarmless(segment: string): boolean {
  return KINDS.has(segment) || isIdOf('directory_user', segment) || isIdOf('directory_group', segment) || /^urn:[\w:.-]{1,200}$/i.test(segment);
}

function shownParameter(name: string, value: string): string {
  if (name === 'filter') return shownFilter(value);
  if (name === 'startIndex' || name === 'count') return /^-?\d{1,10}$/.test(value) ? value : LEFT_OUT;
  return value
    .slice(0, LONGEST_TEXT)
    .split(',')
    .map((each) => shownTarget(each.trim()))
    .join(',');
}

/** An attribute, or a path to one. */
function shownTarget(text: string): string {
  if (NAME.test(text)) return text;
  const parts = /^([\w$:.-]{1,128})\[(.*)\]((?:\.[\w$-]{1,32})?)$/s.exec(text.slice(0, LONGEST_TEXT));
  return parts === null || !NAME.test(`${parts[1]!}${parts[3]!}`) ? LEFT_OUT : `${parts[1]!}[${shownFilter(parts[2]!)}]${parts[3]!}`;
}

/** A filter that cannot be read may be a value as a whole. */
function shownFilter(text: string): string {
  try {
    return shownPart(parseFilter(text)).slice(0, LONGEST_TEXT);
  } catch {
    return LEFT_OUT;
  }
}

function shownPart(filter: ScimFilter): string {
  switch (filter.op) {
    case 'and':
    case 'or':
      return `(${filter.filters.map(shownPart).join(` ${filter.op} `)})`;
    case 'not':
      return `not (${shownPart(filter.filter)})`;
    case 'pr':
      return `${shownTarget(filter.path)} pr`;
    case '[]':
      return `${shownTarget(filter.path)}[${shownPart(filter.filter)}]`;
    default: {
      const { path, op, value } = filter;
      return `${shownTarget(path)} ${op} ${typeof value === 'string' ? '"…"' : typeof value === 'number' ? LEFT_OUT : String(value)}`;
    }
  }
}
