import type { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { EventStore, Position, RecordedEvent } from '../../log/event-store.ts';
import { changesClosings, closingIn, isAbandoned, type Closing } from './closings.decider.ts';

/** How a thing stands that something else hangs on, as rows or an index have it that show at least what is looked at. */
export interface ParentStatus {
  /** Where its intents are recorded. */
  readonly stream: string;
  readonly id: string;
  /** Whether it is there, and still allows what hangs on it. */
  readonly allows: boolean;
  /** The intent that is open, or null. */
  readonly closing: Closing | null;
  /** Neither changed after this. */
  readonly since: Position;
}

/** A thing that is closed by an intent that nobody follows up. */
class Abandoned extends Error {
  constructor(readonly status: ParentStatus) {
    super(`'${status.id}' was left closed.`);
  }
}

/** Records that are read at once. */
const PAGE = 100;

/**
 * Whether what was recorded at a position may hang on all of these: each allows it, and none was closed by an intent that was open at that position. The same
 * answer whenever it is asked, whoever asks: that is what makes a creator and the reaction that stands in for it agree.
 */
export async function mayHang(events: EventStore, statuses: readonly ParentStatus[], position: Position): Promise<boolean> {
  if (statuses.some(({ allows }) => !allows)) return false;
  const closed = await Promise.all(statuses.map((status) => wasClosed(events, status, position)));
  return !closed.includes(true);
}

/**
 * Refuses at once what could not stay.
 * @throws DomainError as `refusal`; for `pastAbandoned` where the intent was left open
 */
export function refuseClosed(statuses: readonly ParentStatus[], now: number, refusal: () => DomainError): void {
  const closed = statuses.filter(({ closing }) => closing !== null);
  const abandoned = closed.find(({ closing }) => isAbandoned(closing!, now));
  if (abandoned !== undefined) throw new Abandoned(abandoned);
  if (closed.length > 0) throw refusal();
}

/** Carries out what refuses what is closed; what was left closed is reopened, and it is tried again. */
export async function pastAbandoned<Done>(
  { receipt }: RequestContext,
  reopen: (status: ParentStatus) => Promise<unknown>,
  work: () => Promise<Done>,
): Promise<Done> {
  for (const { transacts } = { ...receipt }; ;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Abandoned)) throw error;
      await reopen(error.status);
      // Nothing was recorded: a repetition of the command meets the same ids.
      if (transacts === undefined) delete receipt.transacts;
      else receipt.transacts = transacts;
    }
  }
}

async function wasClosed(events: EventStore, { stream, id, closing, since }: ParentStatus, position: Position): Promise<boolean> {
  if (since <= position) return closing !== null;
  const next = (await recordedAfter(events, stream, position)).find((record) => changesClosings(record.type) && closingIn(record).id === id);
  // What came first after the position tells how it was before.
  return next === undefined ? closing !== null : !next.type.endsWith('.closing');
}

/** What a stream records after a position, without what lies before it. */
async function recordedAfter(events: EventStore, stream: string, position: Position): Promise<readonly RecordedEvent[]> {
  const found: RecordedEvent[] = [];
  for (let from: number | undefined; from !== 0;) {
    const page = await events.readBackwards(stream, PAGE, from);
    const news = page.filter((record) => record.position > position);
    found.push(...news);
    if (news.length < PAGE) break;
    from = page.at(-1)!.version - 1;
  }
  return found.toReversed();
}
