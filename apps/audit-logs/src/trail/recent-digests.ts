import type { EventStore, Position, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { unavailable } from '#libs/platform/src/domain-error';
import type { AuditTrailEvent } from '../domain/audit-trail.decider.ts';

/** For so long a repeat is told. */
export const REPEATED_WITHIN = 86_400_000;
const READ_AT_ONCE = 100;
/** What is behind the rows is more only while they are filled anew. */
const MOST_READ = 10_000;

/** An event that is known under its digest. */
export interface KnownEvent {
  readonly id: string;
  readonly commitment: string;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  /** Where it lies, or behind that. */
  readonly position: Position;
}

/** What a trail has recorded that its rows may not show yet, and its version: what is appended at that is recorded once. */
export class RecentDigests {
  private readonly known = new Map<string, KnownEvent>();

  private constructor(public version: number) {}

  /**
   * `shown`: the position up to which rows show everything. `since`: milliseconds since the epoch; what is older counts for nothing.
   * @throws DomainError `service_unavailable` where that is too much
   */
  static async read(events: EventStore, stream: string, { shown, since }: { readonly shown: Position; readonly since: number }): Promise<RecentDigests> {
    const last = await events.last(stream);
    const recent = new RecentDigests(last?.version ?? 0);
    for (let from = recent.version, left = MOST_READ; from > 0; from -= READ_AT_ONCE, left -= READ_AT_ONCE) {
      if (left <= 0) throw unavailable('Too much of this trail is not shown yet.');
      const records = await events.readBackwards(stream, READ_AT_ONCE, from);
      const [first] = records.slice(-1);
      recent.note(records.filter(({ position }) => position > shown));
      if (first === undefined || first.position <= shown || first.meta.at < since) break;
    }
    return recent;
  }

  get(digest: string): KnownEvent | undefined {
    return this.known.get(digest);
  }

  /** Of the next versions. */
  add(records: readonly RecordedEvent[]): void {
    this.note(records);
    this.version = records.at(-1)?.version ?? this.version;
  }

  set(digest: string, event: KnownEvent): void {
    this.known.set(digest, event);
  }

  /** What rows show by now. */
  forgetUpTo(shown: Position): void {
    for (const [digest, { position }] of this.known) if (position <= shown) this.known.delete(digest);
  }

  private note(records: readonly RecordedEvent[]): void {
    for (const { data, meta, position } of records as readonly Recorded<AuditTrailEvent>[]) {
      const { id, commitment, digest } = data;
      const before = this.known.get(digest);
      if (before === undefined || before.receivedAt < meta.at) this.known.set(digest, { id, commitment, receivedAt: meta.at, position });
    }
  }
}
