import type { Position } from '../log/event-store.ts';

/** As many rows as are told apart; what was folded long ago is what every member of a store has. */
const MOST = 10_000;

interface FoldedRow {
  readonly position: Position;
  readonly isThere: boolean;
}

/** The rows that a view wrote or found last, by environment and id: none of them is ever older again. */
export class FoldedRows {
  private readonly rows = new Map<string, FoldedRow>();

  get(key: string): FoldedRow | undefined {
    return this.rows.get(key);
  }

  set(key: string, row: FoldedRow): void {
    // The latest stand at the end.
    this.rows.delete(key);
    this.rows.set(key, row);
    if (this.rows.size > MOST) this.rows.delete(this.rows.keys().next().value!);
  }

  /** Rows of later positions may have gone, where a store was put back to that position: their events come again. */
  forgetAfter(position: Position): void {
    for (const [key, row] of this.rows) if (row.position > position) this.rows.delete(key);
  }
}
