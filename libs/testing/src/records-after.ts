import type { EventStore, Position, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';

/**
 * Everything that was recorded after a position until now, oldest first; only what holds one of these names (ids of resources, of requests) when some are given. Asked so
 * whether something recorded nothing, since what the product does by itself may move the end of the log at any time.
 */
export async function recordsAfter(
  events: Pick<EventStore, 'head' | 'subscribe'>,
  position: Position,
  ...names: readonly string[]
): Promise<readonly RecordedEvent[]> {
  const [records, head, reading] = [[] as RecordedEvent[], await events.head(), new AbortController()];
  if (head > position)
    for await (const batch of events.subscribe(position, reading.signal)) {
      records.push(...batch);
      if (batch.at(-1)!.position >= head) break;
    }
  reading.abort();
  if (names.length === 0) return records;
  return records.filter((record) => {
    const text = JSON.stringify(record);
    return names.some((name) => text.includes(name));
  });
}
