import { Injectable } from '@nestjs/common';
import { metaOf } from '#libs/event-sourcing/src/deciding/records';
import { EventStore, WrongVersion, type NewEvent, type Position } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { KeyDestroyed } from '#libs/event-sourcing/src/sealing/key-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound, unavailable } from '#libs/platform/src/domain-error';
import { Log } from '#libs/platform/src/log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf as rowContent, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { monthOf } from '../domain/audit-month.decider.ts';
import { AUDIT_TRAIL, type RecordedAuditEvent, type TermKind } from '../domain/audit-trail.decider.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import type { DigestKind } from '../sealing/month-key.ts';
import { TrailKeys, type TrailKey, type TrailOwner } from '../sealing/trail-keys.ts';
import { AUDIT_EVENT_PREFIX, auditTrailView, eventIdOf, isEvent, type AuditTrailRow } from '../views/audit-trail.view.ts';
import { RecentDigests, REPEATED_WITHIN, type KnownEvent } from './recent-digests.ts';
import { SeenDigests } from './seen-digests.ts';

/** Of one append. */
const MOST_EVENTS = 128;
const MOST_BYTES = 512 * 1024;
/** Of a trail: more are refused, so that nobody fills the memory of all. */
const MOST_WAITING = 512;
/** Trails whose latest events are remembered. */
const TRAILS = 10_000;
const ROWS_AT_ONCE = 200;
const NONE_KNOWN: ReadonlyMap<string, KnownEvent> = new Map();

/** An event to record. */
export interface NewTrailEvent {
  readonly context: RequestContext;
  /** A ULID. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly occurredAt: number;
  /** Canonical. */
  readonly content: string;
  readonly terms: readonly (readonly [kind: TermKind, value: string])[];
  /** It derives from what happened at this time (milliseconds since the epoch), and may have been recorded ever since. Absent: repeats are told for a day. */
  readonly knownSince?: number;
}

/** One that waits for its append, or for that of its twin. */
interface Waiting {
  readonly event: NewTrailEvent;
  readonly resolve: (position: Position) => void;
  readonly reject: (error: unknown) => void;
}

/** A trail, as this process writes it. */
interface OpenTrail {
  readonly owner: TrailOwner;
  readonly stream: string;
  waiting: Waiting[];
  /** Null: to be read. */
  recent: RecentDigests | null;
}

/** What an event may be known under. */
interface Candidate {
  readonly waiting: Waiting;
  /** Under which it is recorded. */
  readonly digest: string;
  /** Of which kind that is. */
  readonly kind: DigestKind;
  readonly others: readonly string[];
  /** What is older is no repeat. Milliseconds since the epoch. */
  readonly since: number;
  record: NewEvent | null;
}

/**
 * Records events, each once: those of a trail that wait are appended together, one append at a time. What is appended at the version up to which all digests are known, in rows or in
 * memory, was not recorded before; where another process was faster, it is looked again.
 */
@Injectable()
export class TrailWriter {
  /** Never two of one trail: whoever is asked what was recorded answers what is on disk. */
  private readonly busy = new Map<string, OpenTrail>();
  private readonly idle = new BoundedMap<OpenTrail>(TRAILS);
  private readonly rows: Table<AuditTrailRow>;
  private readonly seen = new SeenDigests();

