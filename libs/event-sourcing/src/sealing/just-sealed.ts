/** How long what was sealed is remembered at least; twice as long at most. */
const REMEMBERED_MS = 10_000;
/** Characters, sealed and in clear, that are remembered at least before what came first is forgotten; twice as many at most. */
const MOST_CHARACTERS = 4_000_000;

/** Where exactly a value lies. */
export interface ValuePlace {
  readonly stream: string;
  /** Of the record. */
  readonly id: string;
  /** Within it: `data.email`. */
  readonly at: string;
}

interface Sealed {
  readonly sealed: string;
  readonly text: string;
}

interface SealedRecord {
  readonly stream: string;
  /** By where they are. */
  readonly values: Map<string, Sealed>;
}

/**
 * What this process has sealed a moment ago, for whoever follows the log and opens it next: to decipher it would cost as much as it did to seal it. By the record and the place
 * in it, and only for the very text that was sealed. It is told once, since readers share what was opened.
 */
export class JustSealed {
  private young = new Map<string, SealedRecord>();
  private old = new Map<string, SealedRecord>();
  private characters = 0;
  private timer: NodeJS.Timeout | null = null;

  /** In records. */
  get size(): number {
    return this.young.size + this.old.size;
  }

  remember({ stream, id, at }: ValuePlace, sealed: string, text: string): void {
    let record = this.young.get(id);
    if (record?.stream !== stream) this.young.set(id, (record = { stream, values: new Map() }));
    record.values.set(at, { sealed, text });
    this.characters += sealed.length + text.length;
    if (this.characters > MOST_CHARACTERS) this.age();
    this.timer ??= setTimeout(() => this.ageLater(), REMEMBERED_MS).unref();
  }

  /** Null where it is not remembered, or was sealed for another place. */
  take(place: ValuePlace, sealed: string): string | null {
    return takenFrom(this.young, place, sealed) ?? takenFrom(this.old, place, sealed);
  }

  private ageLater(): void {
    this.age();
    this.timer = this.size === 0 ? null : setTimeout(() => this.ageLater(), REMEMBERED_MS).unref();
  }

  private age(): void {
    this.old = this.young;
    this.young = new Map();
    this.characters = 0;
  }
}

function takenFrom(records: Map<string, SealedRecord>, { stream, id, at }: ValuePlace, sealed: string): string | null {
  const record = records.get(id);
  const found = record?.values.get(at);
  if (record?.stream !== stream || found?.sealed !== sealed) return null;
  record.values.delete(at);
  if (record.values.size === 0) records.delete(id);
  return found.text;
}
