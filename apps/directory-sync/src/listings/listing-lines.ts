import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { entryOfJson, ListingFault, userOf, type ListedGroup, type ListedUser } from '../domain/listing-entry.decider.ts';

export type ListingFormat = 'application/x-ndjson' | 'text/csv';

/** One line of a listing: what it says, or what is wrong with it. */
export interface ListingLine {
  readonly line: number;
  /** Null: nobody wants to know. */
  readonly entry: ListedUser | ListedGroup | ListingFault | null;
}

const LINE_FEED = 0x0a;
const [QUOTE, COLON, BACKSLASH, OPEN_BRACKET, OPEN_BRACE] = [0x22, 0x3a, 0x5c, 0x5b, 0x7b];
/** A group of 100,000 people. */
const MAX_LINE = 8 * 2 ** 20;
/** A person in CSV; a quote that is never closed would take all that follows for one. */
const MAX_RECORD = 128 * 1024;
const BYTE_ORDER_MARK = '\uFEFF';
const MAX_COLUMNS = 200;
/** Of a line that is longer than any person: objects, lists and names that it has beside its members. Reading half a million of them takes seconds. */
const MOST_PARTS = 20_000;

/** Whether the listing says which groups there are. Known once its first line was read. */
export interface ListingHead {
  saysGroups: boolean;
}

/**
 * Lines as they come, each read as what it is. What cannot be read as a line of its format is the last.
 * @param head is told what the listing says
 * @param isWanted which lines are read as what they are
 */
export async function* linesOf(
  bytes: AsyncIterable<Uint8Array>,
  format: ListingFormat,
  head: ListingHead,
  isWanted: (line: number) => boolean = () => true,
): AsyncGenerator<ListingLine> {
  if (format === 'text/csv') {
    yield* linesOfCsv(bytes, head, isWanted);
    return;
  }
  head.saysGroups = true;
  try {
    for await (const { line, text } of textLinesOf(bytes, isWanted)) {
      if (text === null) yield { line, entry: null };
      else if (text.trim() !== '') yield { line, entry: attempted(() => entryOfJson(parsed(text))) };
    }
  } catch (error) {
    yield lineOfFault(error);
  }
}

async function* linesOfCsv(bytes: AsyncIterable<Uint8Array>, head: ListingHead, isWanted: (line: number) => boolean): AsyncGenerator<ListingLine> {
  const text = async function* (): AsyncGenerator<string> {
    for await (const line of textLinesOf(bytes)) yield `${line.text}\n`;
  };
  const parser = parse({ info: true, skip_empty_lines: true, max_record_size: MAX_RECORD });
  const source = Readable.from(text());
  source.on('error', (error) => parser.destroy(error));
  source.pipe(parser);
  let columns: readonly string[] | null = null;
  try {
    for await (const { record, info } of parser as AsyncIterable<{ readonly record: readonly string[]; readonly info: { readonly lines: number } }>) {
      if (columns === null) {
        columns = columnsOf(record, info.lines);
        head.saysGroups = columns.includes('groups');
        continue;
      }
      const names = columns;
      yield { line: info.lines, entry: isWanted(info.lines) ? attempted(() => userOf(fieldsOf(names, unmarked(record)))) : null };
    }
    if (columns === null) throw new LineFault(1, new ListingFault('invalid_columns', 'The first line names the columns.'));
  } catch (error) {
    yield lineOfFault(error);
  } finally {
    source.destroy();
  }
}

/** @throws LineFault */
function columnsOf(record: readonly string[], line: number): readonly string[] {
  const columns = record.map((name) => name.trim());
  const wrong = (message: string): never => {
    throw new LineFault(line, new ListingFault('invalid_columns', message));
  };
  if (columns.length > MAX_COLUMNS) wrong(`There are at most ${MAX_COLUMNS} columns.`);
  if (columns.includes('')) wrong('A column has no name.');
  if (new Set(columns).size < columns.length) wrong('Two columns have the same name.');
  if (!columns.includes('id')) wrong('There is no column id.');
  return columns;
}

