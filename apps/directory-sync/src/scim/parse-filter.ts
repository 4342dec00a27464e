import { parse, type Filter } from 'scim2-parse-filter';
import { ScimError } from '../domain/scim-domain-error.ts';
import { comparesTimes, isKnown, termsOf, type Comparison, type ScimFilter } from '../domain/scim-filter.decider.ts';
import type { ResourceKind } from '../domain/scim-schema.decider.ts';

const MAX_LENGTH = 2_048;
const MAX_DEPTH = 16;
const MAX_TERMS = 50;

/** @throws ScimError `invalidFilter` */
export function parseFilter(text: string): ScimFilter {
  // The parser takes exponential time over line breaks within a text that does not end, and goes down once for each bracket.
  if (text.length > MAX_LENGTH || [...text].some((character) => character < ' ') || depthOf(text) > MAX_DEPTH) throw invalidFilter();
  let parsed: Filter;
  try {
    parsed = parse(ofOneItem(text));
  } catch {
    throw invalidFilter();
  }
  const filter = asOurs(parsed);
  if (termsOf(filter) > MAX_TERMS) throw invalidFilter();
  return filter;
}

/** The filter of a search among resources of these kinds; null where everything is asked for. @throws ScimError `invalidFilter` */
export function parseSearch(text: string, kinds: readonly ResourceKind[]): ScimFilter | null {
  if (text === '') return null;
  const filter = parseFilter(text);
  if (!isKnown(filter, kinds)) throw new ScimError(400, 'invalidFilter', 'The filter names an attribute that there is not.');
  if (!comparesTimes(filter)) throw new ScimError(400, 'invalidFilter', 'A time is compared with what is none.');
  return filter;
}

function invalidFilter(): ScimError {
  return new ScimError(400, 'invalidFilter', 'The filter cannot be read, or is too long or too deep.');
}

const ITEMS = /"(?:[^"\\]|\\.)*"|\[|\](?:\.([\w$-]+\s+(?:pr\b|(?:eq|ne|co|sw|ew|gt|ge|lt|le)\s+(?:"(?:[^"\\]|\\.)*"|[^\s)\]]+))))?/gi;

/** What is compared behind a bracket is of the item that fits the bracket; the parser would take it for that of any item. `emails[a].value eq b` is `emails[(a) and value eq b]`. */
function ofOneItem(text: string): string {
  return text.replaceAll(ITEMS, (found, compared?: string) => {
    if (found === '[') return '[(';
    return found.startsWith(']') ? (compared === undefined ? ')]' : `) and ${compared}]`) : found;
  });
}

const QUOTED = /"(?:[^"\\]|\\.)*"/g;

/** How deep brackets lie in each other, and how often something is negated that is negated; what is within texts is neither. */
function depthOf(text: string): number {
  let [depth, deepest, negated] = [0, 0, 0];
  for (const word of text.replaceAll(QUOTED, '""').match(/[([]|[)\]]|\bnot\b(?=\s+not\b)/gi) ?? []) {
    if (word === ')' || word === ']') depth--;
    else if (word === '(' || word === '[') deepest = Math.max(deepest, ++depth);
    else negated++;
  }
  return deepest + negated;
}

function asOurs(filter: Filter): ScimFilter {
  switch (filter.op) {
    case 'and':
    case 'or':
      return { op: filter.op, filters: (filter as { readonly filters: readonly Filter[] }).filters.map(asOurs) };
    case 'not':
      return { op: 'not', filter: asOurs((filter as { readonly filter: Filter }).filter) };
    case '[]': {
      const { attrPath, valFilter } = filter as { readonly attrPath: string; readonly valFilter: Filter };
      return { op: '[]', path: attrPath, filter: asOurs(valFilter) };
    }
    case 'pr':
      return { op: 'pr', path: (filter as { readonly attrPath: string }).attrPath };
    default: {
      const { op, attrPath, compValue } = filter as { readonly op: Comparison['op']; readonly attrPath: string; readonly compValue: Comparison['value'] };
      return { op, path: attrPath, value: typeof compValue === 'string' ? unescaped(compValue) : compValue };
    }
  }
}

/** The parser doubles what escapes all but quotation marks, so that a lone backslash is one: those that were doubled already, codes of characters, and slashes that encoders escape are mended here. A name behind that of a Windows domain (`ACME\nina`) is no other escape. */
function unescaped(text: string): string {
  return text.replaceAll(/\\(?:[\\/]|u([0-9a-fA-F]{4}))/g, (found, code?: string) =>
    code === undefined ? found.slice(1) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
