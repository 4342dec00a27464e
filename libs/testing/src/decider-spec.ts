import type { Decider, Decision, DecisionContext, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError } from '#libs/platform/src/domain-error';

/** A minute before the command. */
const GIVEN_AT = '2026-01-15T11:59:00.000Z';

/** What a decision knows in a spec: ids count up from the command's own. */
const CONTEXT: DecisionContext = {
  environment: 'environment_01J00000000000000000000000',
  now: '2026-01-15T12:00:00.000Z',
  id: (prefix, ordinal = 0) => `${prefix}_01KF0000000000000000000${String(ordinal).padStart(3, '0')}`,
};

interface Outcome<Event extends Fact> {
  /** Exactly these facts follow; asked again afterwards, nothing does. */
  then(...facts: readonly Event[]): void;
  /** As `then`, with facts of which only parts matter. */
  thenMatching(...facts: readonly unknown[]): void;
  thenNothing(): void;
  thenRefused(code: string): void;
}

interface Spec<State, Event extends Fact> {
  /** The time of the command, a minute after the events. */
  readonly now: string;
  /** The id that the command gives to what it creates. */
  readonly id: DecisionContext['id'];
  /** Kinds and values of what is held after these events, so that nobody else can. */
  readonly claims: (...events: readonly Event[]) => readonly (readonly [kind: string, value: string])[];
  readonly given: (...events: readonly Event[]) => { when(decision: Decision<State, Event>, context?: Partial<DecisionContext>): Outcome<Event> };
}

/** Given events, when a command, then events or a refusal. */
export function specOf<State, Event extends Fact>(decider: Decider<State, Event>): Spec<State, Event> {
  const fold = (state: State, events: readonly Event[], at: string, before = 0): State =>
    events.reduce((folded, event, index) => decider.evolve(folded, { ...event, at, version: before + index + 1 }), state);
  return {
    now: CONTEXT.now,
    id: CONTEXT.id,
    claims: (...events) => (decider.claims?.(fold(decider.initial, events, GIVEN_AT)) ?? []).map(({ kind, value }) => [kind, value]),
    given: (...events) => ({
      when(decision, context) {
        const known = { ...CONTEXT, ...context };
        const state = fold(decider.initial, events, GIVEN_AT);
        const isDoneAfter = (facts: readonly Event[]): void => expect(decision(fold(state, facts, known.now, events.length), known)).toEqual([]);
        return {
          then(...facts) {
            expect(decision(state, known)).toEqual(facts);
            isDoneAfter(facts);
          },
          thenMatching(...facts) {
            const decided = decision(state, known);
            expect(decided).toMatchObject(facts);
            expect(decided).toHaveLength(facts.length);
            isDoneAfter(decided);
          },
          thenNothing() {
            expect(decision(state, known)).toEqual([]);
          },
          thenRefused(code) {
            expect(() => decision(state, known)).toThrow(DomainError);
            try {
              decision(state, known);
            } catch (error) {
              expect((error as DomainError).code).toBe(code);
            }
          },
        };
      },
    }),
  };
}