/** Where two files were joined, the mark of the second would be part of an id. @throws ListingFault */
function unmarked(record: readonly string[]): readonly string[] {
  if (record[0]!.startsWith(BYTE_ORDER_MARK)) throw new ListingFault('invalid_csv', 'A byte order mark stands after the beginning.');
  return record;
}

/** What is empty is not there. */
function fieldsOf(columns: readonly string[], record: readonly string[]): Readonly<Record<string, unknown>> {
  const fields = Object.fromEntries(columns.flatMap((name, place) => (record[place] === '' ? [] : [[name, record[place]!] as const])));
  const { groups, ...others } = fields;
  if (groups === undefined) return others;
  const names = groups
    .split(';')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return { ...others, groups: names };
}

/** Lines of UTF-8, without their ends; null for those that nobody wants. @throws LineFault */
async function* textLinesOf(
  bytes: AsyncIterable<Uint8Array>,
  isWanted: (line: number) => boolean = () => true,
): AsyncGenerator<{ readonly line: number; readonly text: string | null }> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let line = 1;
  let begun: Uint8Array[] = [];
  let length = 0;
  const textOf = (end: Uint8Array): string | null => {
    if (length + end.byteLength > MAX_LINE) throw new LineFault(line, new ListingFault('line_too_long', `A line has at most ${MAX_LINE / 2 ** 20} MiB.`));
    const parts = begun;
    [begun, length] = [[], 0];
    if (!isWanted(line)) return null;
    const whole = parts.length === 0 ? end : Buffer.concat([...parts, end]);
    let text: string;
    try {
      text = decoder.decode(whole);
    } catch {
      throw new LineFault(line, new ListingFault('invalid_utf8', 'The line is not UTF-8.'));
    }
    if (line === 1 && text.startsWith(BYTE_ORDER_MARK)) text = text.slice(1);
    return text.endsWith('\r') ? text.slice(0, -1) : text;
  };
  for await (const part of bytes) {
    let from = 0;
    for (let end = part.indexOf(LINE_FEED); end !== -1; end = part.indexOf(LINE_FEED, from)) {
      yield { line, text: textOf(part.subarray(from, end)) };
      line += 1;
      from = end + 1;
    }
    if (from === part.byteLength) continue;
    begun.push(part.subarray(from));
    length += part.byteLength - from;
    if (length > MAX_LINE) textOf(new Uint8Array());
  }
  if (length > 0) yield { line, text: textOf(new Uint8Array()) };
}

/** What makes all that follows unreadable. */
class LineFault extends Error {
  constructor(
    readonly line: number,
    readonly fault: ListingFault,
  ) {
    super(fault.message);
  }
}

function lineOfFault(error: unknown): ListingLine {
  if (error instanceof LineFault) return { line: error.line, entry: error.fault };
  if (!(error instanceof CsvError)) throw error;
  const { code } = error;
  const lines: unknown = error['lines'];
  const message =
    code === 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH'
      ? 'The line has more or fewer columns than the first.'
      : code === 'CSV_QUOTE_NOT_CLOSED'
        ? 'A quote is not closed before the end.'
        : code === 'CSV_MAX_RECORD_SIZE'
          ? `A person has at most ${MAX_RECORD / 1024} KiB; is a quote closed nowhere?`
          : 'A quote stands where none can.';
  return { line: typeof lines === 'number' ? lines : 1, entry: new ListingFault('invalid_csv', message) };
}

function attempted(read: () => ListedUser | ListedGroup): ListingLine['entry'] {
  try {
    return read();
  } catch (error) {
    if (error instanceof ListingFault) return error;
    throw error;
  }
}

function parsed(text: string): unknown {
  if (text.length > MAX_RECORD && hasMoreParts(text, MOST_PARTS)) throw new ListingFault('invalid_entry', `A line has at most ${MOST_PARTS} attributes.`);
  try {
    return JSON.parse(text);
  } catch {
    throw new ListingFault('invalid_json', 'The line is no JSON.');
  }
}

/** Whether a text of JSON has more objects, lists and names than so many: told by its brackets and colons outside of strings. */
function hasMoreParts(text: string, most: number): boolean {
  let parts = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if ((code === COLON || code === OPEN_BRACE || code === OPEN_BRACKET) && ++parts > most) return true;
  }
  return false;
}

/** Where the string that begins at `start` ends. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}
