import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import type { ReadModels, Table } from '#libs/read-models/src/read-models';
import type { EventStore, RecordedEvent } from './event-store.ts';

/** When something happened, do something: follows the log, and may be asked again for an event that it has handled already. */
export interface Reaction {
  /** Names the stored checkpoint: under a new name, a reaction begins at the start of the log. */
  readonly name: string;
  readonly handles: readonly string[];
  react(event: RecordedEvent): Promise<void>;
}

/** An event that a reaction could not handle. */
interface Skipped {
  readonly type: string;
  readonly stream: string;
  readonly at: string;
  readonly error: string;
}

interface Needs {
  readonly events: EventStore;
  readonly readModels: ReadModels;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ReactionMetrics;
}

export type ReactionMetrics = ReturnType<typeof reactionMetrics>;

export function reactionMetrics(metrics: Metrics) {
  return {
    handled: metrics.counter({ name: 'reaction_events_total', help: 'Events that a reaction handled.', labels: ['reaction'] }),
    skipped: metrics.counter({ name: 'reaction_skipped_total', help: 'Events that a reaction failed to handle and went past.', labels: ['reaction'] }),
  };
}

/** Pauses before further tries of an event that fails; then it is recorded and skipped, so that one bad event does not end all that follow. */
const PAUSES = [100, 500, 2_500];
/** While an engine is away, waiting is all that helps. */
const AWAY = 1_000;

/** Follows the log for one reaction. Run it under a lease: two at a time do no harm, but everything twice. */
export class ReactionRunner {
  private readonly skipped: Table<Skipped>;
  private readonly handled: ReadonlySet<string>;

  constructor(
    private readonly reaction: Reaction,
    private readonly needs: Needs,
  ) {
    this.skipped = needs.readModels.table({ name: `reaction-${reaction.name}`, indexes: [], rebuildable: false });
    this.handled = new Set(reaction.handles);
  }

  async run(signal: AbortSignal): Promise<void> {
    for await (const batch of this.needs.events.subscribe(await this.skipped.checkpoint(), signal)) {
      for (const event of batch) if (this.handled.has(event.type)) await this.handle(event, signal);
      // What was cut short is not behind us.
      if (signal.aborted) return;
      await this.skipped.write([], batch.at(-1)?.position);
    }
  }

  private async handle(event: RecordedEvent, signal: AbortSignal): Promise<void> {
    const { name } = this.reaction;
    for (let tries = 0; !signal.aborted; ) {
      try {
        await this.reaction.react(event);
        return this.needs.metrics.handled.inc({ reaction: name });
      } catch (error) {
        const isAway = error instanceof DomainError && error.kind === 'unavailable';
        const wait = isAway ? AWAY : PAUSES[tries++];
        if (wait === undefined) return this.skip(event, error);
        await pause(wait, undefined, { signal }).catch(() => {});
      }
    }
  }

  private async skip(event: RecordedEvent, error: unknown): Promise<void> {
    const { id, type, stream, position, meta } = event;
    this.needs.metrics.skipped.inc({ reaction: this.reaction.name });
    this.needs.log.error('A reaction failed for good and goes on with the next event.', { reaction: this.reaction.name, event: id, type, stream, error });
    const row: Skipped = { type, stream, at: new Date(this.needs.clock.now()).toISOString(), error: String(error) };
    await this.skipped.write([{ environment: meta.environment, id, position, revision: 0, text: JSON.stringify(row) }]);
  }
}
