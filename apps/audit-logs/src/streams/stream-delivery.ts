import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { AuditLogStreamState } from '#libs/contracts/src/audit-log-streams/audit-log-stream';
import { CurrentStates, type CurrentStatesOf } from '#libs/event-sourcing/src/following/current-states';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Vault, type Place } from '#libs/event-sourcing/src/sealing/vault';
import { RetrySchedule } from '#libs/messaging/src/webhooks/retry-schedule';
import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { WebhookSender, type Answer } from '#libs/messaging/src/webhooks/webhook-sender';
import { Clock } from '#libs/platform/src/clock';
import { PlatformSettings, WebhookSettings } from '#libs/platform/src/config/settings';
import type { Mode } from '#libs/platform/src/config/setting';
import { isNotFound } from '#libs/platform/src/domain-error';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { auditStreamDecider, type AuditStreamState, type StoredStream, type StreamPlace } from '../domain/audit-stream.decider.ts';
import { Retention } from '../readers/retention.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailKeys, type TrailOwner } from '../sealing/trail-keys.ts';
import { RECEIVERS, type Outcome } from './receivers.ts';
import { MOST_ITEMS, StreamBatches, type Batch, type StreamedEvent } from './stream-batches.ts';
import { failureOf, StreamProgress, withAttempt, type Failing, type Progress, type StoredProgress } from '../readers/stream-progress.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Pauses before a batch is sent again; the last of them again and again. Whoever refuses the secret is asked at the last one alone. */
const PAUSES: Readonly<Record<Mode, readonly number[]>> = {
  production: [10 * SECOND, MINUTE, 10 * MINUTE, HOUR],
  development: [SECOND, 5 * SECOND, 30 * SECOND, MINUTE],
};
/** While a trail grows, a batch that is not full waits for so long after the one before. */
const GATHERED = 500;
/** How long the log may take to say where it ends. */
const PATIENCE = 10 * SECOND;
/** The last characters of an excerpt may begin the token: so many of it are no chance any more. */
const TELLING = 4;

/** When a stream is to be looked at again: milliseconds from now. */
export type Next = { readonly in: number } | 'when something is recorded';

/** One stream, as the process that delivers it remembers it. */
export interface OpenStream {
  readonly owner: TrailOwner;
  /** Null: to be read. */
  stored: StoredProgress | null;
  /** When the last batch was sent, by the clock that nobody sets; null: none was. */
  sentAt: number | null;
  /** Since when there was something to send and nothing was sent (milliseconds since the epoch); null: there is nothing, or its receiver does not take it. */
  waitingSince: number | null;
  /** Null: there is none. */
  state: AuditLogStreamState | null;
}

interface Failed {
  readonly stream: StoredStream;
  /** Attempts before. */
  readonly tries: number;
  readonly outcome: Outcome & { readonly isDelivered: false };
  readonly answer: Answer;
  readonly to: StreamPlace | null;
}

/** Sends what a stream has to send, a batch at a time. */
@Injectable()
export class StreamDelivery implements OnApplicationShutdown {
  private readonly states: CurrentStatesOf<AuditStreamState>;
  private readonly sender: WebhookSender;
  private readonly schedule: RetrySchedule;
  private readonly pauses: readonly number[];
  private readonly counts;
  private readonly durations;
  private readonly events;
  private readonly skipped;

