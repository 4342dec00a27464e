import { Injectable } from '@nestjs/common';
import { LogFollowing, type MemoryFollower } from '#libs/event-sourcing/src/following/memory-follower';
import type { Position, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { categoryOf, environmentOf, streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { namesOf } from '#libs/event-sourcing/src/deciding/changes.decider';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { auditStreamDecider, type StoredStream } from '../domain/audit-stream.decider.ts';
import type { TrailOwner } from '../sealing/trail-keys.ts';
import { auditStreamsView } from '../views/audit-streams.view.ts';

/** `isChanged`: it is the stream itself that something was recorded of, and not its trail. */
type Listener = (owner: TrailOwner, isChanged: boolean) => void;

/** Whose trails are streamed, in memory, and who has something new: by the envelopes of what is recorded. */
@Injectable()
export class StreamDirectory implements BackgroundComponent {
  readonly name = 'audit streams';
  readonly stage = 'views';
  private readonly known = new Map<string, TrailOwner>();
  private readonly listeners = new Set<Listener>();
  private readonly rows: Table<StoredStream>;
  private readonly follower: MemoryFollower;

  constructor(following: LogFollowing, readModels: ReadModels) {
    this.rows = readModels.table(tableOf(auditStreamsView));
    this.follower = following.remember({
      name: this.name,
      types: [...namesOf(auditStreamDecider.sealed), 'audit_event.recorded', 'audit_checkpoint.recorded'],
      isByEnvelope: true,
      isFor: ({ stream }) => categoryOf(stream) === auditStreamDecider.category || this.known.has(keyOf(stream)),
      begin: () => this.begin(),
      handle: (records) => this.handle(records),
    });
  }

  start(): Promise<void> {
    return this.follower.start();
  }

  stop(): Promise<void> {
    return this.follower.stop();
  }

  /** Also those whose stream was deleted since. */
  all(): readonly TrailOwner[] {
    return [...this.known.values()];
  }

  /** Is told of each of which something new was recorded, until it takes the listener away by what this answers. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private async begin(): Promise<Position> {
    // Rows may be ahead of the checkpoint, never behind it.
    const checkpoint = await this.rows.checkpoint();
    for await (const { environment, text } of this.rows.dump())
      if (text !== null) this.tell({ environment, organization: (JSON.parse(text) as StoredStream).organization_id }, true);
    return checkpoint;
  }

  private handle(records: readonly RecordedEvent[]): void {
    for (const { stream } of records)
      this.tell({ environment: environmentOf(stream), organization: streamKeyOf(stream) }, categoryOf(stream) === auditStreamDecider.category);
  }

  private tell(owner: TrailOwner, isChanged: boolean): void {
    this.known.set(`${owner.environment}-${owner.organization}`, owner);
    for (const listener of this.listeners) listener(owner, isChanged);
  }
}

/** Of the organization that a stream of the log is about: what all three kinds have after their category. */
function keyOf(stream: string): string {
  return stream.slice(stream.indexOf('-') + 1);
}
