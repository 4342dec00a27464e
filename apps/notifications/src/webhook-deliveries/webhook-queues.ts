import type { Clock } from '#libs/platform/src/clock';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import type { Feed } from '../feed/feed.ts';
import type { EndpointDirectory, Target } from '../webhook-endpoints/endpoint-directory.ts';
import { entryIdOf, type DeliveryLog, type DueEntry } from './delivery-log.ts';
import { attempted, dropped, isSuccess, postponed, type Attempted, type StoredDelivery } from './delivery.ts';
import { FairPool } from './fair-pool.ts';
import type { RetrySchedule } from './retry-schedule.ts';
import type { WebhookAttempts } from './webhook-attempts.ts';

/** An endpoint that takes longer than this is served from its queue, where nobody waits for it. */
export const PATIENCE = 250;
/** Deliveries that are taken from a queue in one go. */
const SLICE = 500;
/** An endpoint has few requests at a time, so that it takes more than sixty that never answer before those of others wait. */
const LIMITS = { total: 1024, perKey: 16 };
/** Another process may have queued something. */
const LOOK_AGAIN = 5_000;
/** The feed may be behind the bus, and a delivery is recorded after its entry in the queue; what is still missing after this time is gone. */
const MISSING_PATIENCE = 5 * 60_000;
const MISSING_PAUSE = 500;
/** Before work on a queue that failed begins again. */
const FAILED_PAUSE = 1_000;
/** The last time whose text sorts as it should. */
const FOR_EVER = Date.parse('9999-12-31T23:59:59.999Z');

export interface QueuesNeeds {
  readonly directory: EndpointDirectory;
  readonly deliveries: DeliveryLog;
  readonly feed: Feed;
  readonly attempts: WebhookAttempts;
  readonly schedule: RetrySchedule;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

interface Hint {
  readonly environment: string;
  /** Nothing of the endpoint is due earlier, as far as this process knows. */
  readonly due: number;
}

/**
 * One durable queue for each endpoint: whatever is not delivered at once waits here for its time, after a restart too. A dead or slow receiver fills its own
 * queue and nobody else's.
 */
export class WebhookQueues {
  private readonly pool = new FairPool(LIMITS);
  private readonly hints = new Map<string, Hint>();
  private readonly draining = new Map<string, Promise<void>>();
  /** Endpoints with something due in their queue. */
  private readonly behind = new Set<string>();
  private readonly slow = new Set<string>();
  private wake: () => void = () => {};

  constructor(private readonly needs: QueuesNeeds) {
    needs.directory.onChange(({ id, environment, isEnabled }) => {
      if (!isEnabled) this.hint(id, { environment, due: 0 });
    });
    needs.metrics.gauge({
      name: 'webhook_queue_depth',
      help: 'Webhooks that wait for their next attempt.',
      collect: (gauge) => gauge.set(needs.deliveries.depth),
    });
    needs.metrics.gauge({
      name: 'webhook_queues_behind',
      help: 'Webhook endpoints whose queue is being worked on.',
      collect: (gauge) => gauge.set(this.behind.size),
    });
    needs.metrics.gauge({
      name: 'webhook_queue_lag_seconds',
      help: 'How long the oldest webhook that is due has been waiting.',
      collect: (gauge) => gauge.set(this.lag() / 1000),
    });
  }

  /** The one way into the queue. Records the deliveries, and sends those that are pending when they are due. */
  async add(environment: string, deliveries: readonly StoredDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    await this.needs.deliveries.save(environment, deliveries);
    for (const { webhook_endpoint_id, next_attempt_at } of deliveries)
      if (next_attempt_at !== null) this.hint(webhook_endpoint_id, { environment, due: Date.parse(next_attempt_at) });
  }

  /** Whether the endpoint answers as fast as events come: then its queue is passed by. */
  isPrompt(endpointId: string): boolean {
    return !this.slow.has(endpointId) && !this.behind.has(endpointId);
  }

  /** Learns from how an endpoint answered. */
  learn(endpointId: string, requests: readonly Attempted[]): void {
    const { answer, latency } = requests.at(-1)!;
    if (isSuccess(answer) && latency < PATIENCE) this.slow.delete(endpointId);
    else this.slow.add(endpointId);
  }

  /** The endpoint has not answered within `PATIENCE`. */
  isLate(endpointId: string): void {
    this.slow.add(endpointId);
  }

  /** Records what came of an attempt of a delivery that is on record as waiting. */
  async settle(environment: string, waiting: StoredDelivery, requests: readonly Attempted[]): Promise<void> {
    const { deliveries, schedule, clock } = this.needs;
    this.learn(waiting.webhook_endpoint_id, requests);
    await this.add(environment, [attempted(waiting, requests, schedule, clock.now())]);
    await deliveries.done(environment, [entryIdOf(waiting)]);
  }

