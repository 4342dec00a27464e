import type { Fact } from '../decider.ts';

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
  const left = Object.entries(closings).filter(([other]) => other !== id);
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

/** What a fact says of intents that `changesClosings`; the end of a thing says the id alone. */
export function closingIn({ data }: { readonly data: unknown }): ClosingFact {
  return data as ClosingFact;
}

/** Whether a fact may open or end an intent; all other facts leave them as they are. */
export function changesClosings(type: string): boolean {
  return type.endsWith('.closing') || type.endsWith('.reopened') || type.endsWith('.deleted');
}