  constructor(
    private readonly events: EventStore,
    private readonly keys: TrailKeys,
    private readonly reader: TrailReader,
    private readonly clock: Clock,
    private readonly log: Log,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(auditTrailView));
  }

  /**
   * Answers where the event is, or the one that it repeats.
   * @throws DomainError `entity_not_found` for an organization that there is not, `rate_limit_exceeded` where too many wait, `service_unavailable`
   */
  add(owner: TrailOwner, event: NewTrailEvent): Promise<Position> {
    const trail = this.trailOf(owner);
    if (trail.waiting.length >= MOST_WAITING)
      return Promise.reject(new DomainError('limited', 'rate_limit_exceeded', 'Too many events of this organization wait to be recorded.', { retryAfter: 1 }));
    return new Promise((resolve, reject) => {
      trail.waiting.push({ event, resolve, reject });
      if (!this.busy.has(trail.stream)) void this.work(trail);
    });
  }

  private trailOf(owner: TrailOwner): OpenTrail {
    const stream = streamName(AUDIT_TRAIL, owner.environment, owner.organization);
    return this.busy.get(stream) ?? this.idle.get(owner.environment, stream) ?? { owner, stream, waiting: [], recent: null };
  }

  /** Until nobody waits. */
  private async work(trail: OpenTrail): Promise<void> {
    this.busy.set(trail.stream, trail);
    // What is added in one go is recorded together.
    await Promise.resolve();
    try {
      while (trail.waiting.length > 0) {
        const some = taken(trail);
        try {
          await this.record(trail, some);
        } catch (error) {
          trail.recent = null;
          for (const { reject } of some) reject(error);
        }
      }
    } finally {
      this.busy.delete(trail.stream);
      if (trail.recent !== null) this.idle.set(trail.owner.environment, trail.stream, trail);
    }
  }

  private async record(trail: OpenTrail, given: readonly Waiting[]): Promise<void> {
    const { owner } = trail;
    const now = this.clock.now();
    const some = given.filter(({ event, reject }) => {
      if (event.context.deadline > now) return true;
      reject(unavailable('The event was not recorded in time.'));
      return false;
    });
    if (some.length === 0) return;
    const deadline = Math.max(...some.map(({ event }) => event.context.deadline));
    await this.reader.requireOwner({ environment: owner.environment, deadline }, owner.organization);
    // First the checkpoint, then the rows: what these lack lies behind it.
    const shown = await this.rows.checkpoint();
    // Where events derive from the log, all are known that rows do not show.
    const derives = some.some(({ event }) => event.knownSince !== undefined);
    trail.recent ??= await RecentDigests.read(this.events, trail.stream, { shown, since: derives ? 0 : now - REPEATED_WITHIN, seen: this.seen });
    trail.recent.forgetUpTo(shown);
    const key = await this.keyOf(owner, trail.recent.version);
    const candidates = some.map((waiting) => candidateOf(waiting, key, now));
    const { recent } = trail;
    const uncertain = candidates.filter(({ digest, others, since }) => recent.mayKnow([digest, ...others], since, now));
    const known = uncertain.length === 0 ? NONE_KNOWN : await this.shownOf(owner, uncertain, key);
    await this.append(trail, candidates, { key, known, now });
  }

  /** Appends those that are not known, again and again until nobody was faster. */
  private async append(
    { stream, recent: read }: OpenTrail,
    candidates: readonly Candidate[],
    { key, known, now }: { readonly key: TrailKey; readonly known: ReadonlyMap<string, KnownEvent>; readonly now: number },
  ): Promise<void> {
    const recent = read!;
    for (let open = candidates; ;) {
      const fresh = new Map<string, Candidate>();
      const twins: Candidate[] = [];
      for (const candidate of open) {
        const { waiting, digest, others, since } = candidate;
        const first = [digest, ...others]
          .map((each) => knownSince(since, recent.get(each)) ?? knownSince(since, known.get(each)))
          .find((each) => each !== undefined);
        if (first !== undefined) {
          this.tellOfOtherBody(candidate, () => first.commitment === key.at(first.receivedAt).commitment(first.id, waiting.event.content));
          waiting.resolve(first.position);
        } else if ([digest, ...others].some((each) => fresh.has(each))) twins.push(candidate);
        else fresh.set(digest, candidate);
      }
      open = [...fresh.values(), ...twins];
      if (fresh.size === 0) return;
      const records = [...fresh.values()].map((candidate) => (candidate.record ??= recordOf(stream, candidate, { key, now })));
      try {
        const { version, position } = await this.events.append(stream, recent.version, records);
        recent.version = version;
        for (const { digest, record, waiting } of fresh.values()) {
          const { id, commitment } = record!.data as RecordedAuditEvent;
          recent.set(digest, { id, commitment, receivedAt: now, position });
          waiting.resolve(position);
        }
        for (const twin of twins) {
          const first = [twin.digest, ...twin.others].map((each) => fresh.get(each)).find((each) => each !== undefined)!;
          this.tellOfOtherBody(twin, () => first.waiting.event.content === twin.waiting.event.content);
          twin.waiting.resolve(position);
        }
        return;
      } catch (error) {
        if (!(error instanceof WrongVersion)) throw error;
        recent.add(await this.events.read(stream, recent.version + 1));
      }
    }
  }

  /** The key of a trail is made with its first event alone: under another one, what is lost could not be told from what was erased. */
  private async keyOf(owner: TrailOwner, version: number): Promise<TrailKey> {
    if (version > 0) {
      const key = await this.keys.find(owner);
      if (key === null) throw notFound('Organization', owner.organization);
      return key;
    }
    try {
      return await this.keys.obtain(owner);
    } catch (error) {
      throw error instanceof KeyDestroyed ? notFound('Organization', owner.organization) : error;
    }
  }

  /** Those of the digests that rows show. */
  private async shownOf({ environment }: TrailOwner, candidates: readonly Candidate[], key: TrailKey): Promise<ReadonlyMap<string, KnownEvent>> {
    const known = new Map<string, KnownEvent>();
    const since = Math.min(...candidates.map((each) => each.since));
    const where = { index: 'digest', values: candidates.flatMap(({ digest, others }) => [digest, ...others]) };
    for (let after: string | undefined, more = true; more;) {
      const page = await this.rows.page(environment, { where, order: 'asc', limit: ROWS_AT_ONCE, after });
      for (const stored of page.rows) {
        const row = rowContent(stored);
        if (!isEvent(row) || row[3] < since) continue;
        const id = eventIdOf(stored.id);
        const content = this.reader.openRow({ environment, organization: row[0] }, stored.id, row, key);
        if (content === null) continue;
        known.set(row[4], { id, commitment: key.at(row[3]).commitment(id, content), receivedAt: row[3], position: stored.position });
      }
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
    return known;
  }

  /** Of a key that comes again with something else, the first counts. */
  private tellOfOtherBody({ kind, waiting: { event } }: Candidate, isSame: () => boolean): void {
    if (kind === 'key' && event.knownSince === undefined && !isSame())
      this.log.warn('An audit event repeats an Idempotency-Key with another body: the first counts.', {
        environment: event.context.environment,
        requestId: event.context.requestId,
      });
  }
}

