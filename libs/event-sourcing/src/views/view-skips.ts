import type { EventStore, NewEvent, Position } from '../log/event-store.ts';
import { streamName } from '../log/naming.ts';

/** The positions that an operator decided to leave out of a view. */
export async function skippedOf(events: EventStore, view: string): Promise<ReadonlySet<Position>> {
  const skips = await events.read(skipStream(view));
  return new Set(skips.map(({ data }) => (data as { readonly position: Position }).position));
}

/** Records such a decision. */
export async function recordSkip(
  events: EventStore,
  { view, position, reason }: { readonly view: string; readonly position: Position; readonly reason: string },
  record: (type: string) => NewEvent,
): Promise<void> {
  const stream = skipStream(view);
  const past = await events.read(stream);
  await events.append(stream, past.at(-1)?.version ?? 0, [{ ...record('view.event_skipped'), data: { view, position, reason } }]);
}

/** Where these decisions are recorded. */
function skipStream(view: string): string {
  return streamName('view', 'system', view);
}
