import type { Serialised, List } from '#libs/contracts/src/operation';
import type { PageQuery } from '#libs/contracts/src/pages';
import { pageOf, filteredPage } from './pages.ts';
import { contentOf, type StoredRow, type PageRequest, type Table } from './read-models.ts';
import { foldedText } from '#libs/platform/src/folded-text.decider';

const WORDS = 8;
/** What a name of 256 characters can have; compatibility forms may be longer than what they stand for. */
const MAX_KEYS = 256;
/** How many words of a search are tried for the one that finds least, and how many rows are little. */
const TRIED_WORDS = 4;
const FEW_ROWS = 100;

/** Every beginning of each of the first 8 words: what a search finds a name under. */
export function searchKeys(name: string): readonly string[] {
  const keys = new Set<string>();
  for (const word of wordsOf(name).slice(0, WORDS)) {
    let prefix = '';
    for (const character of word) {
      if (keys.size === MAX_KEYS) return [...keys];
      keys.add((prefix += character));
    }
  }
  return [...keys];
}

/** The words of a search, each once, the longest first: every one of them has to begin a word of the name. */
export function searchWords(search: string): readonly string[] {
  return [...new Set(wordsOf(search))].sort((one, other) => other.length - one.length);
}

interface Named<Row> {
  readonly idPrefix: string;
  readonly words: readonly string[];
  /** What narrows the list beside the words, and has few rows; absent: the words alone do. */
  readonly where?: PageRequest['where'];
  /** The key of a word in the index `search`. */
  readonly keyOf?: (word: string) => string;
  readonly textOf?: (row: StoredRow<Row>) => string;
}

/** Answers the rows whose names have a word for each of the words: an index finds those of one word, and the names tell the rest. */
export async function pageOfNamed<Row extends { readonly name: string }, T>(
  table: Table<Row>,
  query: PageQuery<T>,
  { idPrefix, words, where, keyOf = (word) => word, textOf = ({ text }) => text }: Named<Row>,
): Promise<Serialised<List<T>>> {
  const [first] = words;
  if (first === undefined) return pageOf(table, query, { idPrefix, where, textOf });
  if (words.length === 1 && where === undefined) return pageOf(table, query, { idPrefix, where: { index: 'search', values: [keyOf(first)] }, textOf });
  return filteredPage(table, query, {
    idPrefix,
    where: where ?? (await rarest(table, query, words.slice(0, TRIED_WORDS).map(keyOf))),
    textsOf: async (rows) => rows.map((row) => (isNamed(contentOf(row).name, words) ? textOf(row) : null)),
  });
}

/** What finds few rows of those that have a name with these words, where any of the words does. */
export function rarestOf<Row>(table: Table<Row>, query: PageQuery<unknown>, words: readonly string[]): Promise<NonNullable<PageRequest['where']>> {
  return rarest(table, query, words.slice(0, TRIED_WORDS));
}

/** Of several keys one that finds few rows, if any does: a name with a common word and a rare one is found by the rare one. */
async function rarest<Row>(table: Table<Row>, { context }: PageQuery<unknown>, keys: readonly string[]): Promise<NonNullable<PageRequest['where']>> {
  const wheres = keys.map((key) => ({ index: 'search', values: [key] }));
  const pages = await Promise.all(wheres.map((where) => table.page(context.environment, { where, order: 'asc', limit: FEW_ROWS })));
  const counts = pages.map(({ rows, hasAfter }) => (hasAfter ? Infinity : rows.length));
  return wheres[counts.indexOf(Math.min(...counts))]!;
}

/** Whether each of these words begins one of the first 8 of a name. */
export function isNamed(name: string, words: readonly string[]): boolean {
  const own = wordsOf(name).slice(0, WORDS);
  return words.every((word) => own.some((candidate) => candidate.startsWith(word)));
}

function wordsOf(text: string): readonly string[] {
  return foldedText(text)
    .split(/\s+/u)
    .filter((word) => word !== '');
}
