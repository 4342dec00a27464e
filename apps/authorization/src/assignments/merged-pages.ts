import type { Pages } from '#libs/read-models/src/pages';
import { UnknownCursor, type PageRequest, type RowPage, type StoredRow } from '#libs/read-models/src/read-models';

export type Item = Pick<StoredRow, 'id' | 'text'>;

/** Where reading begins, itself included; null: at the end that comes first. */
export interface Stretch {
  readonly from: string | null;
  readonly isAscending: boolean;
  /** About how many will be wanted. */
  readonly most: number;
}

/** Items in the order of their ids, as many as are asked for. */
export type Source = (stretch: Stretch) => AsyncIterator<Item>;

/** Pages of what several sources hold, in the order of ids; no id is in two of them. */
export class MergedPages implements Pages {
  constructor(
    private readonly sources: readonly Source[],
    /** Whether the id was ever on a list of this kind. */
    private readonly isKnown: (id: string) => Promise<boolean>,
  ) {}

  async page(_environment: string, { order, limit, after, before }: PageRequest): Promise<RowPage> {
    const cursor = after ?? before ?? null;
    if (cursor !== null && !(await this.isKnown(cursor))) throw new UnknownCursor(after === undefined ? 'before' : 'after');
    // Backwards from a cursor, what is next to it comes first.
    const isAscending = (order === 'asc') === (before === undefined);
    const ahead = await this.read({ from: cursor, isAscending, most: limit + 2 }, limit + 1, cursor);
    const isFurther = ahead.length > limit;
    const isBehind = cursor !== null && (await this.read({ from: cursor, isAscending: !isAscending, most: 1 }, 1)).length > 0;
    const rows = ahead.slice(0, limit).map((item) => ({ ...item, position: '', revision: 0 }));
    return before === undefined ? { rows, hasBefore: isBehind, hasAfter: isFurther } : { rows: rows.reverse(), hasBefore: isFurther, hasAfter: isBehind };
  }

  private async read(stretch: Stretch, most: number, except: string | null = null): Promise<readonly Item[]> {
    const items: Item[] = [];
    const streams = await Promise.all(this.sources.map((source) => begun(source(stretch))));
    for (let open = streams.filter(hasItem); open.length > 0 && items.length < most; open = open.filter(hasItem)) {
      const first = open.reduce((one, other) => (one.item.id < other.item.id === stretch.isAscending ? one : other));
      if (first.item.id !== except) items.push(first.item);
      await advance(first);
    }
    return items;
  }
}

interface Stream {
  readonly items: AsyncIterator<Item>;
  item: Item | null;
}

async function begun(items: AsyncIterator<Item>): Promise<Stream> {
  const stream = { items, item: null };
  await advance(stream);
  return stream;
}

async function advance(stream: Stream): Promise<void> {
  const next = await stream.items.next();
  stream.item = next.done === true ? null : next.value;
}

function hasItem(stream: Stream): stream is Stream & { readonly item: Item } {
  return stream.item !== null;
}
