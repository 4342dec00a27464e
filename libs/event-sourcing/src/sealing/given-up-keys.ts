import type { EventStore, NewEvent } from '../log/event-store.ts';
import { streamName } from '../log/naming.ts';
import type { ErasablePurpose } from './key-store.ts';

const STREAM = streamName('data_keys', 'system', 'given_up');

/** An operator has declared a data key lost, for ever. */
export async function recordGivenUpKey(events: EventStore, key: ErasablePurpose, record: (type: string) => NewEvent): Promise<void> {
  const last = await events.last(STREAM);
  await events.append(STREAM, last?.version ?? 0, [{ ...record('data_key.given_up'), data: { key } }]);
}
