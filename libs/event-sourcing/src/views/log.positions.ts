import type { Clock } from '#libs/platform/src/clock';
import { within } from '#libs/platform/src/deadline';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { Positions } from '#libs/platform/src/positions';
import type { EventStore, Position } from '../log/event-store.ts';
import type { Projector } from './projector.ts';

/** Positions as the views of this process have reached them. */
export class LogPositions extends Positions {
  constructor(
    private readonly events: EventStore,
    private readonly projectors: readonly Projector[],
    private readonly clock: Clock,
  ) {
    super();
  }

  async reached(position: Position, deadline: number): Promise<void> {
    const head = await this.events.head();
    // Positions of one log are of one form, so anything else can be told without taking one apart.
    if (!/^[0-9A-Za-z/-]{1,64}$/.test(position) || position.length !== head.length || position > head) throw beyondTheEnd(position);
    const late = new AbortController();
    const caughtUp = Promise.all(this.projectors.map((projector) => projector.caughtUpWith(position, late.signal)));
    try {
      await within(caughtUp, deadline - this.clock.now(), () => unavailable('This replica has not reached that position yet.'));
    } finally {
      late.abort();
    }
  }
}

function beyondTheEnd(position: string): DomainError {
  const message = 'The position lies beyond the end of the log.';
  return new DomainError('invalid', 'position_not_reached', message, {
    errors: [{ code: 'position_not_reached', field: 'Gatehouse-Position', message: `${message} '${position.slice(0, 64)}'` }],
  });
}