  /** Works on the queues of all endpoints until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.wake();
    signal.addEventListener('abort', stop);
    await this.needs.deliveries.count();
    for (let lookAgain = 0; !signal.aborted;) {
      const woken = new Promise<void>((resolve) => (this.wake = resolve));
      const now = this.needs.clock.now();
      if (now >= lookAgain) {
        lookAgain = now + LOOK_AGAIN;
        for (const { id, environment } of this.needs.directory.all()) this.hint(id, { environment, due: now });
      }
      this.startDue(now, signal);
      const timer = setTimeout(() => this.wake(), Math.max(0, Math.min(lookAgain, this.nextDue()) - now));
      await woken;
      clearTimeout(timer);
    }
    signal.removeEventListener('abort', stop);
    await Promise.all(this.draining.values());
  }

  private hint(endpointId: string, hint: Hint): void {
    const known = this.hints.get(endpointId);
    if (known !== undefined && known.due <= hint.due) return;
    this.hints.set(endpointId, hint);
    if (!this.draining.has(endpointId)) this.wake();
  }

  private startDue(now: number, signal: AbortSignal): void {
    for (const [id, { environment, due }] of this.hints) {
      if (due > now || this.draining.has(id)) continue;
      this.hints.delete(id);
      const work = this.drain(environment, id, signal)
        .catch((error: unknown) => {
          this.needs.log.error('The queue of a webhook endpoint stopped and is tried again.', { environment, endpoint: id, error });
          this.hint(id, { environment, due: this.needs.clock.now() + FAILED_PAUSE });
        })
        .finally(() => {
          this.draining.delete(id);
          this.wake();
        });
      this.draining.set(id, work);
    }
  }

  private nextDue(): number {
    let next = Infinity;
    for (const [id, { due }] of this.hints) if (!this.draining.has(id)) next = Math.min(next, due);
    return next;
  }

  private async drain(environment: string, id: string, signal: AbortSignal): Promise<void> {
    const { deliveries, directory, clock } = this.needs;
    try {
      while (!signal.aborted) {
        const target = await directory.latest(environment, id);
        if (signal.aborted) break;
        const isWanted = target?.isEnabled === true;
        const due = await deliveries.due(environment, id, isWanted ? clock.now() : FOR_EVER, SLICE);
        const waiting = await this.withoutLeftovers(environment, due);
        if (waiting.length === 0 && due.length < SLICE) break;
        this.behind.add(id);
        if (isWanted) await this.sendAll(target, waiting, signal);
        else await this.dropAll(environment, waiting);
      }
    } finally {
      this.behind.delete(id);
    }
    const next = await deliveries.nextDue(environment, id);
    if (next === null) return;
    const now = clock.now();
    // An entry that is due and still there waits for its delivery.
    this.hint(id, { environment, due: next > now ? next : now + MISSING_PAUSE });
  }

  private async withoutLeftovers(environment: string, entries: readonly DueEntry[]): Promise<readonly StoredDelivery[]> {
    const lost = this.needs.clock.now() - MISSING_PATIENCE;
    const leftovers = entries.filter(({ delivery, due }) => delivery === 'overtaken' || (delivery === 'early' && due < lost));
    await this.needs.deliveries.done(
      environment,
      leftovers.map(({ entryId }) => entryId),
    );
    return entries.flatMap(({ delivery }) => (typeof delivery === 'string' ? [] : [delivery]));
  }

  private async sendAll(target: Target, waiting: readonly StoredDelivery[], signal: AbortSignal): Promise<void> {
    const { environment } = target;
    const bodies = await this.bodiesOf(environment, waiting);
    await Promise.all(
      waiting.map(async (delivery, index) => {
        const body = bodies[index]!;
        if (body === null) return this.withoutBody(environment, delivery);
        const requests = await this.pool.run(target.id, async () =>
          signal.aborted ? null : this.needs.attempts.send(target, { id: delivery.event_id, body }),
        );
        if (requests !== null) await this.settle(environment, delivery, requests);
      }),
    );
  }

  private async dropAll(environment: string, waiting: readonly StoredDelivery[]): Promise<void> {
    const now = this.needs.clock.now();
    await this.add(
      environment,
      waiting.map((delivery) => dropped(delivery, now)),
    );
    await this.needs.deliveries.done(environment, waiting.map(entryIdOf));
  }

  private async bodiesOf(environment: string, waiting: readonly StoredDelivery[]): Promise<readonly (string | null)[]> {
    const texts = await this.needs.feed.texts(
      environment,
      waiting.map(({ event_id }) => event_id),
    );
    return waiting.map(({ sample }, index) => sample ?? texts[index]!);
  }

  private async withoutBody(environment: string, delivery: StoredDelivery): Promise<void> {
    const now = this.needs.clock.now();
    const isYoung = now - Date.parse(delivery.created_at) < MISSING_PATIENCE;
    await this.add(environment, [isYoung ? postponed(delivery, now + MISSING_PAUSE, now) : dropped(delivery, now)]);
    await this.needs.deliveries.done(environment, [entryIdOf(delivery)]);
  }

  private lag(): number {
    const now = this.needs.clock.now();
    return Math.max(0, ...[...this.hints.values()].map(({ due }) => now - due));
  }
}
