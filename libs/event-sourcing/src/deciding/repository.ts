import type { RequestContext } from '#libs/platform/src/request-context';
import type { Position } from '../log/event-store.ts';
import type { Decider, Decision, Fact } from './decider.ts';

export interface Transacted<State, Event extends Fact> {
  readonly state: State;
  /** What was recorded, as it is folded; empty when the command was already satisfied. */
  readonly facts: readonly Event[];
  /** This very command was carried out before, by whoever was asked then: nothing was decided, and the state is as it stands now. */
  readonly isRepeat: boolean;
  readonly position: Position;
  readonly version: number;
}

/** Loads, claims, decides and appends, again and again until no other append interferes. */
export abstract class Repository {
  /**
   * Carries out a command on one aggregate (architecture §5 step 4 to 6): durable, its primary row visible, when it resolves.
   * @throws DomainError as the decision or a claim refuses; `service_unavailable` past the context's deadline; `idempotency_outcome_unknown` where nobody can tell
   *   any more whether it was carried out before; `payload_too_large` where a caller asks for more than can be recorded at once, which to the system is AppendTooLarge
   */
  abstract transact<State, Event extends Fact, Written extends Fact = Event>(
    decider: Decider<State, Event, Written>,
    context: RequestContext,
    key: string,
    decide: Decision<State, Written>,
  ): Promise<Transacted<State, Event>>;

  /** The current state, folded from the stream (and the caught-up row). */
  abstract load<State, Event extends Fact>(decider: Decider<State, Event, Fact>, environment: string, key: string): Promise<State>;
}

/**
 * Each `transact` call of a command reserves so many derived ids: a retry derives the same ids even where an earlier call appends nothing this time. A decision that
 * yields more facts than that has to be the last of its command.
 */
export const IDS_PER_TRANSACT = 1_024;

/** As if one more aggregate had been asked, which need not be this time: those that are asked next have the same ids whenever the command is repeated. */
export function passOver({ receipt }: RequestContext): void {
  receipt.transacts = (receipt.transacts ?? 0) + 1;
}
