import type { Position, RecordedEvent } from '../../log/event-store.ts';
import { closingIn, type Closing } from './closings.decider.ts';

/** Things whose last change is remembered; of the others it is looked up. */
const MANY = 1_000;

/** The open intents as whoever follows the log knows them, and since when: for looks at what was so at a position. */
export class KnownClosings {
  private readonly open = new Map<string, Closing>();
  private readonly changed = new Map<string, Position>();

  /** `from`: of what changed up to there it is not known when, only how it stands. */
  constructor(private from: Position) {}

  /** Everything up to here was learnt otherwise than by `apply`. */
  knownFrom(position: Position): void {
    if (position > this.from) this.from = position;
  }

  learn(id: string, closing: Closing): void {
    this.open.set(id, closing);
  }

  /** Takes in a fact about a thing: an intent, its end, or the end of the thing. */
  apply(event: Pick<RecordedEvent, 'type' | 'data' | 'position' | 'meta'>): void {
    const { type, position, meta } = event;
    const { id, intent } = closingIn(event);
    if (type.endsWith('.closing')) this.open.set(id, { intent, at: new Date(meta.at).toISOString() });
    else if (type.endsWith('.deleted') || this.open.get(id)?.intent === intent) {
      if (!this.open.delete(id)) return;
    } else return;
    this.changed.set(id, position);
    if (this.changed.size > MANY) this.forgetOldest();
  }

  of(id: string): { readonly closing: Closing | null; readonly since: Position } {
    const changed = this.changed.get(id);
    return { closing: this.open.get(id) ?? null, since: changed === undefined || changed < this.from ? this.from : changed };
  }

  private forgetOldest(): void {
    const [id, position] = this.changed.entries().next().value!;
    this.changed.delete(id);
    this.knownFrom(position);
  }
}
