import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { derivedId, timeOfId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { EventMeta, EventStore, RecordedEvent } from '../log/event-store.ts';
import { streamName } from '../log/naming.ts';
import { isProtocol } from '../log/protocol.ts';
import type { Decider, DecisionContext, Fact, Folded, Recorded } from './decider.ts';

/** A command is taken to happen at the time in its id, so that `created_at` is the time in the new id; one that is repeated later than this happens now. */
const FRESH = 50_000;
/** What was decided so long ago is decided again rather than appended (milliseconds). */
export const DECIDED = 5_000;
/** A record says that it happened this much before it was appended at the most: an engine takes up to 4 s for it, and clocks differ by 10 s. */
export const EARLIER = FRESH + DECIDED + 15_000;

/** When a command happens: milliseconds since the epoch. */
export function momentOf(commandId: string, now: number): number {
  const asked = timeOfId(commandId);
  return now - asked < FRESH && asked <= now ? asked : now;
}

export function decisionContext({ environment, commandId }: RequestContext, at: number): DecisionContext {
  return { environment, now: new Date(at).toISOString(), id: (prefix, ordinal = 0) => `${prefix}_${derivedId(commandId, ordinal)}` };
}

export function metaOf({ environment, actor, requestId, commandId, traceparent }: RequestContext, at: number, organization?: string): EventMeta {
  return {
    environment,
    ...(organization !== undefined && { organization }),
    actor,
    requestId,
    commandId,
    ...(traceparent !== undefined && { traceparent }),
    at,
  };
}

/** What an aggregate has recorded, the oldest first. Only its own decider writes into its stream. */
export async function factsOf<State, Event extends Fact>(
  events: Pick<EventStore, 'read'>,
  { category }: Decider<State, Event>,
  environment: string,
  key: string,
): Promise<readonly Recorded<Event>[]> {
  const records = await events.read(streamName(category, environment, key));
  return records.filter(({ type }) => !isProtocol(type)) as readonly Recorded[] as readonly Recorded<Event>[];
}

/** Tells records of these types from all others of the log. Only their own deciders write them. */
export function areFacts<Event extends Fact>(...types: readonly Event['type'][]): (record: RecordedEvent) => record is RecordedEvent & Recorded<Event> {
  const known: ReadonlySet<string> = new Set(types);
  return (record): record is RecordedEvent & Recorded<Event> => known.has(record.type);
}

/** The state that these facts lead to. @throws NeedsLaterRelease as `evolved` */
export function stateAfter<State, Event extends Fact>(decider: Decider<State, Event>, facts: readonly Recorded<Event>[], before = decider.initial): State {
  return facts.reduce((state, fact) => evolved(decider, state, fact), before);
}

/**
 * The state after the next record of its stream.
 * @throws NeedsLaterRelease where that is of a type, or a shape, that this release does not know: a state without it would be decided on as if it had not happened
 */
export function evolved<State, Event extends Fact>(
  decider: Decider<State, Event, Fact>,
  state: State,
  record: Pick<RecordedEvent, 'type' | 'shape' | 'data' | 'version' | 'position' | 'meta'>,
): State {
  if (!Object.hasOwn(decider.sealed, record.type)) throw new NeedsLaterRelease(record, 0);
  return decider.evolve(state, toFolded<Event>(record));
}

/** What of a record is folded. */
export function toFolded<Event extends Fact>({ type, data, version, meta }: Pick<RecordedEvent, 'type' | 'data' | 'version' | 'meta'>): Folded<Event> {
  return { type, data, at: timeOf(meta), version } as Folded<Event>;
}

/** As `evolve` gets it: ISO 8601 with milliseconds. */
function timeOf({ at }: EventMeta): string {
  return new Date(at).toISOString();
}
