import { isAdministrative } from '#libs/contracts/src/administration';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { KNOWN_BY, knownBy, TELLINGS, type Told, type Telling } from './administrative-facts.ts';
import { leavesOf, tellable, type Leaves } from './leaves.ts';

/** What an audit event says of a fact. */
export interface ToldChange {
  readonly target: { readonly type: string; readonly id: string; readonly name: string | null };
  readonly before: Leaves;
  readonly after: Leaves;
}

/** What targets are called by, the first that they have. */
const NAMES = ['name', 'slug', 'uri', 'origin', 'domain', 'endpoint_url'];

/** What the facts of one stream have said so far: what was before stands in the facts before. */
export class AdministeredStream {
  private readonly known = new Map<string, Map<string, unknown>>();
  private begunBy: string | null = null;
  /** Of the last record. */
  private last = 0;

  get version(): number {
    return this.last;
  }

  /** Takes the next record; null where nothing is told of it. */
  take(record: RecordedEvent): ToldChange | null {
    const { type, version, meta } = record;
    if (version === 1) this.begunBy = meta.commandId;
    this.last = version;
    if ((KNOWN_BY as readonly string[]).includes(type))
      for (const [target, id, says] of knownBy(record as Parameters<typeof knownBy>[0])) this.note(target, id, leavesOf(says));
    return isAdministrative(type) ? this.told(TELLINGS[type], record) : null;
  }

  private told(telling: Telling, record: RecordedEvent): ToldChange | null {
    const { does, target, defaults, takenFrom } = telling;
    const id = telling.idOf(record);
    const held: Leaves = this.known.get(keyOf(target, id)) ?? (defaults === undefined ? new Map() : leavesOf(defaults));
    const says = leavesOf(telling.shows(record.data));
    const after = does === 'changes' ? new Map([...says].filter(([path, value]) => differs(held.get(path), value))) : says;
    const before: Leaves = does === 'changes' ? new Map([...held].filter(([path]) => after.has(path))) : does === 'ends' ? held : new Map();
    const about: Told = { record, known: held, begunBy: this.begunBy };
    const isTold = telling.isTold?.(about, after.size > 0) ?? true;
    if (does === 'ends') {
      this.known.delete(keyOf(target, id));
      if (takenFrom !== undefined) this.takeFrom(takenFrom, held.get('slug'));
    } else if (does !== 'happens') this.note(target, id, new Map([...held, ...says]));
    const names = tellable(new Map([...held, ...says].filter(([path]) => NAMES.includes(path))));
    const name = NAMES.map((each) => names.get(each)).find((each) => typeof each === 'string') ?? null;
    return isTold ? { target: { type: target, id, name }, before: tellable(before), after: tellable(after) } : null;
  }

  private note(target: string, id: string, says: Leaves): void {
    const key = keyOf(target, id);
    const held = this.known.get(key) ?? new Map<string, unknown>();
    for (const [path, value] of says) held.set(path, value);
    this.known.set(key, held);
  }

  private takeFrom({ target, list }: NonNullable<Telling['takenFrom']>, item: unknown): void {
    for (const [key, held] of this.known) {
      const items = held.get(list);
      if (key.startsWith(`${target} `) && Array.isArray(items))
        held.set(
          list,
          items.filter((each) => each !== item),
        );
    }
  }
}

/** A secret that is given is sealed anew, and so another one; one that is kept is copied as it lies sealed. */
function differs(before: unknown, after: unknown): boolean {
  return JSON.stringify(before ?? null) !== JSON.stringify(after);
}

function keyOf(target: string, id: string): string {
  return `${target} ${id}`;
}
