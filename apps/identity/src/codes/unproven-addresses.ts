import type { Decision, Fact, FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { toFolded } from '#libs/event-sourcing/src/deciding/records';
import type { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import type { PrimaryView } from '#libs/event-sourcing/src/views/view';
import type { LaterFact } from '../domain/known-version.decider.ts';
import type { UserEvent } from '../domain/user.decider.ts';

type UserUpdated = FactOf<UserEvent, 'user.updated'>;

interface Ending<State, Event extends Fact, Row extends State & object> {
  /** Of the reaction. */
  readonly name: string;
  /** Of what ends, by its user. */
  readonly view: PrimaryView<State, Event, Row>;
  readonly end: (id: string, fact: LaterFact) => Decision<State, Event>;
}

/**
 * Whoever set something before the address was proven need not be whom it is of: it counts no more from the proof on, and ends by this. What proved the address, such as a
 * session, stays.
 */
export function endWithUnprovenAddress<State, Event extends Fact, Row extends State & object>(
  cascade: Cascade,
  { name, view, end }: Ending<State, Event, Row>,
): Reaction<UserUpdated> {
  return {
    name,
    handles: ['user.updated'],
    react: async (event: Recorded<UserUpdated>) => {
      const { credentials_removed_by: by } = event.data;
      if (by === undefined) return;
      await cascade.each(event, view, { index: 'user', values: [streamKeyOf(event.stream)] }, async ({ id }) => {
        if (id !== by) await cascade.decide(event, view.decider, id, end(id, toFolded(event)));
      });
    },
  };
}
