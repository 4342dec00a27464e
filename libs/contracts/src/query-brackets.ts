import { DomainError } from '#libs/platform/src/domain-error';

type Query = Readonly<Record<string, unknown>>;

const BRACKETED = /^([^[\]]+)\[(\d{0,6})\](?:\[(name|value)\])?$/;

/**
 * The query with `key[]`, `key[0]` and `key[0][value]` under `key`, as PHP writes lists and lists of its enumerations (their `key[0][name]` is left out). Any other
 * name with a bracket is refused: unread, a filter would be lost in silence.
 * `whole`: lists whose bracketed values may hold commas; each lies in a list of its own, which separates nothing.
 * @throws DomainError `invalid_request_parameters`, naming each that no list has
 */
export function bracketedLists(query: Query, lists: ReadonlySet<string>, whole: ReadonlySet<string> = new Set()): Query {
  const names = Object.keys(query).filter((name) => name.includes('['));
  if (names.length === 0) return query;
  const read: Record<string, unknown> = { ...query };
  const unknown: string[] = [];
  for (const name of names) {
    const [, list = '', index = '', part] = BRACKETED.exec(name) ?? [];
    if (!lists.has(list) || (part !== undefined && index === '')) unknown.push(name);
    else if (part !== 'name') read[list] = [...itemsOf(read[list]), ...(whole.has(list) ? [itemsOf(query[name])] : itemsOf(query[name]))];
    delete read[name];
  }
  if (unknown.length === 0) return read;
  throw new DomainError('invalid', 'invalid_request_parameters', 'Validation failed.', {
    errors: unknown.map((field) => ({ code: 'unknown_parameter', field, message: `There is no parameter ${field}.` })),
  });
}

function itemsOf(value: unknown): readonly unknown[] {
  return value === undefined ? [] : [value].flat();
}
