import { derivedId, timeOfId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { EventMeta } from '../log/event-store.ts';
import type { DecisionContext } from './decider.ts';

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
