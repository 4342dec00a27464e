import { type EventStore, type Position, START } from '#libs/event-sourcing/src/log/event-store';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { LogIdentity } from '#libs/platform/src/storage/log-note';
import type { DumpedRow, Table } from '#libs/read-models/src/read-models';
import type { DumpedEntry, ShortLived } from '#libs/read-models/src/short-lived';
import { RestoreMark } from '#libs/runtime/src/restore-mark';

/** What is written at once. */
const [ROWS, ENTRIES] = [500, 100];

/** A line of a backup: the log that it belongs to, the checkpoints, everything else, and the end. */
type Line =
  | { readonly log: LogIdentity }
  | { readonly checkpoint: Position; readonly table: string }
  | { readonly row: DumpedRow; readonly table: string }
  | { readonly entry: DumpedEntry }
  /** Where the log ended when everything else had been read. */
  | { readonly end: Position };

/** Where the small state of a process lies: what the log cannot refill. */
export interface SmallStateStores {
  /** All that the process has opened. */
  readonly tables: readonly Table<never>[];
  readonly shortLived: ShortLived;
  readonly events: EventStore;
  readonly log: LogIdentity;
}

/** What a backup says of itself. */
interface Summary {
  readonly log: LogIdentity;
  readonly checkpoints: ReadonlyMap<string, Position>;
  readonly tables: ReadonlySet<string>;
  readonly end: Position;
}

/**
 * The small state while everybody goes on writing. It is of no one moment, so its order counts:
 *
 * - first how far everybody is, then what came of it: who says how far they are has stored what came of that. Put back, the rest is done again, and nothing is left out;
 * - tables that were opened later build on those before them, and come first: how far a work is must not be newer than what it has made.
 *
 * None of it is newer than a log that is copied afterwards.
 */
export async function* smallState({ tables, shortLived, events, log }: SmallStateStores): AsyncGenerator<string> {
  yield lineOf({ log });
  const kept = tables.filter(isKept);
  for (const table of kept) {
    const checkpoint = await table.checkpoint();
    if (checkpoint !== START) yield lineOf({ checkpoint, table: table.definition.name });
  }
  for (const table of [...kept].reverse()) for await (const row of table.dump()) yield lineOf({ row, table: table.definition.name });
  for await (const entry of shortLived.dump()) if (entry.collection !== RestoreMark.collection) yield lineOf({ entry });
  yield lineOf({ end: await events.head() });
}

/** Reads a backup to its end. */
export async function summaryOf(lines: AsyncIterable<string>): Promise<Summary> {
  const checkpoints = new Map<string, Position>();
  const tables = new Set<string>();
  let end: Position | null = null;
  let log: LogIdentity | null = null;
  for await (const text of lines) {
    const line = JSON.parse(text) as Line;
    if ('table' in line) tables.add(line.table);
    if ('checkpoint' in line) checkpoints.set(line.table, line.checkpoint);
    if ('end' in line) end = line.end;
    if ('log' in line) log = line.log;
  }
  if (end === null || log === null) throw new StartRefused('The backup is not what was written: take another one.');
  return { log, checkpoints, tables, end };
}

/** Puts the lines of a backup where they were; again, where that was cut short. The checkpoints last, and under no lease: whoever is first goes on from them. */
export async function putSmallState(lines: AsyncIterable<string>, { checkpoints }: Summary, { tables, shortLived }: SmallStateStores): Promise<void> {
  const known = new Map(tables.filter(isKept).map((table) => [table.definition.name, table]));
  let rows: DumpedRow[] = [];
  let entries: DumpedEntry[] = [];
  let filled: Table<never> | undefined;
  const write = async (): Promise<void> => {
    const [someRows, someEntries] = [rows, entries];
    [rows, entries] = [[], []];
    if (someRows.length > 0) await filled?.write(someRows);
    await Promise.all(someEntries.map(({ collection, key, value, expiresAt }) => shortLived.put(collection, key, value, expiresAt)));
  };
  for await (const text of lines) {
    const line = JSON.parse(text) as Line;
    const table = 'table' in line ? known.get(line.table) : filled;
    if (table !== filled || rows.length === ROWS || entries.length === ENTRIES) await write();
    filled = table;
    if ('row' in line) rows.push(line.row);
    if ('entry' in line) entries.push(line.entry);
  }
  await write();
  for (const [name, position] of checkpoints) await known.get(name)?.write([], position);
}

/** Names of tables that a backup has, and this release does not know. */
export function unknownTables({ tables: stored }: Summary, { tables }: SmallStateStores): readonly string[] {
  const known = new Set(tables.filter(isKept).map(({ definition }) => definition.name));
  return [...stored].filter((name) => !known.has(name));
}

/** @throws StartRefused where somebody goes on from elsewhere than the backup says */
export async function expectCheckpoints({ checkpoints }: Summary, { tables }: SmallStateStores): Promise<void> {
  for (const table of tables) {
    const expected = checkpoints.get(table.definition.name);
    if (expected !== undefined && (await table.checkpoint()) !== expected) throw someoneIsAtWork();
  }
}

export function someoneIsAtWork(): StartRefused {
  return new StartRefused('Processes of this installation are at work on the database: stop all of them, empty it, and restore again.');
}

/** @throws StartRefused: what is left there may tell of what the log does not know */
export async function expectNoState({ tables, shortLived }: SmallStateStores): Promise<void> {
  for (const table of tables) {
    const name = `the table ${table.definition.name}`;
    if ((await table.checkpoint()) !== START) throw notEmpty(name);
    if (!(await table.dump()[Symbol.asyncIterator]().next()).done) throw notEmpty(name);
  }
  for await (const { collection } of shortLived.dump()) if (collection !== RestoreMark.collection) throw notEmpty(`the short-lived collection ${collection}`);
}

function notEmpty(what: string): StartRefused {
  return new StartRefused(`The database of MONGODB_URL is not empty, ${what} has something: stop all processes, empty it, and restore again.`);
}

function isKept({ definition }: Table<never>): boolean {
  return !definition.rebuildable && definition.isMadeAnew !== true;
}

function lineOf(line: Line): string {
  return JSON.stringify(line);
}
