import type { Pages } from '#libs/read-models/src/pages';
import { UnknownCursor, type PageRequest, type RowPage } from '#libs/read-models/src/read-models';

interface Item {
  readonly id: string;
}

/** Where reading begins, itself included; null: at the end that comes first. */
export interface Stretch {
  readonly from: string | null;
  readonly isAscending: boolean;
  /** About how many will be wanted. */
  readonly most: number;
}

/** Items in the order of their ids, as many as are asked for. */
export type Source<T extends Item> = (stretch: Stretch) => AsyncIterator<T>;

/** Pages of what several sources hold, in the order of ids; no id is in two of them. */
export class MergedPages<T extends Item> implements Pages {
  constructor(
    private readonly sources: readonly Source<T>[],
    /** Whether the id was ever on a list of this kind. */
    private readonly isKnown: (id: string) => Promise<boolean>,
    /** What is answered of the items of a page, in their order. */
    private readonly textsOf: (items: readonly T[]) => Promise<readonly string[]>,
  ) {}

  async page(_environment: string, { order, limit, after, before }: PageRequest): Promise<RowPage> {
    const cursor = after ?? before ?? null;
    if (cursor !== null && !(await this.isKnown(cursor))) throw new UnknownCursor(after === undefined ? 'before' : 'after');
    // Backwards from a cursor, what is next to it comes first.
    const isAscending = (order === 'asc') === (before === undefined);
    const ahead = await this.read({ from: cursor, isAscending, most: limit + 2 }, limit + 1, cursor);
    const isFurther = ahead.length > limit;
    const isBehind = cursor !== null && (await this.read({ from: cursor, isAscending: !isAscending, most: 1 }, 1)).length > 0;
    const items = ahead.slice(0, limit);
    const texts = await this.textsOf(items);
    const rows = items.map(({ id }, index) => ({ id, text: texts[index]!, position: '', revision: 0 }));
    return before === undefined ? { rows, hasBefore: isBehind, hasAfter: isFurther } : { rows: rows.reverse(), hasBefore: isFurther, hasAfter: isBehind };
  }

  private async read(stretch: Stretch, most: number, except: string | null = null): Promise<readonly T[]> {
    const items: T[] = [];
    const streams = await Promise.all(this.sources.map((source) => begun(source(stretch))));
    for (let open = streams.filter(hasItem<T>); open.length > 0 && items.length < most; open = open.filter(hasItem<T>)) {
      const first = open.reduce((one, other) => (one.item.id < other.item.id === stretch.isAscending ? one : other));
      if (first.item.id !== except) items.push(first.item);
      await advance(first);
    }
    return items;
  }
}

interface Stream<T> {
  readonly items: AsyncIterator<T>;
  item: T | null;
}

async function begun<T>(items: AsyncIterator<T>): Promise<Stream<T>> {
  const stream: Stream<T> = { items, item: null };
  await advance(stream);
  return stream;
}

async function advance<T>(stream: Stream<T>): Promise<void> {
  const next = await stream.items.next();
  stream.item = next.done === true ? null : next.value;
}

function hasItem<T>(stream: Stream<T>): stream is Stream<T> & { readonly item: T } {
  return stream.item !== null;
}
