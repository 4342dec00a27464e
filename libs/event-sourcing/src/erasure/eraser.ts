import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '#libs/platform/src/clock';
import type { Log } from '#libs/platform/src/log';
import { newCommandId } from '#libs/platform/src/ids';
import { patiently } from '#libs/platform/src/patience';
import { systemContext } from '#libs/platform/src/system-context';
import { placeOf, type ReadModels } from '#libs/read-models/src/read-models';
import { metaOf } from '../deciding/records.ts';
import type { CheckpointElsewhere, LeasedFollowers } from '../following/leased-followers.ts';
import { type EventStore, type Position, type RecordedEvent, START, WrongVersion } from '../log/event-store.ts';
import { streamName } from '../log/naming.ts';
import { ERASURE_FINISHED } from '../log/protocol.ts';
import { purposeOf } from '../sealing/holders.ts';
import { TRUSTED_FOR } from '../sealing/key-cache.ts';
import type { ErasablePurpose, KeyStore } from '../sealing/key-store.ts';
import { DESTROYING, ERASED, holdersOf } from './erasing.ts';

/** Beside the time for which a process trusts a key that it has read: what was decided with it is appended by then, and its row written. */
const APPENDED_WITHIN = 15_000;
const ERASER = 'eraser';
/** How often it is looked whether the keys are gone. */
const LOOK = 1_000;

interface Needs {
  readonly events: EventStore;
  readonly keys: KeyStore;
  readonly readModels: ReadModels;
  readonly clock: Clock;
  readonly log: Log;
  /** After the keys were destroyed, until nobody can write with them any more (milliseconds). */
  readonly forgottenAfter?: number;
}

/**
 * Carries erasures out, in two steps that each go on after a restart: whoever holds the first lease destroys keys, and whoever holds the second records when no process can
 * have them any more. How far the first is lies with the keys, so that those of an older backup are destroyed again.
 * @throws StartRefused where that is damaged
 */
export async function followErasures(
  followers: LeasedFollowers,
  { events, keys, readModels, clock, log, forgottenAfter = TRUSTED_FOR + APPENDED_WITHIN }: Needs,
): Promise<void> {
  await patiently(() => keys.erasedUpTo(), { log, what: 'How far erasures have come' });
  const erasedUpTo: CheckpointElsewhere = {
    isElsewhere: true,
    checkpoint: () => keys.erasedUpTo(),
    recordAt: (position) => keys.erasedRecordAt(position),
    // Nothing fences it: whoever was late has destroyed what lies before its position, and from an earlier one keys are destroyed again, which changes nothing.
    write: async (_writes, checkpoint) => {
      if (checkpoint === undefined) return;
      const { position, record } = placeOf(checkpoint);
      await keys.setErasedUpTo(position, record);
    },
  };
  followers.add({
    name: ERASER,
    table: erasedUpTo,
    types: DESTROYING,
    isRepeatable: true,
    handle: async (records) => {
      const purposes = records.flatMap(purposesOf);
      await keys.destroy(...purposes);
      log.info('The keys of erased holders are destroyed.', { keys: purposes.length, position: records.at(-1)!.position });
      return true;
    },
  });
  /** Of erasures up to here nobody has a key any more: a wait that began after several holds for all of them. */
  let forgottenUpTo: Position = START;
  followers.add({
    name: 'erasures.finish',
    table: readModels.table<never>({ name: 'erasures-finished', indexes: [], rebuildable: false }),
    types: [ERASED],
    isRepeatable: true,
    onBegin: () => {
      forgottenUpTo = START;
    },
    handle: async (records, signal) => {
      const { position } = records.at(-1)!;
      if (forgottenUpTo < position) {
        const destroyed = await destroyedUpTo(position, signal);
        await waited(forgottenAfter, signal);
        if (signal.aborted) return false;
        forgottenUpTo = destroyed;
      }
      for (const record of records) await finish(record);
      return true;
    },
  });

  /** How far keys are destroyed, once they are up to there. While the eraser stands still, what it has noted is of a log that was put back since. */
  async function destroyedUpTo(position: Position, signal: AbortSignal): Promise<Position> {
    for (; ; await waited(LOOK, signal)) {
      const { position: destroyed, isAhead } = await followers.statusOf(ERASER);
      if (signal.aborted || (destroyed >= position && !isAhead)) return destroyed;
    }
  }

  /** Once for each erasure: a stream of its own knows. */
  async function finish(record: RecordedEvent): Promise<void> {
    const { environment } = record.meta;
    const now = clock.now();
    const data = { holders: holdersOf(record) };
    const finished = {
      id: newCommandId(now),
      type: ERASURE_FINISHED,
      shape: 1,
      data,
      subject: null,
      public: [],
      meta: metaOf(systemContext(environment, now), now),
    };
    try {
      await events.append(streamName('erasure', environment, record.id), 0, [finished]);
    } catch (error) {
      if (!(error instanceof WrongVersion)) throw error;
    }
  }
}

function purposesOf(record: RecordedEvent): readonly ErasablePurpose[] {
  return holdersOf(record).map((holder) => purposeOf(holder, record.meta.environment));
}

async function waited(milliseconds: number, signal: AbortSignal): Promise<void> {
  await pause(milliseconds, undefined, { signal }).catch(() => {});
}
