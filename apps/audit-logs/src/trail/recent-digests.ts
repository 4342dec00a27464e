import { START, type EventStore, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { unavailable } from '#libs/platform/src/domain-error';
import type { AuditTrailEvent } from '../domain/audit-trail.decider.ts';
import type { SeenDigests } from './seen-digests.ts';

/** For so long a repeat is told. */
export const REPEATED_WITHIN = 86_400_000;
const READ_AT_ONCE = 100;
/** What is behind the rows is more only while they are filled anew. */
const MOST_READ = 10_000;
/** Whoever recorded what lies before may have had a clock that was so much ahead. */
const CLOCKS_DIFFER = 60_000;

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
  /** All that was received since then has been seen (milliseconds since the epoch). */
  private seenSince = -Infinity;

  private constructor(
    public version: number,
    private readonly seen: SeenDigests,
  ) {}

  /**
   * `shown`: the position up to which rows show everything. `since`: milliseconds since the epoch; what is older counts for nothing. `seen` is told of all that is read.
   * @throws DomainError `service_unavailable` where that is too much
   */
  static async read(
    events: EventStore,
    stream: string,
    { shown, since, seen }: { readonly shown: Position; readonly since: number; readonly seen: SeenDigests },
  ): Promise<RecentDigests> {
    const last = await events.last(stream);
    const recent = new RecentDigests(last?.version ?? 0, seen);
    for (let from = recent.version, left = MOST_READ; from > 0; from -= READ_AT_ONCE, left -= READ_AT_ONCE) {
      if (left <= 0) throw unavailable('Too much of this trail is not shown yet.');
      const records = await events.readBackwards(stream, READ_AT_ONCE, from);
      const [first] = records.slice(-1);
      recent.note(
        records.filter(({ meta, position }) => meta.at >= since || position > shown),
        shown,
      );
      if (first === undefined || first.position <= shown || first.meta.at < since) {
        if (first?.version !== 1) recent.seenSince = (first?.meta.at ?? Infinity) + CLOCKS_DIFFER;
        break;
      }
    }
    return recent;
  }

  /** False: nothing that was received since then (milliseconds since the epoch) has one of these digests, and no row has to be looked for. */
  mayKnow(digests: readonly string[], since: number, now: number): boolean {
    return since < Math.max(this.seenSince, now - REPEATED_WITHIN) || digests.some((digest) => this.seen.mayHave(digest));
  }

  get(digest: string): KnownEvent | undefined {
    return this.known.get(digest);
  }

  /** Of the next versions. */
  add(records: readonly RecordedEvent[]): void {
    this.note(records, START);
    this.version = records.at(-1)?.version ?? this.version;
  }

  set(digest: string, event: KnownEvent): void {
    this.known.set(digest, event);
    this.seen.add(digest);
  }

  /** What rows show by now. */
  forgetUpTo(shown: Position): void {
    for (const [digest, { position }] of this.known) if (position <= shown) this.known.delete(digest);
  }

  private note(records: readonly RecordedEvent[], shown: Position): void {
    for (const { data, meta, position } of records as readonly Recorded<AuditTrailEvent>[]) {
      const { id, commitment, digest } = data;
      this.seen.add(digest);
      if (position <= shown) continue;
      const before = this.known.get(digest);
      if (before === undefined || before.receivedAt < meta.at) this.known.set(digest, { id, commitment, receivedAt: meta.at, position });
    }
  }
}