  constructor(
    private readonly current: CurrentStates,
    private readonly batches: StreamBatches,
    private readonly progress: StreamProgress,
    private readonly reader: TrailReader,
    private readonly retention: Retention,
    private readonly keys: TrailKeys,
    private readonly vault: Vault,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly settings: WebhookSettings,
    { GATEHOUSE_MODE }: PlatformSettings,
    rule: TargetRule,
    metrics: Metrics,
  ) {
    this.states = current.of(auditStreamDecider, (state) => state);
    this.sender = new WebhookSender({ rule, timeout: settings.WEBHOOK_TIMEOUT });
    this.pauses = PAUSES[GATEHOUSE_MODE];
    this.schedule = new RetrySchedule(this.pauses);
    this.counts = metrics.counter({
      name: 'audit_stream_attempts_total',
      help: 'Requests to receivers of audit trails: delivered, rejected by their answer, or unanswered.',
      labels: ['type', 'outcome'],
    });
    this.durations = metrics.histogram({ name: 'audit_stream_attempt_seconds', help: 'How long receivers of audit trails took.' });
    this.events = metrics.counter({ name: 'audit_stream_events_total', help: 'Audit events that receivers have taken.' });
    this.skipped = metrics.counter({
      name: 'audit_stream_skipped_total',
      help: 'Audit events that were never streamed: their retention was over first, or nobody can open them.',
    });
  }

  onApplicationShutdown(): Promise<void> {
    return this.sender.close();
  }

  /**
   * Sends the next batch of a stream, where there is one and it is time. `isMine`: resolves to whether this process may still send for it.
   * @throws DomainError `service_unavailable`
   */
  async deliver(open: OpenStream, isMine: () => Promise<boolean>): Promise<Next> {
    const { owner } = open;
    const { environment } = owner;
    const stream = await this.living(owner);
    open.state = stream === null ? null : 'inactive';
    if (stream === null || stream.is_paused) return this.idle(open);
    open.stored ??= await this.progress.open(environment, stream);
    // Another one of the same organization, or one that has ended meanwhile.
    if (open.stored?.row.id !== stream.id) open.stored = await this.progress.open(environment, stream);
    if (open.stored === null) return this.idle(open);
    const { progress } = open.stored;
    const failing = failureOf(progress, stream);
    open.state = failing?.state ?? 'active';
    const now = this.clock.now();
    if (failing !== null && failing.next_attempt_at > now) {
      open.waitingSince = null;
      return { in: failing.next_attempt_at - now };
    }
    const most = progress.limit?.change === stream.change ? progress.limit.items : MOST_ITEMS;
    const batch = await this.batches.next(owner, progress.delivered, {
      most,
      to: progress.failing?.to ?? null,
      since: await this.retention.retainedSince(owner, now + PATIENCE),
    });
    if (batch === null) return this.idle(open);
    if (failing === null) open.waitingSince ??= now;
    const gathered = open.sentAt === null ? 0 : open.sentAt + GATHERED - performance.now();
    if (progress.failing === null && batch.items.length < most && gathered > 0) return { in: gathered };
    // Nothing is sent once it is answered that the stream was paused or deleted.
    if (!(await isMine()) || (await this.living(owner))?.change !== stream.change) return { in: 0 };
    const next = await this.send(open, stream, batch);
    open.stored = await this.progress.store(environment, open.stored, next.progress);
    open.state = failureOf(next.progress, stream)?.state ?? 'active';
    open.waitingSince = next.progress.failing === null ? this.clock.now() : null;
    this.skipped.inc(batch.skipped);
    return { in: 0 };
  }

  /** As of now: null where there is none, or its organization is gone. */
  private async living({ environment, organization }: TrailOwner): Promise<StoredStream | null> {
    const deadline = this.clock.now() + PATIENCE;
    await this.current.headReached(deadline);
    const state = await this.states.get(environment, organization);
    if (state?.object !== 'audit_log_stream') return null;
    try {
      await this.reader.requireOwner({ environment, deadline }, organization);
      return state;
    } catch (error) {
      if (isNotFound(error)) return null;
      throw error;
    }
  }

  private idle(open: OpenStream): Next {
    open.waitingSince = null;
    return 'when something is recorded';
  }

