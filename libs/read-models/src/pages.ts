import { Serialised, type List } from '#libs/contracts/src/operation';
import type { PageQuery } from '#libs/contracts/src/pages';
import { listText } from '#libs/contracts/src/serialiser';
import { type DomainError, invalidField } from '#libs/platform/src/domain-error';
import { isIdOf } from '#libs/platform/src/ids';
import { UnknownCursor, type PageRequest, type RowPage, type StoredRow, type Table } from './read-models.ts';

/** Whatever is read by pages: a table, or what is made of several. */
export type Pages<Row = unknown> = Pick<Table<Row>, 'page'>;

interface Listed<Row> {
  /** What the ids of the rows begin with: a cursor of another kind is malformed. */
  readonly idPrefix: string;
  /** One declared index; no query scans. */
  readonly where?: PageRequest['where'];
  /** What is answered of a row that holds more than the answer; absent: its text as it is stored. */
  readonly textOf?: (row: StoredRow<Row>) => string | Promise<string>;
}

/** The ids of a list from behind `from` on (with it, where that `isMeant` as well and is on the list), upwards or downwards. Taken before the next `await`. */
export type IdIterator = (isUpwards: boolean, from: { readonly id: string; readonly isMeant: boolean } | null) => Iterable<string>;

interface IdList {
  /** What the ids begin with: a cursor of another kind is malformed. */
  readonly idPrefix: string;
  /** Of everything on the list, ascending; or what walks them, where they are not to be collected for a page. */
  readonly ids: readonly string[] | IdIterator;
  /** Whether an id was ever one that a list of this kind could hold: the cursor may have left the list, or be deleted. */
  readonly isKnown: (id: string) => boolean | Promise<boolean>;
  /** The answers' texts in the order of the ids; null for what turns out not to be there, which the page makes up for. */
  readonly textsOf: (ids: readonly string[]) => readonly (string | null)[] | Promise<readonly (string | null)[]>;
}

interface FilteredList<Row> extends Pick<PageRequest, 'from' | 'to'> {
  /** What the ids of the list begin with: a cursor of another kind is malformed. */
  readonly idPrefix: string;
  /** One declared index; no query scans. */
  readonly where?: PageRequest['where'];
  /** The answers' texts in the order of the rows; null for what is dead although its row is still there, which the page makes up for. */
  readonly textsOf: (rows: readonly StoredRow<Row>[]) => Promise<readonly (string | null)[]>;
  /** Where the list shows other things than the rows themselves: the row's id for an id of the list, and back. */
  readonly rowIdOf?: (id: string) => string;
  readonly idOf?: (row: StoredRow<Row>) => string;
}

/** So that what is read at once stays small, however long the search. */
const MOST_AT_ONCE = 500;

type Page = Pick<RowPage, 'hasBefore' | 'hasAfter'> & { readonly rows: readonly { readonly id: string; readonly text: string }[] };
type Request = Pick<PageRequest, 'order' | 'limit' | 'after' | 'before'>;

/**
 * Answers a list from rows that are stored as the answer's text.
 * @throws DomainError `invalid_request_parameters` for a cursor that never was, or two of them
 */
export function pageOf<Row, T>(pages: Pages<Row>, query: PageQuery<T>, { idPrefix, where, textOf }: Listed<Row>): Promise<Serialised<List<T>>> {
  return answered(query, idPrefix, async (request) => {
    const page = await pages.page(query.context.environment, { ...request, where });
    if (textOf === undefined) return page;
    return { ...page, rows: await Promise.all(page.rows.map(async (row) => ({ id: row.id, text: await textOf(row) }))) };
  });
}

/**
 * Answers a list whose ids are in memory, by the same rules.
 * @throws DomainError `invalid_request_parameters` for a cursor that never was, or two of them
 */
export function pageOfIds<T>(query: PageQuery<T>, { idPrefix, ids, isKnown, textsOf }: IdList): Promise<Serialised<List<T>>> {
  return answered(query, idPrefix, async ({ order, limit, after, before }) => {
    const cursor = after ?? before;
    if (cursor !== undefined && !(await isKnown(cursor))) throw new UnknownCursor(after === undefined ? 'before' : 'after');

    // Backwards from a cursor, what is next to it comes first.
    const upwards = (order === 'asc') === (before === undefined);
    const walk = typeof ids === 'function' ? ids : iteratorOf(ids);

    /** Those that are there, up to `most`, upwards or downwards from the cursor. */
    const found = async (isUpwards: boolean, most: number, isMeant: boolean): Promise<Page['rows']> => {
      const rows: Page['rows'][number][] = [];
      for (let from = cursor === undefined ? null : { id: cursor, isMeant }; rows.length < most;) {
        const next = first(most - rows.length, walk(isUpwards, from));
        if (next.length === 0) break;
        from = { id: next.at(-1)!, isMeant: false };
        const texts = await textsOf(next);
        for (const [index, id] of next.entries()) {
          const text = texts[index] ?? null;
          if (text !== null) rows.push({ id, text });
        }
      }
      return rows;
    };

    const ahead = await found(upwards, limit + 1, false);
    const rows = ahead.slice(0, limit);
    const further = ahead.length > limit;
    const behind = cursor !== undefined && (await found(!upwards, 1, true)).length > 0;
    return before === undefined ? { rows, hasBefore: behind, hasAfter: further } : { rows: rows.reverse(), hasBefore: further, hasAfter: behind };
  });
}

