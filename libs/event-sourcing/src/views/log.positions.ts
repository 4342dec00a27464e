import { DomainError } from '#libs/platform/src/domain-error';
import { Positions } from '#libs/platform/src/positions';
import type { LogFollowing } from '../following/memory-follower.ts';
import type { Position } from '../log/event-store.ts';
import type { Projector } from './projector.ts';

/** Positions as the views of this process have reached them. */
export class LogPositions extends Positions {
  constructor(
    private readonly following: LogFollowing,
    private readonly projector: Pick<Projector, 'all'>,
  ) {
    super();
  }

  async reached(position: Position, deadline: number): Promise<void> {
    const { reader, gate, clock } = this.following;
    // What this process has read and shows lies before the end wherever that is, until it finds out that the log was put back: then it has read nothing.
    const isKnown = isOfOneForm(position, reader.end) && position <= reader.end;
    if (isKnown && this.projector.all.every((view) => view.hasSeen(position))) return;
    const head = await reader.head(deadline - clock.now());
    if (!isOfOneForm(position, head) || position > head) throw beyondTheEnd(position);
    await gate.reached(position, deadline, this.projector.all);
  }
}

/** Positions of one log are, so anything else can be told without taking one apart. */
function isOfOneForm(position: string, other: Position): boolean {
  return /^[0-9A-Za-z/-]{1,64}$/.test(position) && position.length === other.length;
}

function beyondTheEnd(position: string): DomainError {
  const message = 'The position lies beyond the end of the log.';
  return new DomainError('invalid', 'position_not_reached', message, {
    errors: [{ code: 'position_not_reached', field: 'Gatehouse-Position', message: `${message} '${position.slice(0, 64)}'` }],
  });
}