  private async send(open: OpenStream, stream: StoredStream, batch: Batch): Promise<{ readonly progress: Progress }> {
    const { owner } = open;
    const { progress } = open.stored!;
    const delivered = { ...progress, delivered: batch.to, skipped: progress.skipped + batch.skipped, failing: null };
    // Nobody is told that there is nothing.
    if (batch.items.length === 0) return { progress: delivered };
    const secret = await this.vault.open(stream.secret, secretPlace(owner));
    const at = this.clock.now();
    open.sentAt = performance.now();
    const { type, url } = stream;
    const { request, outcomeOf } = RECEIVERS[type];
    const answer = await this.sender.send(request({ stream, batch, secret, now: at, vendorWord: this.settings.VENDOR_WORD }));
    const outcome = outcomeOf(answer);
    const latency = Math.max(0, this.clock.now() - at);
    this.counts.inc({ type, outcome: outcome.isDelivered ? 'delivered' : answer.status === null ? 'unanswered' : 'rejected' });
    this.durations.observe(latency / 1_000);
    const events = batch.items.filter((item): item is StreamedEvent => item.object === 'audit_log_event');
    const attempts = withAttempt(progress.attempts, {
      batch_id: batch.id,
      at,
      latency,
      status: answer.status,
      error: outcome.isDelivered ? null : outcome.error,
      excerpt: await this.sealed(owner, batch, { at, text: redacted(answer.excerpt, secret) }),
      events: events.length,
      checkpoints: batch.items.length - events.length,
      first_leaf_index: events[0]?.leaf_index ?? null,
    });
    if (outcome.isDelivered) {
      this.events.inc(events.length);
      return { progress: { ...delivered, attempts, last_synced_at: this.clock.now() } };
    }
    const before = failureOf(progress, stream);
    if (before?.error !== outcome.error)
      this.log.warn('The receiver of an audit trail does not take it.', {
        ...owner,
        type,
        host: new URL(url).host,
        status: answer.status,
        reason: outcome.error,
      });
    const isCut = outcome.isTooLarge && batch.items.length > 1;
    const limit = isCut ? { items: Math.floor(batch.items.length / 2), change: stream.change } : progress.limit;
    return {
      progress: { ...progress, attempts, limit, failing: this.failing({ stream, tries: before?.tries ?? 0, outcome, answer, to: isCut ? null : batch.to }) },
    };
  }

  private failing({ stream: { change }, tries: before, outcome: { state, error }, answer, to }: Failed): Failing {
    const tries = before + 1;
    const now = this.clock.now();
    const place = state === 'invalid' ? this.pauses.length : Math.min(tries, this.pauses.length);
    // Less is another request: nothing speaks against it.
    return { state, error, tries, change, to, next_attempt_at: to === null ? now : now + this.schedule.pauseAfter(place, answer.retryAfter)! };
  }

  /** It may quote what it was sent, and goes with that. Where it cannot be sealed, it is left out. */
  private async sealed(owner: TrailOwner, { id }: Batch, { at, text }: { readonly at: number; readonly text: string | null }): Promise<string | null> {
    if (text === null) return null;
    const key = await this.keys.find(owner).catch(() => null);
    return key === null ? null : key.at(at).seal(excerptBinding(owner, id), text);
  }
}

/** Where the secret of a stream belongs. */
export function secretPlace({ environment, organization }: TrailOwner): Place {
  return { stream: streamName(auditStreamDecider.category, environment, organization), field: 'secret' };
}

export function excerptBinding({ environment, organization }: TrailOwner, batchId: string): string {
  return `${streamName(auditStreamDecider.category, environment, organization)} ${batchId}`;
}

/** Without the secret, should the receiver have said it back; also where the excerpt ends within it. */
function redacted(excerpt: string | null, secret: string): string | null {
  if (excerpt === null) return null;
  const text = excerpt.replaceAll(secret, '[redacted]');
  for (let length = secret.length - 1; length >= TELLING; length -= 1) if (text.endsWith(secret.slice(0, length))) return `${text.slice(0, -length)}[redacted]`;
  return text;
}
