import type { Position } from '../log/event-store.ts';

/** As many rows as are told apart at least; what was folded long ago is what every member of a store has. */
const LEAST = 5_000;

interface FoldedRow {
  readonly position: Position;
  readonly isThere: boolean;
}

/**
 * The rows that a view wrote or found last, by environment and id: none of them is ever older again. In two generations: taking the oldest out of one large map, one by one,
 * costs more than the fold.
 */
export class FoldedRows {
  private young = new Map<string, FoldedRow>();
  private old: ReadonlyMap<string, FoldedRow> = new Map();

  get(key: string): FoldedRow | undefined {
    return this.young.get(key) ?? this.old.get(key);
  }

  set(key: string, row: FoldedRow): void {
    this.young.set(key, row);
    if (this.young.size < LEAST) return;
    this.old = this.young;
    this.young = new Map();
  }

  /** Rows of later positions may have gone, where a store was put back to that position: their events come again. */
  forgetAfter(position: Position): void {
    this.young = new Map([...this.old, ...this.young].filter(([, row]) => row.position <= position));
    this.old = new Map();
  }
}
