import type { Fact } from '../decider.ts';
import type { Position, RecordedEvent } from '../event-store.ts';

/** An intent to narrow a thing, such as to delete it unless it is used. While it is open, nothing may begin to hang on the thing. */
export interface Closing {
  readonly intent: string;
  /** ISO 8601: when it was recorded. */
  readonly at: string;
}

/** What an intent says of itself, and what ends it without a change. Private facts of the stream of the thing. */
export type ClosingEvent<Thing extends string> = Fact<`${Thing}.closing`, ClosingFact> | Fact<`${Thing}.reopened`, ClosingFact>;

interface ClosingFact {
  /** Of the thing. */
  readonly id: string;
  readonly intent: string;
}

/** The open intents of a state, by the ids of the things. Absent where there are none, so that a state is as it was before them. */
export interface WithClosings {
  readonly closings?: Readonly<Record<string, Closing>>;
}

/** Whoever recorded an intent that is older than this died, or is about to fail: whoever meets it reopens the thing. Milliseconds. */
const ABANDONED = 10_000;
/** Things whose last change is remembered; of the others it is looked up. */
const MANY = 1_000;

/** Another's intent is open: it is over soon, one way or the other. */
export class StillClosing extends Error {
  constructor(readonly id: string) {
    super(`'${id}' is being closed by another.`);
  }
}

export function isAbandoned({ at }: Closing, now: number): boolean {
  return now - Date.parse(at) > ABANDONED;
}

/** The state after an intent, or after its end; what an earlier intent says of itself later changes nothing. */
export function afterClosing<State extends WithClosings>(state: State, { type, data, at }: Fact<string, ClosingFact> & { readonly at: string }): State {
  const { id, intent } = data;
  if (type.endsWith('.closing')) return { ...state, closings: { ...state.closings, [id]: { intent, at } } };
  return state.closings?.[id]?.intent === intent ? withoutClosing(state, id) : state;
}

/** The state after the end of a thing: no intent outlives it. */
export function withoutClosing<State extends WithClosings>(state: State, id: string): State {
  if (state.closings?.[id] === undefined) return state;
  const { closings, ...rest } = state;
  const left = Object.entries(closings!).filter(([other]) => other !== id);
  return (left.length === 0 ? rest : { ...rest, closings: Object.fromEntries(left) }) as State;
}

/**
 * The intent to narrow a thing; none where it is open already. One that was abandoned is ended by it.
 * @throws StillClosing while another's is open
 */
export function closingOf<Thing extends string>(
  thing: Thing,
  open: Closing | undefined,
  { id, intent, now }: { readonly id: string; readonly intent: string; readonly now: number },
): readonly ClosingEvent<Thing>[] {
  if (open?.intent === intent) return [];
  if (open !== undefined && !isAbandoned(open, now)) throw new StillClosing(id);
  const closing: ClosingEvent<Thing> = { type: `${thing}.closing`, data: { id, intent } };
  return open === undefined ? [closing] : [...reopeningOf(thing, open, id, open.intent), closing];
}

/** The end of an intent without a change; nothing where another is open by now, or none. */
export function reopeningOf<Thing extends string>(thing: Thing, open: Closing | undefined, id: string, intent: string): readonly ClosingEvent<Thing>[] {
  return open?.intent === intent ? [{ type: `${thing}.reopened`, data: { id, intent } }] : [];
}

/** Whether a fact may open or end an intent; all other facts leave them as they are. */
export function changesClosings(type: string): boolean {
  return type.endsWith('.closing') || type.endsWith('.reopened') || type.endsWith('.deleted');
}

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
  apply({ type, data, position, meta }: Pick<RecordedEvent, 'type' | 'data' | 'position' | 'meta'>): void {
    const { id, intent } = data as ClosingFact;
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
