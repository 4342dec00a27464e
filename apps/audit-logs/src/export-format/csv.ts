import { canonicalJson } from '#libs/platform/src/canonical-json';
import { exportedEvent, jsonOf, NotAnExport, type EventReader, type ExportedEvent } from './exported-event.ts';

const COLUMNS = [
  'id',
  'organization_id',
  'received_at',
  'occurred_at',
  'action',
  'version',
  'actor_type',
  'actor_id',
  'actor_name',
  'actor_metadata',
  'targets',
  'location',
  'user_agent',
  'metadata',
  'leaf_index',
  'salt',
] as const;

type Column = (typeof COLUMNS)[number];
/** Null where there is nothing: written as an empty cell, while an empty text is written in quotes. */
type Cell = string | null;

/** What spreadsheets take for a formula when a cell begins with it, and the sign that says that it is none. */
const DEFUSED = /^[=+\-@\t\r']/;
const DEFUSING = "'";
const QUOTED = /[",\r\n]/;
const DELIMITER = /[",\r\n]/g;
const LINE_END = '\r\n';
/** An event has 32 KiB; as JSON in quotes it may have some more. */
const MAX_CELL = 1024 * 1024;

/** The first line. */
export const CSV_HEAD: string = COLUMNS.join(',') + LINE_END;

export function csvLine(event: ExportedEvent): string {
  const { actor, context } = event;
  const cells: Readonly<Record<Column, Cell>> = {
    id: event.id,
    organization_id: event.organization_id,
    received_at: event.received_at,
    occurred_at: event.occurred_at,
    action: event.action,
    version: event.version === null ? null : String(event.version),
    actor_type: actor.type,
    actor_id: actor.id,
    actor_name: actor.name,
    actor_metadata: canonicalJson(actor.metadata),
    targets: canonicalJson(event.targets),
    location: context.location,
    user_agent: context.user_agent,
    metadata: canonicalJson(event.metadata),
    leaf_index: String(event.leaf_index),
    salt: event.salt,
  };
  return COLUMNS.map((column) => written(cells[column])).join(',') + LINE_END;
}

function written(cell: Cell): string {
  if (cell === null) return '';
  const defused = defusedCell(cell);
  return defused === '' || QUOTED.test(defused) ? `"${defused.replaceAll('"', '""')}"` : defused;
}

function defusedCell(cell: string): string {
  return DEFUSED.test(cell) ? DEFUSING + cell : cell;
}

/** Reads a file of events piece by piece, as it arrives. */
export class CsvReader implements EventReader {
  private readonly table = new TableReader();
  private isBegun = false;

  *read(piece: string): Generator<ExportedEvent> {
    for (const row of this.table.read(piece)) yield* this.event(row);
  }

  *end(): Generator<ExportedEvent> {
    for (const row of this.table.end()) yield* this.event(row);
    if (!this.isBegun) throw new NotAnExport(1, 'the file is empty.');
  }

  private *event({ line, cells }: Row): Generator<ExportedEvent> {
    if (!this.isBegun) {
      if (cells.join() !== COLUMNS.join()) throw new NotAnExport(line, `the columns have to be ${COLUMNS.join(', ')}.`);
      this.isBegun = true;
    } else {
      yield eventOf(cells, line);
    }
  }
}

function eventOf(cells: readonly Cell[], line: number): ExportedEvent {
  if (cells.length !== COLUMNS.length) throw new NotAnExport(line, `there are ${cells.length} cells instead of ${COLUMNS.length}.`);
  const of = Object.fromEntries(COLUMNS.map((column, at) => [column, armed(cells[at]!, line)])) as Readonly<Record<Column, Cell>>;
  const event = {
    id: of.id,
    organization_id: of.organization_id,
    received_at: of.received_at,
    occurred_at: of.occurred_at,
    action: of.action,
    version: of.version === null ? null : integer(of.version, line),
    actor: { id: of.actor_id, type: of.actor_type, name: of.actor_name, metadata: json(of.actor_metadata, line) },
    targets: json(of.targets, line),
    context: { location: of.location, user_agent: of.user_agent },
    metadata: json(of.metadata, line),
    leaf_index: integer(of.leaf_index, line),
    salt: of.salt,
  };
  return exportedEvent(event, line);
}

/** Who takes the sign away has a spreadsheet compute what stands behind it, and who adds one hides what follows: both say the same as before to whoever takes away one. */
function armed(cell: Cell, line: number): Cell {
  if (cell === null) return null;
  const text = cell.startsWith(DEFUSING) ? cell.slice(DEFUSING.length) : cell;
  if (defusedCell(text) !== cell) throw new NotAnExport(line, 'a cell is not written as it was.');
  return text;
}

function integer(cell: Cell, line: number): number {
  const value = Number(cell);
  if (cell === null || String(value) !== cell || !Number.isSafeInteger(value)) throw new NotAnExport(line, `'${cell}' is no number.`);
  return value;
}

/** Written in the one way in which it was. */
function json(cell: Cell, line: number): unknown {
  const value = jsonOf(cell ?? '', line);
  if (canonicalJson(value) !== cell) throw new NotAnExport(line, 'a cell is not written as it was.');
  return value;
}

interface Row {
  /** Where it begins, from 1. */
  readonly line: number;
  readonly cells: readonly Cell[];
}

/** RFC 4180, with either kind of line end. */
class TableReader {
  private cells: Cell[] = [];
  private cell = '';
  private state: 'begin' | 'plain' | 'quoted' | 'quote' = 'begin';
  private line = 1;
  private began = 1;
  private isAfterReturn = false;

  *read(piece: string): Generator<Row> {
    for (let at = 0; at < piece.length; at += 1) {
      const character = piece[at]!;
      if (character === '\n') this.line += 1;
      if (this.isAfterReturn && character !== '\n') throw this.refusal('a return is no end of a line.');
      if (this.state === 'quoted') {
        const quote = piece.indexOf('"', at);
        const end = quote < 0 ? piece.length : quote;
        for (let feed = piece.indexOf('\n', at + 1); feed >= 0 && feed < end; feed = piece.indexOf('\n', feed + 1)) this.line += 1;
        this.add(piece.slice(at, end));
        if (quote >= 0) this.state = 'quote';
        at = end;
      } else if (character === '"') {
        if (this.state === 'plain') throw this.refusal('a quote stands in a cell without quotes.');
        // Doubled, it is one.
        if (this.state === 'quote') this.add('"');
        this.state = 'quoted';
      } else if (character === ',') {
        this.endCell();
      } else if (character === '\r') {
        this.isAfterReturn = true;
      } else if (character === '\n') {
        yield this.endRow();
      } else {
        if (this.state === 'quote') throw this.refusal('something follows the quotes of a cell.');
        this.state = 'plain';
        DELIMITER.lastIndex = at;
        const end = DELIMITER.exec(piece)?.index ?? piece.length;
        this.add(piece.slice(at, end));
        at = end - 1;
      }
    }
  }

  *end(): Generator<Row> {
    if (this.state === 'quoted' || this.isAfterReturn) throw this.refusal('the file ends within a cell.');
    if (this.state !== 'begin' || this.cells.length > 0) yield this.endRow();
  }

  private add(text: string): void {
    this.cell += text;
    if (this.cell.length > MAX_CELL) throw this.refusal('a cell has no end.');
  }

  private endCell(): void {
    this.cells.push(this.state === 'begin' ? null : this.cell);
    this.cell = '';
    this.state = 'begin';
  }

  private endRow(): Row {
    this.endCell();
    const row: Row = { line: this.began, cells: this.cells };
    this.cells = [];
    this.began = this.line;
    this.isAfterReturn = false;
    return row;
  }

  private refusal(reason: string): NotAnExport {
    return new NotAnExport(this.began, reason);
  }
}
