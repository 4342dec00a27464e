import { setTimeout as pause } from 'node:timers/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import { isUnavailable } from '#libs/platform/src/domain-error';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { ReadModels } from '#libs/read-models/src/read-models';
import { DueWork } from '../due-work/due-work.ts';
import type { TrailOwner } from '../sealing/trail-keys.ts';
import { trailOf } from '../tree/trail-tree.ts';
import { Checkpoints, TrailDiverged, type TrailStanding } from './checkpoints.ts';

/** Of one trail. */
const AT_MOST_EVERY_MS = 60_000;
const LOOK_MS = 500;
/**
 * Trails at once. Those that grew together are due together, a minute after their last, and take their time from whoever records events: so it is few at once, and one more for each so
 * many that are due, since a minute has to be enough.
 */
const AT_ONCE = { few: 2, most: 8, oneMoreFor: 2_000 } as const;
/** What takes longer (milliseconds) waits for something, or makes a tree anew: another has its place meanwhile. */
const SLOW_MS = 1_000;

/** A trail with events that no checkpoint has yet. */
interface Due {
  readonly owner: TrailOwner;
  /** Of the last of them. */
  version: number;
  /** Not before. Milliseconds since the epoch. */
  at: number;
}

/** Has a checkpoint recorded of each trail that has grown. */
@Injectable()
export class CheckpointJob implements BackgroundComponent, OnModuleInit {
  readonly name = 'audit-checkpoints';
  readonly stage = 'work';
  private readonly stopping = new AbortController();
  private readonly due: DueWork<Due>;
  private readonly diverged = new Map<string, Exclude<TrailStanding, 'intact'>>();
  /** By stream, when it was begun, by the clock that nobody sets. */
  private readonly underWay = new Map<string, number>();
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly followers: LeasedFollowers,
    private readonly checkpoints: Checkpoints,
    private readonly clock: Clock,
    private readonly log: Log,
    metrics: Metrics,
    readModels: ReadModels,
  ) {
    this.due = new DueWork(readModels.table({ name: 'audit_checkpoints_done', indexes: [], rebuildable: false, isMadeAnew: true }));
    metrics.gauge({
      name: 'audit_trails_diverged',
      help: 'Audit trails that are not what their latest checkpoint says: they have lost events (shorter), or have others (altered).',
      labels: ['as'],
      collect: (gauge) => {
        for (const as of ['shorter', 'altered'] as const) gauge.set({ as }, [...this.diverged.values()].filter((each) => each === as).length);
      },
    });
  }

  onModuleInit(): void {
    this.followers.add({
      name: 'audit.checkpoints',
      table: this.due.table,
      types: ['audit_event.recorded'],
      isRepeatable: true,
      onBegin: () => {
        this.due.begin();
        this.diverged.clear();
      },
      handle: async (records) => {
        for (const record of records) this.note(record);
        return Promise.resolve(false);
      },
    });
  }

  async start(): Promise<void> {
    this.running = this.run(this.stopping.signal);
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private note(record: RecordedEvent): void {
    const { stream, version } = record;
    this.due.note(record, (due) => (due === undefined ? { owner: trailOf(stream), version, at: 0 } : Object.assign(due, { version })));
  }

  private async run(signal: AbortSignal): Promise<void> {
    const workers = new Set<Promise<void>>();
    for (; !signal.aborted; await pause(LOOK_MS, undefined, { signal }).catch(() => {})) {
      const due = [...this.due.items()].filter(([stream, trail]) => this.isDue(stream, trail));
      const rest = due.values();
      for (let places = Math.min(this.placesFor(due.length) - workers.size, due.length); places > 0; places -= 1) {
        const worker: Promise<void> = this.recordAll(rest, signal).finally(() => workers.delete(worker));
        workers.add(worker);
      }
    }
    await Promise.all(workers);
  }

  private placesFor(due: number): number {
    const now = performance.now();
    const slow = [...this.underWay.values()].filter((begun) => now - begun > SLOW_MS).length;
    return Math.min(AT_ONCE.most, AT_ONCE.few + slow + Math.floor(due / AT_ONCE.oneMoreFor));
  }

  private async recordAll(rest: Iterator<readonly [stream: string, trail: Due]>, signal: AbortSignal): Promise<void> {
    for (let next = rest.next(); next.done !== true && !signal.aborted; next = rest.next()) {
      const [stream, trail] = next.value;
      // Another has looked at the same meanwhile.
      if (!this.isDue(stream, trail)) continue;
      this.underWay.set(stream, performance.now());
      await this.record(stream, trail);
      this.underWay.delete(stream);
    }
  }

  /** Also where the clock was set back. */
  private isDue(stream: string, { at }: Due): boolean {
    const now = this.clock.now();
    return (at <= now || at > now + AT_MOST_EVERY_MS) && !this.underWay.has(stream);
  }

  private async record(stream: string, trail: Due): Promise<void> {
    const { version } = trail;
    trail.at = this.clock.now() + AT_MOST_EVERY_MS;
    try {
      const recorded = await this.checkpoints.record(trail.owner, { unlessWithin: AT_MOST_EVERY_MS });
      this.diverged.delete(stream);
      const size = recorded?.size ?? 0;
      if (size < version) trail.at = Math.min(trail.at, Date.parse(recorded?.time ?? '') + AT_MOST_EVERY_MS || trail.at);
      // Forgotten only where nothing came meanwhile.
      else if (trail.version === version) this.due.done(stream, trail);
    } catch (error) {
      if (error instanceof TrailDiverged) {
        if (this.diverged.get(stream) !== error.standing) this.log.error('An audit trail is not what its checkpoint says.', { ...trail.owner, error });
        this.diverged.set(stream, error.standing);
      } else if (isUnavailable(error)) {
        // It is tried again at once.
        trail.at = 0;
      } else {
        this.log.error('A checkpoint of an audit trail could not be recorded, and is tried again in a minute.', { ...trail.owner, error });
      }
    }
  }
}
