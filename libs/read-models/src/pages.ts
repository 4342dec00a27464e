import { Serialised, type List } from '#libs/contracts/src/operation';
import type { PageQuery } from '#libs/contracts/src/pages';
import { listText } from '#libs/contracts/src/serialiser';
import { DomainError } from '#libs/platform/src/domain-error';
import { isIdOf } from '#libs/platform/src/ids';
import { UnknownCursor, type PageRequest, type RowPage, type Table } from './read-models.ts';

interface Listed {
  /** What the ids of the rows begin with: a cursor of another kind is malformed. */
  readonly idPrefix: string;
  /** One declared index; no query scans. */
  readonly where?: PageRequest['where'];
  /** What is answered of a row that holds more than the answer; absent: its text as it is stored. */
  readonly textOf?: (text: string) => string | Promise<string>;
}

/**
 * Answers a list from rows that are stored as the answer's text.
 * @throws DomainError `invalid_request_parameters` for a cursor that never was, or two of them
 */
export async function pageOf<Row, T>(table: Table<Row>, query: PageQuery<T>, { idPrefix, where, textOf }: Listed): Promise<Serialised<List<T>>> {
  const { after, before, order = 'desc', limit } = query;
  if (after !== undefined && before !== undefined) throw invalidCursor('before', 'Give `after` or `before`, not both.');
  for (const [parameter, cursor] of [
    ['after', after],
    ['before', before],
  ] as const)
    if (cursor !== undefined && !isIdOf(idPrefix, cursor)) throw invalidCursor(parameter, `'${cursor}' is not a cursor of this list.`);

  // `normal` reads downwards, and calls what follows `before`, since it is older.
  const mirrored = order === 'normal';
  const request: PageRequest = {
    where,
    limit,
    order: mirrored ? 'desc' : order,
    ...(mirrored ? { after: before, before: after } : { after, before }),
  };
  const page = await found(table, query, request, mirrored);
  const previous = page.hasBefore ? (page.rows[0]?.id ?? null) : null;
  const next = page.hasAfter ? (page.rows.at(-1)?.id ?? null) : null;
  const texts = textOf === undefined ? page.rows.map(({ text }) => text) : await Promise.all(page.rows.map(async ({ text }) => textOf(text)));
  return new Serialised(mirrored ? listText(texts, next, previous) : listText(texts, previous, next));
}

async function found<Row, T>(table: Table<Row>, query: PageQuery<T>, request: PageRequest, mirrored: boolean): Promise<RowPage> {
  try {
    return await table.page(query.context.environment, request);
  } catch (error) {
    if (!(error instanceof UnknownCursor)) throw error;
    const parameter = mirrored ? (error.parameter === 'after' ? 'before' : 'after') : error.parameter;
    throw invalidCursor(parameter, `'${query[parameter]}' is not a cursor of this list.`);
  }
}

function invalidCursor(field: 'after' | 'before', message: string): DomainError {
  return new DomainError('invalid', 'invalid_request_parameters', message, { errors: [{ code: 'invalid_cursor', field, message }] });
}
