import { hash } from 'node:crypto';
import type { Clock } from '#libs/platform/src/clock';
import { contentOf, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import type { ShortLived } from '#libs/read-models/src/short-lived';
import { ScimError } from '../domain/scim-domain-error.ts';
import { asksForMore, conjunctsOf, fits, type Comparison, type ScimFilter } from '../domain/scim-filter.decider.ts';
import type { ResourceKind } from '../domain/scim-schema.decider.ts';
import { foldedValue, type Attributes } from '../domain/scim-values.decider.ts';
import { beginningsOf, inDirectory } from '../views/index-keys.ts';

/** Rows that are looked at one by one, where no index answers alone. */
const FEW = 1_000;
/** A directory of so many may be looked through. */
const SMALL_DIRECTORY = 10_000;
/** Index entries that are counted. */
const MOST_COUNTED = 100_000;
const ROWS_AT_ONCE = 500;
const COLLECTION = 'scim_pages';
const REMEMBERED_MS = 60 * 60 * 1_000;
/** Values that an index is asked for at once. */
const MOST_VALUES = 200;

export interface SearchRequest {
  readonly environment: string;
  readonly directoryId: string;
  /** As it was sent, for pages to follow each other by. */
  readonly text: string;
  readonly filter: ScimFilter | null;
  readonly startIndex: number;
  readonly count: number;
}

/** What of a filter an index answers. */
export interface Indexed {
  readonly index: string;
  readonly values: readonly string[];
  /** The index answers it wholly: nothing of it is left to be looked at. */
  readonly isExact: boolean;
}

export interface Searched<Row> {
  readonly kind: ResourceKind;
  readonly table: Table<Row>;
  /** How many there are in the directory, and with this filter where that is counted. */
  total(filter: ScimFilter | null): number | null;
  /** How many there are in the directory. */
  readonly size: number;
  /** What an index makes of one comparison; null where none answers it. */
  indexed(comparison: Comparison, now: number): Indexed | null;
  /** As filters see it. */
  resourceOf(row: Row): Attributes;
  /** The one row of an id, where it is in the directory. */
  withId(id: string): Promise<StoredRow<Row> | null>;
}

export interface Found<Row> {
  readonly total: number;
  readonly rows: readonly Row[];
}

/** A page that was answered, for the one that follows it. */
interface Boundary {
  readonly after: string;
  readonly total: number;
}

/** Members that the groups of one answer have together. */
const MOST_MEMBERS = 100_000;

/**
 * Groups as they are shown, one after the other, since each may have many members: no more of them than have so many together, but one. Pages may be shorter than was asked for (RFC 7644, section
 * 3.4.2.4).
 */
export async function shownTogether<Row>(rows: readonly Row[], show: (row: Row) => Promise<Attributes>, most = MOST_MEMBERS): Promise<readonly Attributes[]> {
  const shown: Attributes[] = [];
  let members = 0;
  for (const row of rows) {
    const resource = await show(row);
    members += Array.isArray(resource['members']) ? resource['members'].length : 0;
    if (members > most && shown.length > 0) break;
    shown.push(resource);
  }
  return shown;
}

/** Finds resources by indexes, in the order of their ids. */
export class ScimSearch {
  constructor(
    private readonly shortLived: ShortLived,
    private readonly clock: Clock,
  ) {}

  /** @throws ScimError `tooMany` where no index narrows the filter, and too much would have to be looked at; `invalidFilter` where a look at resources does not tell */
  async find<Row>(request: SearchRequest, searched: Searched<Row>): Promise<Found<Row>> {
    const { directoryId, filter } = request;
    if (filter !== null && asksForMore(searched.kind, filter)) throw notFiltered();
    const parts = filter === null ? [] : conjunctsOf(filter);
    const named = parts.find((part): part is Comparison => part.op === 'eq' && part.path.toLowerCase() === 'id');
    if (named !== undefined) return this.ofOne(request, searched, String(named.value));

    const options = parts.flatMap((part, place) => {
      const indexed = indexedOf(part, searched, this.clock.now());
      return indexed === null ? [] : [{ ...indexed, place }];
    });
    // One value is found by less than a beginning or a time.
    const best = options.find(({ isExact }) => isExact) ?? options[0];
    const where =
      best === undefined
        ? { index: 'directory', values: [directoryId] }
        : { index: best.index, values: best.values.map((value) => inDirectory(directoryId, value)) };
    const rest = parts.filter((_, place) => best === undefined || place !== best.place || !best.isExact);
    if (best === undefined && rest.length > 0 && searched.size > SMALL_DIRECTORY) throw tooMany();
    return this.walk(request, searched, where, rest);
  }

  private async ofOne<Row>({ filter, startIndex, count }: SearchRequest, searched: Searched<Row>, id: string): Promise<Found<Row>> {
    const row = await searched.withId(id);
    const isFound = row !== null && fits(searched.resourceOf(contentOf(row)), filter!);
    return { total: isFound ? 1 : 0, rows: isFound && startIndex === 1 && count > 0 ? [contentOf(row)] : [] };
  }

  private async walk<Row>(
    request: SearchRequest,
    searched: Searched<Row>,
    where: { readonly index: string; readonly values: readonly string[] },
    rest: readonly ScimFilter[],
  ): Promise<Found<Row>> {
    const { environment, filter, startIndex, count } = request;
    const known = searched.total(filter);
    const boundary = startIndex === 1 ? null : await this.boundaryOf(request);
    const total = boundary?.total ?? known;
    if (total !== null && (count === 0 || startIndex > total)) return { total, rows: [] };
    const most = rest.length === 0 ? MOST_COUNTED : searched.size <= SMALL_DIRECTORY ? SMALL_DIRECTORY : FEW;

    const rows: { readonly id: string; readonly row: Row }[] = [];
    let [matched, looked] = [boundary === null ? 0 : startIndex - 1, 0];
    let after = boundary?.after;
    for (let more = true; more;) {
      const isFull = rows.length === count;
      if (isFull && total !== null) break;
      const page = await searched.table.page(environment, { where, order: 'asc', limit: ROWS_AT_ONCE, after });
      for (const stored of page.rows) {
        if (rest.length > 0) {
          const resource = searched.resourceOf(contentOf(stored));
          if (!rest.every((part) => fits(resource, part))) continue;
        }
        matched++;
        if (matched >= startIndex && rows.length < count) rows.push({ id: stored.id, row: contentOf(stored) });
      }
      looked += page.rows.length;
      if (looked > most && !(rows.length === count && total !== null)) throw tooMany();
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
    const counted = total ?? matched;
    const last = rows.at(-1);
    if (last !== undefined && startIndex + rows.length <= counted) await this.remember(request, startIndex + rows.length, { after: last.id, total: counted });
    return { total: counted, rows: rows.map(({ row }) => row) };
  }

  private async boundaryOf(request: SearchRequest): Promise<Boundary | null> {
    const entry = await this.shortLived.get(COLLECTION, keyOf(request, request.startIndex));
    return entry === null ? null : (JSON.parse(entry.value) as Boundary);
  }

  private async remember(request: SearchRequest, startIndex: number, boundary: Boundary): Promise<void> {
    await this.shortLived.put(COLLECTION, keyOf(request, startIndex), JSON.stringify(boundary), this.clock.now() + REMEMBERED_MS);
  }
}

/** Filters may hold what is personal: their digest stands in the key. */
function keyOf({ environment, directoryId, text }: SearchRequest, startIndex: number): string {
  return `${environment} ${directoryId} ${hash('sha256', text, 'base64url')} ${startIndex}`;
}

function indexedOf<Row>(part: ScimFilter, searched: Searched<Row>, now: number): Indexed | null {
  if ('value' in part) return searched.indexed(part, now);
  if (part.op !== '[]') return null;
  // Of an item: what is said of its value.
  const value = conjunctsOf(part.filter).find((each): each is Comparison => each.op === 'eq' && each.path.toLowerCase() === 'value');
  return value === undefined ? null : searched.indexed({ ...value, path: `${part.path}.value` }, now);
}

/** To find nobody, or everybody, by what nobody looks at would have a provider make people twice, or end them. */
export function notFiltered(): ScimError {
  return new ScimError(
    400,
    'invalidFilter',
    'The filter compares an attribute that is not filtered by, or not so: groups are found by one `members.value eq` for each member.',
  );
}

function tooMany(): ScimError {
  return new ScimError(400, 'tooMany', 'The filter is answered by no index, or leaves too many to be looked at or counted: narrow it.');
}

/** One value, whatever its case. */
export function byValue(index: string, value: Comparison['value']): Indexed | null {
  return typeof value === 'string' ? { index, values: [foldedValue(value)], isExact: false } : null;
}

/** What begins so: by as much of it as has entries. */
export function byBeginning(index: string, value: Comparison['value']): Indexed | null {
  const longest = typeof value === 'string' ? beginningsOf(value).at(-1) : undefined;
  return longest === undefined ? null : { index, values: [longest], isExact: longest === foldedValue(value as string) };
}

/** What changed since a time, or before one that is not long ago enough for all months to be named: by months, and by days of the month of the bound. */
export function byTime(op: Comparison['op'], value: Comparison['value'], { now, since }: { readonly now: number; readonly since: number }): Indexed | null {
  const bound = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(bound)) return null;
  const isUpwards = op === 'gt' || op === 'ge';
  const [from, to] = isUpwards ? [Math.max(bound, since), now] : [since, Math.min(bound, now)];
  if (from > to) return { index: 'modified', values: ['none'], isExact: true };
  const boundDay = new Date(bound).toISOString().slice(0, 10);
  const values = new Set<string>();
  for (let day = startOfDay(from); day <= to && values.size <= MOST_VALUES;) {
    const date = new Date(day).toISOString().slice(0, 10);
    const [monthStart, monthEnd] = monthOf(day);
    const isWhole = day === monthStart && monthEnd <= to && date.slice(0, 7) !== boundDay.slice(0, 7);
    values.add(isWhole ? date.slice(0, 7) : date);
    day = isWhole ? monthEnd : day + 24 * 60 * 60 * 1_000;
  }
  return values.size > MOST_VALUES ? null : { index: 'modified', values: [...values], isExact: false };
}

function startOfDay(time: number): number {
  return Date.parse(new Date(time).toISOString().slice(0, 10));
}

function monthOf(day: number): readonly [start: number, end: number] {
  const date = new Date(day);
  return [Date.UTC(date.getUTCFullYear(), date.getUTCMonth()), Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)];
}
