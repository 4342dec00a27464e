/** Kinds that are told apart, and characters of one: what begins with an id of its own is a kind for each row. */
const MOST_KINDS = 64;
const LONGEST_KIND = 32;

/**
 * The last id of each kind that rows were given so far: what lies behind it is new, and need not be looked for. Ids of one kind begin alike, up to the last `_`, or with the same
 * character where there is none; most of them grow with time.
 */
export class LastIds {
  private readonly known = new Map<string, string>();

  /** `lastStored`: of those that begin so; '' where there is none. Asked before the first of a kind is written, since then nothing of that is on its way. */
  constructor(private readonly lastStored: (kind: string) => string) {}

  /** True: there is no such row, and none was deleted. */
  isNew(id: string): boolean {
    const last = this.known.get(kindOf(id));
    return last !== undefined && id > last;
  }

  /** A row of this id is about to be written, or to go. */
  add(id: string): void {
    const kind = kindOf(id);
    let last = this.known.get(kind);
    if (last === undefined) {
      // One that was left out when it first came can never be told.
      if (this.known.size >= MOST_KINDS || kind.length > LONGEST_KIND) return;
      last = this.lastStored(kind);
      this.known.set(kind, last);
    }
    if (id > last) this.known.set(kind, id);
  }
}

function kindOf(id: string): string {
  return id.slice(0, id.lastIndexOf('_') + 1 || 1);
}
