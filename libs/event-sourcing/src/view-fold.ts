import type { Table, Write } from '#libs/read-models/src/read-models';
import type { RecordedEvent } from './event-store.ts';
import type { View } from './view.ts';

/** An event that a view cannot fold: a gap would be silent, so the view stops before it. */
export class Unfoldable extends Error {
  constructor(
    readonly view: string,
    readonly event: RecordedEvent,
    cause: unknown,
  ) {
    super(`${view} cannot fold ${event.type} at position ${event.position}.`, { cause });
  }
}

/** A row as the events of a batch leave it. */
interface Touched<Row> {
  row: Row | null;
  revision: number;
  position: string;
  isChanged: boolean;
}

/** Folds events into the rows of one view, a batch at a time. */
export class ViewFold<Row> {
  private readonly handles: ReadonlySet<string>;

  constructor(
    readonly view: View<Row>,
    readonly table: Table<Row>,
    /** Positions that an operator decided to leave out. */
    private readonly skipped: ReadonlySet<string> = new Set(),
  ) {
    this.handles = new Set(view.handles);
  }

  concerns(event: RecordedEvent): boolean {
    return this.handles.has(event.type) && !this.skipped.has(event.position);
  }

  /**
   * Folds the events that concern this view, and stores their rows together with the position of the last event of the batch. Folding a batch again changes nothing.
   * @throws Unfoldable after what came before the event was stored
   */
  async apply(batch: readonly RecordedEvent[]): Promise<void> {
    const events = batch.filter((event) => this.concerns(event));
    const rows = await this.load(events);
    const evolve = (await this.view.evolveAfter?.(this.table, events)) ?? this.view.evolve.bind(this.view);
    for (const event of events) {
      try {
        this.foldOne(event, rows, evolve);
      } catch (error) {
        const before = batch[batch.indexOf(event) - 1];
        await this.store(rows, before?.position);
        throw new Unfoldable(this.view.name, event, error);
      }
    }
    await this.store(rows, batch.at(-1)?.position);
  }

  private foldOne(event: RecordedEvent, rows: ReadonlyMap<string, Touched<Row>>, evolve: View<Row>['evolve']): void {
    // All or nothing: an event that touches several rows and fails at the second leaves the first alone.
    const folded = this.view.idsOf(event).map((id) => ({ touched: rows.get(keyOf(event.meta.environment, id))!, id }));
    const results = folded.map(({ touched, id }) => (touched.position >= event.position ? undefined : evolve(touched.row, event, id)));
    results.forEach((row, index) => {
      if (row === undefined) return;
      Object.assign(folded[index]!.touched, { row, revision: event.version, position: event.position, isChanged: true });
    });
  }

  /** The stored rows that the events touch. Those that `transact` wrote already carry the event's position. */
  private async load(events: readonly RecordedEvent[]): Promise<Map<string, Touched<Row>>> {
    const wanted = new Map<string, Set<string>>();
    for (const event of events) {
      const { environment } = event.meta;
      let ids = wanted.get(environment);
      if (ids === undefined) wanted.set(environment, (ids = new Set()));
      for (const id of this.view.idsOf(event)) ids.add(id);
    }
    const rows = new Map<string, Touched<Row>>();
    for (const [environment, ids] of wanted) {
      const list = [...ids];
      const stored = await this.table.getMany(environment, list);
      list.forEach((id, index) => {
        const found = stored[index];
        rows.set(keyOf(environment, id), new LazyRow<Row>(found?.text ?? null, found?.revision ?? 0, found?.position ?? ''));
      });
    }
    return rows;
  }

  private async store(rows: ReadonlyMap<string, Touched<Row>>, checkpoint: string | undefined): Promise<void> {
    const writes: Write[] = [];
    for (const [key, { row, revision, position, isChanged }] of rows) {
      if (!isChanged) continue;
      const [environment, id] = key.split('\0') as [string, string];
      const text = row === null ? null : (this.view.serialise?.(row) ?? JSON.stringify(row));
      writes.push({ environment, id, position, revision, text, row });
    }
    await this.table.write(writes, checkpoint);
  }
}

function keyOf(environment: string, id: string): string {
  return `${environment}\0${id}`;
}

/** Parsed only when an event has to be folded into it: most rows were written with their event. */
class LazyRow<Row> implements Touched<Row> {
  isChanged = false;
  private parsed: Row | null | undefined;

  constructor(
    private readonly text: string | null,
    public revision: number,
    public position: string,
  ) {}

  get row(): Row | null {
    if (this.parsed === undefined) this.parsed = this.text === null ? null : (JSON.parse(this.text) as Row);
    return this.parsed;
  }

  set row(row: Row | null) {
    this.parsed = row;
  }
}
