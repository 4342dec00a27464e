import { setTimeout as pause } from 'node:timers/promises';
import type { Position, RecordedEvent } from '../log/event-store.ts';
import { UnreadableRecord } from '../log/lazy-record.ts';
import { purposeOf } from '../sealing/holders.ts';
import type { ErasablePurpose, KeyStore } from '../sealing/key-store.ts';
import { ERASED, holdersOf } from './erasing.ts';

/** What was recorded a moment ago is being carried out while the log is looked through. */
const PATIENCE = 2_000;
const LOOK = 250;

/** An erasure that the log asks for, while a key that it names has no tombstone. */
export interface UnfinishedErasure {
  readonly position: Position;
  readonly stream: string;
  readonly detail: string;
}

/** For whoever reads the log from its beginning: which erasures of it the keys have not seen. */
export class ErasureCheck {
  private readonly left = new Map<ErasablePurpose, Pick<RecordedEvent, 'position' | 'stream'>>();

  constructor(private readonly keys: KeyStore) {}

  /** At the next records. */
  async look(records: readonly RecordedEvent[]): Promise<void> {
    const asked = new Map<ErasablePurpose, RecordedEvent>();
    for (const record of records) {
      if (record.type !== ERASED || record instanceof UnreadableRecord) continue;
      for (const holder of holdersOf(record)) asked.set(purposeOf(holder, record.meta.environment), record);
    }
    if (asked.size === 0) return;
    const erased = await this.keys.erasedAmong([...asked.keys()]);
    for (const [purpose, { position, stream }] of asked) if (!erased.has(purpose)) this.left.set(purpose, { position, stream });
  }

  /** After the last of them: those that nobody carries out in `patience` milliseconds, in the order of the log. */
  async unfinished(patience = PATIENCE): Promise<readonly UnfinishedErasure[]> {
    for (const until = performance.now() + patience; ; await pause(LOOK)) {
      for (const purpose of await this.keys.erasedAmong([...this.left.keys()])) this.left.delete(purpose);
      if (this.left.size === 0) return [];
      if (performance.now() >= until) break;
    }
    const upTo = await this.keys.erasedUpTo();
    const counted = new Map<Position, { readonly stream: string; keys: number }>();
    for (const { position, stream } of this.left.values()) {
      const found = counted.get(position) ?? { stream, keys: 0 };
      found.keys++;
      counted.set(position, found);
    }
    return [...counted]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([position, { stream, keys }]) => ({
        position,
        stream,
        detail: `asks for an erasure that is not carried out: ${keys} of its keys have no tombstone, and erasures are noted as carried out up to ${upTo || 'nothing'}.`,
      }));
  }
}
