import type { CheckpointElsewhere } from '#libs/event-sourcing/src/following/leased-followers';
import { START, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { placeOf, type LogPlace, type Table } from '#libs/read-models/src/read-models';

interface Noted<Item> {
  readonly item: Item;
  /** Where the log was before: whoever begins there meets it again. */
  readonly before: Position;
}

/**
 * What is to be done because of what was recorded, one item for each stream of the log. Items are in memory: the stored checkpoint only passes what is done, so that whoever takes
 * over meets again what is not.
 */
export class DueWork<Item> {
  /** The checkpoint of a leased follower which notes what it is handed. */
  readonly table: CheckpointElsewhere;
  private readonly noted = new Map<string, Noted<Item>>();
  /** What lies before was looked at. */
  private seen: Position = START;
  /** Where the follower was last: also where it begins. */
  private reached: Position = START;
  private fence: number | undefined;

  constructor(stored: Table<never>) {
    this.table = {
      isElsewhere: true,
      checkpoint: () => stored.checkpoint(),
      recordAt: (position) => stored.recordAt(position),
      write: async (_writes, checkpoint, fence) => {
        if (checkpoint === undefined) return;
        const place = placeOf(checkpoint);
        this.reached = place.position;
        // Under another lease, another process may have been further.
        if (fence !== this.fence) this.begin();
        this.fence = fence;
        await stored.write([], this.doneUpTo(place), fence);
      },
    };
  }

  get size(): number {
    return this.noted.size;
  }

  /** Whenever the follower begins: what was noted before may be another's by now, or of another log. */
  begin(): void {
    this.noted.clear();
    this.seen = this.reached;
  }

  /** Of a record that the follower was handed: what its stream has due from now on; null: nothing. */
  note({ stream, position }: Pick<RecordedEvent, 'stream' | 'position'>, dueOf: (known: Item | undefined) => Item | null): void {
    const known = this.noted.get(stream);
    const item = dueOf(known?.item);
    if (item === null) this.noted.delete(stream);
    else this.noted.set(stream, { item, before: known?.before ?? this.seen });
    this.seen = position;
  }

  /** Only where it is still this that the stream has due. */
  done(stream: string, item: Item): void {
    if (this.noted.get(stream)?.item === item) this.noted.delete(stream);
  }

  *items(): Generator<readonly [stream: string, item: Item]> {
    for (const [stream, { item }] of this.noted) yield [stream, item];
  }

  private doneUpTo(place: LogPlace): LogPlace | Position {
    this.seen = place.position;
    let done = place.position;
    for (const { before } of this.noted.values()) if (before < done) done = before;
    return done === place.position ? place : done;
  }
}
