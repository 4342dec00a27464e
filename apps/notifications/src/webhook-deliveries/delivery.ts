import { hash } from 'node:crypto';
import type { PublicEventName } from '#libs/contracts/src/events';
import type { WebhookAttempt, WebhookDelivery } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import type { Holder } from '#libs/event-sourcing/src/sealing/holders';
import { BASE_32 } from '#libs/platform/src/ids';
import type { RetrySchedule } from '#libs/messaging/src/webhooks/retry-schedule';
import type { Answer } from '#libs/messaging/src/webhooks/webhook-sender';

/** How many attempts a delivery shows. */
const SHOWN_ATTEMPTS = 20;

/** The public resource with what its queue needs. */
export interface StoredDelivery extends WebhookDelivery {
  /** Attempts since it was queued last: its place in the schedule. */
  readonly tries: number;
  /** Grows with every change. */
  readonly revision: number;
  /** The event itself, where the feed does not have it. */
  readonly sample: string | null;
}

/** An event on its way to an endpoint. */
export interface QueuedEvent {
  readonly endpointId: string;
  readonly eventId: string;
  readonly event: PublicEventName;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly sample?: string;
}

/**
 * The same event at the same endpoint is the same delivery, however often its message comes. Begins with the time of the event, so that ids that are made
 * together lie together.
 */
export function deliveryId(endpointId: string, eventId: string): string {
  const digest = hash('sha256', `${endpointId}\n${eventId}`, 'hex');
  let rest = BigInt(`0x${digest.slice(0, 20)}`);
  let text = '';
  for (; text.length < 16; rest >>= 5n) text = BASE_32[Number(rest & 31n)]! + text;
  return `webhook_delivery_${eventId.slice(-26, -16)}${text}`;
}

export function queuedDelivery({ endpointId, eventId, event, now, sample }: QueuedEvent): StoredDelivery {
  const at = new Date(now).toISOString();
  return {
    object: 'webhook_delivery',
    id: deliveryId(endpointId, eventId),
    webhook_endpoint_id: endpointId,
    event_id: eventId,
    event,
    status: 'pending',
    attempts: [],
    next_attempt_at: at,
    created_at: at,
    updated_at: at,
    tries: 0,
    revision: 1,
    sample: sample ?? null,
  };
}

/** From the beginning of the schedule again; what was tried stays on record. */
export function queuedAgain(delivery: StoredDelivery, now: number): StoredDelivery {
  return changed(delivery, now, { status: 'pending', tries: 0, next_attempt_at: new Date(now).toISOString() });
}

/** Not to be tried before `due`, unless its attempt in flight ends earlier. */
export function postponed(delivery: StoredDelivery, due: number, now: number): StoredDelivery {
  return changed(delivery, now, { next_attempt_at: new Date(due).toISOString() });
}

/** Nothing is tried any more: its endpoint wants nothing, or the event is gone. */
export function dropped(delivery: StoredDelivery, now: number): StoredDelivery {
  return changed(delivery, now, { status: 'failed', next_attempt_at: null });
}

/** One request and its answer. */
export interface Attempted {
  readonly startedAt: number;
  readonly latency: number;
  readonly answer: Answer;
}

/** What a receiver is sent. */
export interface SentEvent {
  readonly id: string;
  /** As it stands in the feed. Equals `JSON.stringify(JSON.parse(body))`, since readers serialise it again before they check its signature. */
  readonly body: string;
  /** Whose the personal fields in it are. */
  readonly holders: readonly Holder[];
}

/** What follows from an attempt, which is one request, or two while a secret is being replaced. */
export function attempted(delivery: StoredDelivery, requests: readonly Attempted[], schedule: RetrySchedule, now: number): StoredDelivery {
  const { answer } = requests.at(-1)!;
  const attempts = [...delivery.attempts, ...requests.map(attemptOf)].slice(-SHOWN_ATTEMPTS);
  const tries = delivery.tries + 1;
  if (isSuccess(answer)) return changed(delivery, now, { status: 'delivered', attempts, tries, next_attempt_at: null });
  const pause = schedule.pauseAfter(tries, answer.retryAfter);
  if (pause === null) return changed(delivery, now, { status: 'failed', attempts, tries, next_attempt_at: null });
  return changed(delivery, now, { status: 'pending', attempts, tries, next_attempt_at: new Date(now + pause).toISOString() });
}

export function isSuccess({ status }: Answer): boolean {
  return status !== null && status >= 200 && status < 300;
}

function attemptOf({ startedAt, latency, answer }: Attempted): WebhookAttempt {
  const { status, error, excerpt } = answer;
  return { at: new Date(startedAt).toISOString(), status_code: status, latency_ms: latency, error: error ?? problemOf(status), response_excerpt: excerpt };
}

function problemOf(status: number | null): string | null {
  if (status === null || (status >= 200 && status < 300)) return null;
  return status >= 300 && status < 400 ? 'redirect_not_followed' : 'status_not_successful';
}

function changed(delivery: StoredDelivery, now: number, change: Partial<StoredDelivery>): StoredDelivery {
  return { ...delivery, ...change, updated_at: new Date(now).toISOString(), revision: delivery.revision + 1 };
}
