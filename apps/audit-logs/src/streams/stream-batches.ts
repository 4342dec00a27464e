import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { AuditLogContent } from '#libs/contracts/src/audit-logs/audit-log-event';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { EventStore, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { unavailable } from '#libs/platform/src/domain-error';
import { Log } from '#libs/platform/src/log';
import { auditCheckpointDecider, type RecordedCheckpoint } from '../domain/audit-checkpoint.decider.ts';
import type { StreamPlace } from '../domain/audit-stream.decider.ts';
import { AUDIT_TRAIL, leafOf, type AuditTrailEvent } from '../domain/audit-trail.decider.ts';
import { TrailKeys, type TrailKey, type TrailOwner } from '../sealing/trail-keys.ts';

/** Of one request. */
export const MOST_ITEMS = 500;
/** What collectors take at once, unless they are told otherwise. */
const MOST_BYTES = 1_000_000;
/** Of what stands beside the content of an event. */
const HEAD_LENGTH = 500;
/** Opened in one turn of the event loop. */
const AT_ONCE = 32;

/** An event as it is streamed: as lists have it, and with what its commitment is made of. */
export interface StreamedEvent extends AuditLogContent {
  readonly object: 'audit_log_event';
  readonly id: string;
  readonly organization_id: string;
  readonly received_at: string;
  readonly leaf_index: number;
  /** Hexadecimal. */
  readonly salt: string;
}

export interface StreamedCheckpoint {
  readonly object: 'audit_log_checkpoint';
  readonly organization_id: string;
  readonly size: number;
  readonly root_hash: string;
  readonly checkpoint: string;
  readonly created_at: string;
}

export type StreamedItem = StreamedEvent | StreamedCheckpoint;

export interface Batch {
  /** The same for the same items. */
  readonly id: string;
  /** In the order in which they are told. */
  readonly items: readonly StreamedItem[];
  /** Up to where the receiver knows the trail once it has taken it. */
  readonly to: StreamPlace;
  /** Events that are passed over: nobody may read them any more, or nobody can. */
  readonly skipped: number;
}

interface Bounds {
  readonly most: number;
  /** What it ends with at the latest; null: what is recorded. */
  readonly to: StreamPlace | null;
  /** Events that were received before are retained no more (milliseconds since the epoch). */
  readonly since: number;
}

type TrailRecord = RecordedEvent & Recorded<AuditTrailEvent>;

/** What streams send, read from the log: the trail in its order, and each checkpoint behind the events that it is of. */
@Injectable()
export class StreamBatches {
  constructor(
    private readonly events: EventStore,
    private readonly keys: TrailKeys,
    private readonly log: Log,
  ) {}

  /** Where the trail and its checkpoints end. */
  async end(owner: TrailOwner): Promise<StreamPlace> {
    const { trail, checkpoints } = streamsOf(owner);
    const [event, checkpoint] = await Promise.all([this.events.last(trail), this.events.last(checkpoints)]);
    return { events: event?.version ?? 0, checkpoints: checkpoint?.version ?? 0 };
  }

  /** Where a stream begins that is to have all that is retained. */
  async beginning(owner: TrailOwner, since: number): Promise<StreamPlace> {
    return this.firstRetained(owner, { events: 0, checkpoints: 0 }, { end: await this.end(owner), since });
  }

  /** What comes behind a place; null where nothing does. @throws DomainError `service_unavailable` */
  async next(owner: TrailOwner, after: StreamPlace, { most, to, since }: Bounds): Promise<Batch | null> {
    const { trail, checkpoints } = streamsOf(owner);
    const last = await this.end(owner);
    const end = to === null ? last : lower(last, to);
    // A log that was restored to an earlier state has lost what the receiver knows: what is recorded from now on is new to it.
    let place = lower(after, last);
    let records = await this.records<TrailRecord>(trail, place.events, Math.min(most, end.events - place.events));
    if (records[0] !== undefined && records[0].meta.at < since) {
      place = await this.firstRetained(owner, place, { end, since });
      records = await this.records<TrailRecord>(trail, place.events, Math.min(most, end.events - place.events));
    }
    let skipped = Math.max(0, place.events - after.events);
    const recorded = await this.records<RecordedEvent>(checkpoints, place.checkpoints, Math.min(most, end.checkpoints - place.checkpoints));
    const key = records.length === 0 ? null : await this.keys.find(owner);
    const items: StreamedItem[] = [];
    let [event, checkpoint, bytes] = [0, 0, 0];
    while (items.length < most && bytes < MOST_BYTES) {
      const signed = recorded[checkpoint];
      if (signed !== undefined && (signed.data as RecordedCheckpoint).size <= place.events + event) {
        items.push(checkpointOf(owner, signed));
        checkpoint += 1;
        continue;
      }
      const record = records[event];
      if (record === undefined) break;
      event += 1;
      if (event % AT_ONCE === 0) await nextTurn();
      const opened = record.meta.at < since ? null : this.eventOf(owner, record, key);
      if (opened === null) skipped += 1;
      else {
        items.push(opened.event);
        bytes += opened.length;
      }
    }
    const reached = { events: place.events + event, checkpoints: place.checkpoints + checkpoint };
    if (reached.events === after.events && reached.checkpoints === after.checkpoints) return null;
    const id = `als_batch_${hash('sha256', JSON.stringify([trail, after, reached]), 'hex').slice(0, 32)}`;
    return { id, items, to: reached, skipped };
  }

  /** When the first event behind a place was received; null where there is none. */
  async oldestAfter(owner: TrailOwner, { events }: StreamPlace): Promise<number | null> {
    const [record] = await this.records(streamsOf(owner).trail, events, 1);
    return record?.meta.at ?? null;
  }

  /** With about how long its text is. Null where nobody can read it any more. */
  private eventOf(owner: TrailOwner, record: TrailRecord, key: TrailKey | null): { readonly event: StreamedEvent; readonly length: number } | null {
    const { data, meta, stream } = record;
    if (key === null) return null;
    try {
      const month = key.at(meta.at);
      const content = month.open(`${stream} ${data.id}`, data.sealed);
      const event: StreamedEvent = {
        object: 'audit_log_event',
        id: data.id,
        organization_id: owner.organization,
        received_at: new Date(meta.at).toISOString(),
        leaf_index: leafOf(record),
        salt: month.saltOf(data.id).toString('hex'),
        ...(JSON.parse(content) as AuditLogContent),
      };
      return { event, length: content.length + HEAD_LENGTH };
    } catch (error) {
      this.log.error('An audit event cannot be opened: its stream goes on without it.', { environment: owner.environment, event: data.id, error });
      return null;
    }
  }

  /** Just before the first event that is retained, and the first checkpoint that has one: between two places of the trail. */
  private async firstRetained(
    owner: TrailOwner,
    from: StreamPlace,
    { end, since }: { readonly end: StreamPlace; readonly since: number },
  ): Promise<StreamPlace> {
    const { trail, checkpoints } = streamsOf(owner);
    const events = await this.lastBefore(trail, [from.events, end.events], ({ meta }) => meta.at < since);
    return {
      events,
      checkpoints: await this.lastBefore(checkpoints, [from.checkpoints, end.checkpoints], ({ data }) => (data as RecordedCheckpoint).size <= events),
    };
  }

  /** Of a stream, the last version that is such: all before it are, as none after it is. `low` counts as such. */
  private async lastBefore(stream: string, [from, to]: readonly [number, number], isSuch: (record: RecordedEvent) => boolean): Promise<number> {
    let [low, high] = [from, to];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const [record] = await this.events.readBackwards(stream, 1, middle);
      if (record === undefined) throw unavailable('A record of this trail is missing.');
      if (isSuch(record)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** `count` records behind a version. @throws DomainError `service_unavailable` where one is not there */
  private async records<Read extends RecordedEvent>(stream: string, after: number, count: number): Promise<readonly Read[]> {
    if (count <= 0) return [];
    const records = await this.events.readBackwards(stream, count, after + count);
    if (records.length !== count) throw unavailable('A record of this trail is missing.');
    return records.toReversed() as readonly RecordedEvent[] as readonly Read[];
  }
}

function streamsOf({ environment, organization }: TrailOwner): { readonly trail: string; readonly checkpoints: string } {
  return { trail: streamName(AUDIT_TRAIL, environment, organization), checkpoints: streamName(auditCheckpointDecider.category, environment, organization) };
}

function lower(one: StreamPlace, other: StreamPlace): StreamPlace {
  return { events: Math.min(one.events, other.events), checkpoints: Math.min(one.checkpoints, other.checkpoints) };
}

function checkpointOf({ organization }: TrailOwner, { data }: RecordedEvent): StreamedCheckpoint {
  const { size, root, note, time } = data as RecordedCheckpoint;
  return { object: 'audit_log_checkpoint', organization_id: organization, size, root_hash: root, checkpoint: note, created_at: time };
}