/**
 * Answers a list from rows of which some are not to be seen, or that are answered together with others. Where only such rows stand before a page, it may still
 * say that something does.
 * @throws DomainError `invalid_request_parameters` for a cursor that never was, or two of them
 */
export function filteredPage<Row, T>(table: Table<Row>, query: PageQuery<T>, shown: FilteredList<Row>): Promise<Serialised<List<T>>> {
  const { idPrefix, where, from, to, textsOf, rowIdOf = (id) => id, idOf = ({ id }) => id } = shown;
  return answered(query, idPrefix, async ({ order, limit, after, before }) => {
    const isBackwards = before !== undefined;
    const rows: Page['rows'][number][] = [];
    let cursor = after ?? before;
    if (cursor !== undefined) cursor = rowIdOf(cursor);
    // One more than the page holds tells whether another one follows; where many are not to be seen, ever more are read at once.
    let size = limit + 1;
    const next = (): Promise<RowPage<Row>> =>
      table.page(query.context.environment, { where, from, to, order, limit: size, [isBackwards ? 'before' : 'after']: cursor });
    let page = await next();
    const isBehind = isBackwards ? page.hasAfter : page.hasBefore;
    for (; ; page = await next()) {
      const texts = await textsOf(page.rows);
      const living = page.rows.flatMap((row, index) => (texts[index] == null ? [] : [{ id: idOf(row), text: texts[index] }]));
      if (isBackwards) rows.unshift(...living);
      else rows.push(...living);
      if (rows.length > limit || !(isBackwards ? page.hasBefore : page.hasAfter)) break;
      cursor = (isBackwards ? page.rows[0] : page.rows.at(-1))!.id;
      size = Math.min(2 * size, MOST_AT_ONCE);
    }
    const further = rows.length > limit;
    return isBackwards
      ? { rows: rows.slice(-limit), hasBefore: further, hasAfter: isBehind }
      : { rows: rows.slice(0, limit), hasBefore: isBehind, hasAfter: further };
  });
}

/** One page, from wherever it is read. */
async function answered<T>(query: PageQuery<T>, idPrefix: string, read: (request: Request) => Promise<Page>): Promise<Serialised<List<T>>> {
  const { after, before, order = 'desc', limit } = query;
  if (after !== undefined && before !== undefined) throw invalidCursor('before', 'Give `after` or `before`, not both.');
  for (const [parameter, cursor] of [
    ['after', after],
    ['before', before],
  ] as const)
    if (cursor !== undefined && !isIdOf(idPrefix, cursor)) throw invalidCursor(parameter, `'${cursor}' is not a cursor of this list.`);

  // `normal` reads downwards, and calls what follows `before`, since it is older.
  const mirrored = order === 'normal';
  const { rows, hasBefore, hasAfter } = await read({
    limit,
    order: mirrored ? 'desc' : order,
    ...(mirrored ? { after: before, before: after } : { after, before }),
  }).catch((error: unknown) => {
    if (!(error instanceof UnknownCursor)) throw error;
    const parameter = mirrored ? (error.parameter === 'after' ? 'before' : 'after') : error.parameter;
    throw invalidCursor(parameter, `'${query[parameter]}' is not a cursor of this list.`);
  });
  const previous = hasBefore ? (rows[0]?.id ?? null) : null;
  const next = hasAfter ? (rows.at(-1)?.id ?? null) : null;
  const texts = rows.map(({ text }) => text);
  return new Serialised(mirrored ? listText(texts, next, previous) : listText(texts, previous, next));
}

function iteratorOf(ids: readonly string[]): IdIterator {
  return function* (isUpwards, from) {
    const isAfter = from !== null && isUpwards !== from.isMeant;
    const start = from === null ? (isUpwards ? 0 : ids.length) : isAfter ? placeAfter(ids, from.id) : placeOf(ids, from.id);
    if (isUpwards) for (let place = start; place < ids.length; place++) yield ids[place]!;
    else for (let place = start - 1; place >= 0; place--) yield ids[place]!;
  };
}

function first(most: number, ids: Iterable<string>): string[] {
  const found: string[] = [];
  for (const id of ids) {
    found.push(id);
    if (found.length === most) break;
  }
  return found;
}

/** Where an id stands among ascending ones, or would stand. */
function placeOf(ids: readonly string[], id: string): number {
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ids[middle]! < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

function placeAfter(ids: readonly string[], id: string): number {
  const place = placeOf(ids, id);
  return ids[place] === id ? place + 1 : place;
}

function invalidCursor(field: 'after' | 'before', message: string): DomainError {
  return invalidField('invalid_cursor', field, message);
}
