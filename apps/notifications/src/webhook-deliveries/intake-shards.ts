import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { hashOf } from '#libs/platform/src/text-hash';

/** For ever: with others, an organization would move between two shards of which one is further than the other. */
const SHARDS = 12;
export const INTAKE_SHARDS: readonly number[] = Array.from({ length: SHARDS }, (_, shard) => shard);

/** Events of one organization stay together; what belongs to none stays with its stream. */
export function shardOf({ stream, meta }: Pick<RecordedEvent, 'stream' | 'meta'>): number {
  return hashOf(meta.organization ?? stream) % SHARDS;
}