/** As many as one append takes. */
function taken(trail: OpenTrail): readonly Waiting[] {
  let [count, bytes] = [0, 0];
  for (; count < Math.min(MOST_EVENTS, trail.waiting.length); count++) {
    bytes += Buffer.byteLength(trail.waiting[count]!.event.content);
    if (count > 0 && bytes > MOST_BYTES) break;
  }
  const some = trail.waiting.slice(0, count);
  trail.waiting = trail.waiting.slice(count);
  return some;
}

/** What came in a month before is known under the key of that. */
function candidateOf(waiting: Waiting, key: TrailKey, now: number): Candidate {
  const { content, context, knownSince: since = now - REPEATED_WITHIN } = waiting.event;
  const [last, first] = [monthOf(now), Math.max(monthOf(since), key.firstMonth)];
  const months = [key.at(now), ...Array.from({ length: Math.max(0, last - first) }, (_, back) => key.ofMonth(last - 1 - back))];
  const contents = months.map((month) => month.digestOf('content', content));
  const { idempotencyKey } = context;
  const all = idempotencyKey === undefined ? contents : [...months.map((month) => month.digestOf('key', idempotencyKey)), ...contents];
  return { waiting, digest: all[0]!, kind: idempotencyKey === undefined ? 'content' : 'key', others: all.slice(1), since, record: null };
}

function recordOf(stream: string, { waiting: { event }, digest }: Candidate, { key, now }: { readonly key: TrailKey; readonly now: number }): NewEvent {
  const month = key.at(now);
  const id = AUDIT_EVENT_PREFIX + event.id;
  const data: RecordedAuditEvent = {
    id,
    occurred_at: event.occurredAt,
    commitment: month.commitment(id, event.content),
    digest,
    terms: event.terms.map(([kind, value]) => month.termOf(kind, value)).join(''),
    sealed: month.seal(`${stream} ${id}`, event.content),
  };
  return {
    id: event.id,
    type: 'audit_event.recorded',
    shape: 1,
    data,
    subject: null,
    public: [],
    // The stream says whose it is, and the id which command's. Every byte counts: five of these records share a page of the embedded log, where they have at most 800 bytes.
    meta: { ...metaOf(event.context, now), commandId: '' },
  };
}

function knownSince(time: number, known: KnownEvent | undefined): KnownEvent | undefined {
  return known !== undefined && known.receivedAt >= time ? known : undefined;
}
