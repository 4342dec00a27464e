/** How long what was sealed is remembered at least; twice as long at most. */
const REMEMBERED_MS = 10_000;
/** Characters, sealed and in clear, that are remembered at least before what came first is forgotten; twice as many at most. */
const MOST_CHARACTERS = 4_000_000;

interface Sealed {
  readonly binding: string;
  readonly text: string;
}

/**
 * What this process has sealed a moment ago, for whoever follows the log and opens it next: to decipher it would cost as much as it did to seal it. By the sealed text, of
 * which no other says the same; where it belongs is asked for all the same. It is told once, since readers share what was opened.
 */
export class JustSealed {
  private young = new Map<string, Sealed>();
  private old = new Map<string, Sealed>();
  private characters = 0;
  private timer: NodeJS.Timeout | null = null;

  get size(): number {
    return this.young.size + this.old.size;
  }

  remember(sealed: string, binding: string, text: string): void {
    this.young.set(sealed, { binding, text });
    this.characters += sealed.length + text.length;
    if (this.characters > MOST_CHARACTERS) this.age();
    this.timer ??= setTimeout(() => this.ageLater(), REMEMBERED_MS).unref();
  }

  /** Null where it is not remembered, or was sealed for another place. */
  take(sealed: string, binding: string): string | null {
    const found = this.young.get(sealed) ?? this.old.get(sealed);
    if (found?.binding !== binding) return null;
    if (!this.young.delete(sealed)) this.old.delete(sealed);
    return found.text;
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
