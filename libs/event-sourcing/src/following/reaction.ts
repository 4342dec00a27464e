import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Clock } from '#libs/platform/src/clock';
import { isUnavailable, NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { inTurns } from '#libs/platform/src/in-turns';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { Fact, Recorded } from '../deciding/decider.ts';
import { AppendTooLarge, type RecordedEvent } from '../log/event-store.ts';
import { isFromLaterRelease } from '../log/upcasts.ts';
import { sealedReason } from '../sealing/reasons.ts';
import { Vault } from '../sealing/vault.ts';
import { LeasedFollowers } from './leased-followers.ts';

/**
 * When something happened, do something: follows the log, and may be asked again for an event that it has handled already. `Event`: the facts that it handles, of
 * whatever service.
 */
export interface Reaction<Event extends Fact = Fact> {
  /** Names the stored checkpoint: under a new name, a reaction begins at the start of the log. */
  readonly name: string;
  readonly handles: readonly Event['type'][];
  /** Begins where the log ends when it is started for the first time: what lies before was recorded under other rules. */
  readonly from?: 'head';
  /** Told whenever this process begins to follow, before it is handed anything: for what another one left undone. */
  begin?(): void;
  /** So many events are handled at a time, those of one stream one after the other in their order. Absent: one, in the order of the log. */
  readonly atOnce?: number;
  react(event: Recorded<Event>): Promise<void>;
  /** The same for several, in the order of the log, where together they cost less. Where it fails for any of them, each is handled for itself. */
  reactTogether?(events: readonly Recorded<Event>[]): Promise<void>;
}

/** The lease under which one process of a cluster hands events to a reaction. */
export function leaseOf({ name }: Pick<Reaction, 'name'>): string {
  return `reaction.${name}`;
}

/** A reaction that the library makes, as a class for Nest to build. */
export abstract class MadeReaction implements Reaction {
  readonly name: string;
  readonly handles: readonly string[];
  readonly from?: 'head';

  constructor(private readonly made: Reaction) {
    ({ name: this.name, handles: this.handles } = made);
    if (made.from !== undefined) this.from = made.from;
  }

  react(event: Recorded): Promise<void> {
    return this.made.react(event);
  }
}

/** An event that a reaction could not handle, kept beside its checkpoint. */
interface Skipped {
  readonly type: string;
  readonly stream: string;
  readonly at: string;
  /** Sealed: see `reasons.ts`. */
  readonly error: string;
}

/** Pauses before further tries of an event that fails; then it is recorded and skipped, so that one bad event does not end all that follow. */
const PAUSES = [100, 500, 2_500];
/** While an engine is away, waiting is all that helps. */
const AWAY = 1_000;
/** What is more than the log takes at once stays so until a release splits it; the log says it as often. */
const TOO_LARGE = 60_000;

/** Runs the reactions of this process, each in one process of a cluster at a time. */
@Injectable()
export class Reactions {
  private readonly handled;
  private readonly skipped;
  private readonly stopped;

  constructor(
    private readonly followers: LeasedFollowers,
    private readonly readModels: ReadModels,
    private readonly vault: Vault,
    private readonly clock: Clock,
    private readonly log: Log,
    metrics: Metrics,
  ) {
    this.handled = metrics.counter({ name: 'reaction_events_total', help: 'Events that a reaction handled.', labels: ['reaction'] });
    this.skipped = metrics.counter({ name: 'reaction_skipped_total', help: 'Events that a reaction failed to handle and went past.', labels: ['reaction'] });
    this.stopped = metrics.gauge({
      name: 'reaction_stopped',
      help: '1 while a reaction of this process is halted before an event: what follows from it is more than the log takes at once.',
      labels: ['reaction'],
    });
  }

  /** Before the process starts its parts. */
  add(reaction: Reaction): void {
    // A rise from nothing at all would not be seen as one.
    this.skipped.inc({ reaction: reaction.name }, 0);
    this.stopped.set({ reaction: reaction.name }, 0);
    const table = this.readModels.table<never>({ name: `reaction-${reaction.name}`, indexes: [], rebuildable: false });
    this.followers.add({
      name: leaseOf(reaction),
      table,
      from: reaction.from,
      types: reaction.handles,
      onBegin: () => reaction.begin?.(),
      handle: async (events, signal) => {
        if (await this.handledTogether(reaction, events)) return true;
        const lanes = reaction.atOnce === undefined ? [events] : lanesOf(events);
        await inTurns(lanes, reaction.atOnce ?? 1, async (lane) => {
          for (const event of lane) await this.handle(reaction, event, table, signal);
        });
        return true;
      },
    });
  }

  /** False: what is wrong with which of them is seen when each is handled for itself. */
  private async handledTogether(reaction: Reaction, events: readonly RecordedEvent[]): Promise<boolean> {
    if (reaction.reactTogether === undefined || events.length < 2 || events.some((event) => isFromLaterRelease(event))) return false;
    try {
      await reaction.reactTogether(events);
    } catch {
      return false;
    }
    this.stopped.set({ reaction: reaction.name }, 0);
    this.handled.inc({ reaction: reaction.name }, events.length);
    return true;
  }

  private async handle(reaction: Reaction, event: RecordedEvent, table: Table<never>, signal: AbortSignal): Promise<void> {
    for (let tries = 0; !signal.aborted;) {
      try {
        if (isFromLaterRelease(event)) throw event.reason;
        await reaction.react(event);
        this.stopped.set({ reaction: reaction.name }, 0);
        return this.handled.inc({ reaction: reaction.name });
      } catch (error) {
        if (error instanceof NeedsLaterRelease) throw error;
        const isTooLarge = error instanceof AppendTooLarge;
        if (isTooLarge) this.halt(reaction, event, error);
        const wait = isTooLarge ? TOO_LARGE : isUnavailable(error) ? AWAY : PAUSES[tries++];
        if (wait === undefined) return this.skip(reaction, event, table, error);
        await pause(wait, undefined, { signal }).catch(() => {});
      }
    }
    // Somebody else's by now.
    this.stopped.set({ reaction: reaction.name }, 0);
  }

  /** What it was to record is not recorded anywhere else: it would be lost, such as a permission that stays given although it was deleted. */
  private halt(reaction: Reaction, { id, type, stream }: RecordedEvent, error: unknown): void {
    this.stopped.set({ reaction: reaction.name }, 1);
    this.log.error('A reaction halts before an event: what follows from it is more than the log takes at once.', {
      reaction: reaction.name,
      event: id,
      type,
      stream,
      error,
    });
  }

  private async skip(reaction: Reaction, event: RecordedEvent, table: Table<never>, error: unknown): Promise<void> {
    const { id, type, stream, position, meta } = event;
    this.skipped.inc({ reaction: reaction.name });
    this.log.error('A reaction failed for good and goes on with the next event.', { reaction: reaction.name, event: id, type, stream, error });
    const row: Skipped = {
      type,
      stream,
      at: new Date(this.clock.now()).toISOString(),
      error: await sealedReason(this.vault, event, error),
    };
    await table.write([{ environment: meta.environment, id, position, revision: 0, text: JSON.stringify(row) }]);
  }
}

/** By their streams. */
function lanesOf(events: readonly RecordedEvent[]): readonly (readonly RecordedEvent[])[] {
  const lanes = new Map<string, RecordedEvent[]>();
  for (const event of events) {
    const lane = lanes.get(event.stream);
    if (lane === undefined) lanes.set(event.stream, [event]);
    else lane.push(event);
  }
  return [...lanes.values()];
}
