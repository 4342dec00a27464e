import { DomainError, invalidField } from '#libs/platform/src/domain-error';

/** What a template may speak of: resources as the API shows them. */
export interface TemplateSubjects {
  readonly user: object;
  readonly organization: object | null;
  readonly organization_membership: object | null;
}

/** A template that was read: what it adds to a token. @throws DomainError `token_too_big` */
export type TokenTemplate = (subjects: TemplateSubjects) => Readonly<Record<string, unknown>>;

/** What may be added, as bytes of JSON. */
const MAX_BYTES = 3_072;
/** Bounds on what a template costs whoever refreshes. */
const MAX_DEPTH = 8;
const MAX_VALUES = 500;
/** Tokens say these themselves; whoever reads them decides by them. */
const RESERVED = new Set([
  ...['iss', 'sub', 'exp', 'iat', 'nbf', 'jti'],
  ...['sid', 'org_id', 'act', 'client_id', 'auth_time', 'roles', 'permissions', 'entitlements', 'feature_flags'],
]);
const SUBJECTS: readonly string[] = ['user', 'organization', 'organization_membership'] satisfies readonly (keyof TemplateSubjects)[];
const EXPRESSION = /\{\{(.*?)\}\}/gsu;
const PATH = /^[a-z_]+(?:\.[A-Za-z0-9_-]+)*$/u;
const QUOTED = /^(?:"[^"\\]*"|'[^'\\]*')$/u;

/** One value of a rendered template; null where it speaks of what is not there. `spend` counts the bytes of every text before it is made. */
type Part = (subjects: TemplateSubjects, spend: Spend) => unknown;
type Spend = (bytes: number) => void;

/**
 * Reads a template: JSON first, so that no value of a user's can become part of it, and then the expressions in its texts.
 * @throws DomainError `invalid_request_parameters` that says what is wrong
 */
export function readTemplate(content: string): TokenTemplate {
  let document: unknown;
  try {
    document = JSON.parse(content);
  } catch {
    throw wrong('The template is not JSON.');
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) throw wrong('The template must be a JSON object.');
  const reserved = Object.keys(document).find((name) => RESERVED.has(name));
  if (reserved !== undefined) throw wrong(`Tokens say '${reserved}' themselves.`, 'reserved_claim');
  const render = readObject(document, { values: 0 }, 1);
  return (subjects) => {
    let left = MAX_BYTES;
    const spend: Spend = (bytes) => {
      if ((left -= bytes) < 0) throw tooBig();
    };
    const claims = render(subjects, spend) as Record<string, unknown>;
    // Without a value they would say that the token is for nobody, or that somebody has no role.
    for (const name of ['aud', 'role']) if (claims[name] === null) delete claims[name];
    if (Buffer.byteLength(JSON.stringify(claims)) > MAX_BYTES) throw tooBig();
    return claims;
  };
}

interface Count {
  values: number;
}

function readValue(value: unknown, count: Count, depth: number): Part {
  if (depth > MAX_DEPTH) throw wrong(`The template is nested more than ${MAX_DEPTH} levels deep.`);
  if (++count.values > MAX_VALUES) throw wrong(`The template has more than ${MAX_VALUES} values.`);
  if (typeof value === 'string') return readText(value, count);
  if (Array.isArray(value)) {
    const items = value.map((item) => readValue(item, count, depth + 1));
    return (subjects, spend) => items.map((item) => item(subjects, spend));
  }
  if (typeof value === 'object' && value !== null) return readObject(value, count, depth + 1);
  return () => value;
}

function readObject(value: object, count: Count, depth: number): Part {
  const entries = Object.entries(value).map(([name, inner]) => {
    if (name === '__proto__') throw wrong('A name in the template must not be `__proto__`.');
    return [name, readValue(inner, count, depth)] as const;
  });
  return (subjects, spend) => Object.fromEntries(entries.map(([name, part]) => [name, part(subjects, spend)]));
}

function readText(text: string, count: Count): Part {
  const pieces: (string | Part)[] = [];
  let end = 0;
  for (const match of text.matchAll(EXPRESSION)) {
    if (++count.values > MAX_VALUES) throw wrong(`The template has more than ${MAX_VALUES} values.`);
    if (match.index > end) pieces.push(text.slice(end, match.index));
    pieces.push(readExpression(match[1]!));
    end = match.index + match[0].length;
  }
  if (text.indexOf('{{', end) !== -1) throw wrong('An expression begins with `{{` and does not end.');
  if (end < text.length || pieces.length === 0) pieces.push(text.slice(end));
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) {
    if (typeof only === 'string') return () => only;
    // It stands for the value itself, of whatever type.
    return (subjects, spend) => {
      const value = only(subjects, spend) ?? null;
      spend(JSON.stringify(value).length);
      return value;
    };
  }
  return (subjects, spend) => {
    let rendered = '';
    for (const piece of pieces) {
      const next = typeof piece === 'string' ? piece : asText(piece(subjects, spend));
      spend(next.length);
      rendered += next;
    }
    return rendered;
  };
}

/** Paths and quoted texts with `||` between them. */
function readExpression(expression: string): Part {
  const alternatives = expression.split('||').map((part) => readAlternative(part.trim(), expression));
  return (subjects, spend) => {
    for (const alternative of alternatives) {
      const value = alternative(subjects, spend);
      if (value !== null && value !== undefined && value !== '') return value;
    }
    return null;
  };
}

function readAlternative(part: string, expression: string): Part {
  if (QUOTED.test(part)) {
    const text = part.slice(1, -1);
    return () => text;
  }
  const [subject, ...names] = PATH.test(part) ? part.split('.') : [''];
  if (!SUBJECTS.includes(subject!) || names.length === 0)
    throw wrong(`'${expression.trim().slice(0, 100)}' is no path in user, organization or organization_membership.`);
  return (subjects) => names.reduce<unknown>(own, subjects[subject as keyof TemplateSubjects]);
}

/** Nothing that an object only inherits. */
function own(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : null;
}

function asText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function wrong(message: string, reason = 'invalid_template'): DomainError {
  return invalidField(reason, 'content', message);
}

function tooBig(): DomainError {
  return new DomainError('invalid', 'token_too_big', `What the template of access tokens adds has more than ${MAX_BYTES} bytes.`);
}
