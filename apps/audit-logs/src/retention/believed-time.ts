import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { contentOf, type ReadModels, type Table } from '#libs/read-models/src/read-models';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Between two looks. A clock that has gone further has jumped, or nobody has looked for so long: nothing tells one from the other. */
const FURTHEST = 2 * DAY;
/** A time that came by a jump is believed when the clock has gone on from it for so long. */
const DOUBTED = DAY;
/** Clocks of replicas differ, and are set. */
const BACK = HOUR;
const ID = 'clock';

/** Milliseconds since the epoch. */
export interface BelievedTime {
  /** It was so late, as far as anybody believes. */
  readonly believed: number;
  /** What the clock said when it was last looked at. */
  readonly seen: number;
  /** From when on it has not jumped; null where that is long ago. */
  readonly doubtedFrom: number | null;
}

/** What is believed after a look at the clock. */
export function lookedAt(before: BelievedTime | null, now: number): BelievedTime {
  const hasJumped = before === null || now - before.seen > FURTHEST || now < before.seen - BACK;
  const doubtedFrom = hasJumped ? now : before.doubtedFrom !== null && now - before.doubtedFrom >= DOUBTED ? null : before.doubtedFrom;
  return { believed: doubtedFrom === null ? now : Math.min(before?.believed ?? 0, now), seen: now, doubtedFrom };
}

/** The time by which something may be destroyed for good: a clock that jumps a year ahead, and is set right within a day, has destroyed nothing. */
export class DoubtedClock {
  constructor(private readonly table: Table<BelievedTime>) {}

  static of(readModels: ReadModels): DoubtedClock {
    return new DoubtedClock(readModels.table({ name: 'audit_believed_time', indexes: [], guard: 'none', rebuildable: false, isMadeAnew: true }));
  }

  async believed(now: number): Promise<number> {
    const row = await this.table.get(SYSTEM_ENVIRONMENT, ID);
    const before = row === null ? null : contentOf(row);
    const after = lookedAt(before, now);
    // Every look would be a write for each environment and minute.
    if (before === null || after.doubtedFrom !== before.doubtedFrom || Math.abs(after.seen - before.seen) >= HOUR)
      await this.table.write([{ environment: SYSTEM_ENVIRONMENT, id: ID, position: '', revision: 0, text: JSON.stringify(after) }]);
    return after.believed;
  }
}
