import { setTimeout as pause } from 'node:timers/promises';
import type { LeasedFollowing } from '#libs/event-sourcing/src/following/leased-followers';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { allDone } from '#libs/platform/src/all-done';
import type { Clock } from '#libs/platform/src/clock';
import { isUnavailable, NeedsLaterRelease } from '#libs/platform/src/domain-error';
import type { Lifecycle, BackgroundComponent } from '#libs/platform/src/lifecycle';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import type { Leases } from '#libs/read-models/src/leases';
import type { ReadModels } from '#libs/read-models/src/read-models';
import { SharedLeases } from '#libs/read-models/src/shared-leases';
import type { EndpointDirectory, Target } from '../targets/endpoint-directory.ts';
import type { DeliveryLog } from './delivery-log.ts';
import { attempted, postponed, queuedDelivery, type Attempted, type StoredDelivery, type SentEvent } from './delivery.ts';
import { FairPool } from '#libs/messaging/src/webhooks/fair-pool';
import type { FirstPosition } from './first-position.ts';
import { INTAKE_SHARDS, shardOf } from './intake-shards.ts';
import { Pace } from '#libs/messaging/src/webhooks/pace';
import type { RetrySchedule } from '#libs/messaging/src/webhooks/retry-schedule';
import type { SetAside } from './set-aside.ts';
import { wantedDeliveries, type WantedDelivery } from './wanted-deliveries.ts';
import type { WebhookAttempts } from './webhook-attempts.ts';
import { SLOW_ANSWER_MS, type WebhookQueues } from './webhook-queues.ts';

const LIMITS = { total: 64, perKey: 32 };
/** Deliveries that are made in one go: with many endpoints, of few events. */
const SLICE = 500;
/** Deliveries after which others get their turn. */
const MANY = 100;
/** Events wait this long for those before them; longer only where it is this process that is slow. */
const LONGEST = 500;
const LONGEST_WHILE_BUSY = 2_000;
/** How long the endpoints may be behind before it is asked where the log ends. */
const DIRECTORY_TIMEOUT_MS = 10_000;
/** Before an engine that is away is asked again. */
const AWAY = 1_000;
/** Pauses before further tries of a record that fails by itself; then it is set aside. */
const PAUSES = [100, 200, 400, 800];

interface Needs {
  readonly readModels: ReadModels;
  readonly leases: Leases;
  /** Tells this process from its replicas. */
  readonly replica: string;
  readonly beginning: FirstPosition;
  readonly directory: EndpointDirectory;
  readonly deliveries: DeliveryLog;
  readonly queues: WebhookQueues;
  readonly aside: SetAside;
  readonly attempts: WebhookAttempts;
  readonly schedule: RetrySchedule;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** How long a request may take. */
  readonly timeout: number;
  /** How long an event stays in the feed: what is older is delivered no more. */
  readonly retention: number;
}

/** A delivery that is sent before it is recorded; the log asks for it as long as no later checkpoint is stored. */
interface Fresh {
  readonly target: Target;
  readonly delivery: StoredDelivery;
  readonly sent: SentEvent;
  /** Left to the queue before it was sent. */
  isGivenUp: boolean;
  /** Pending from when it is sent until it is answered. */
  answered: Promise<readonly Attempted[]> | null;
  requests: readonly Attempted[] | null;
}

/**
 * Turns each announced event into a delivery per endpoint that wants it: follows the log in shards, which the replicas share out. While an endpoint answers
 * promptly, its deliveries are sent from the log and recorded once, with their outcome; whatever takes longer than that goes to its queue, and the next
 * events are not held up. How far a shard is, is stored when every delivery up to there is on record.
 */
export class WebhookIntake implements BackgroundComponent {
  readonly name = 'webhooks';
  readonly stage = 'work';
  private readonly pace = new Pace();
  private readonly pool = new FairPool(LIMITS);
  private readonly late = new Set<Promise<void>>();
  private readonly inHand = new Map<readonly RecordedEvent[], Promise<boolean>>();

  constructor(private readonly needs: Needs) {
    needs.metrics.gauge({
      name: 'webhook_intake_lag_seconds',
      help: 'Age of the oldest event whose deliveries are being made.',
      collect: (gauge) => gauge.set(this.lag() / 1000),
    });
  }

  /** Before the process starts its parts. */
  follow(followers: { add(following: LeasedFollowing): void }, lifecycle: Lifecycle): void {
    const { readModels, leases, replica, log, beginning } = this.needs;
    const names = INTAKE_SHARDS.map(leaseOf);
    const shares = new SharedLeases('webhook-intake', names, { leases, readModels, replica, log });
    lifecycle.add(shares);
    for (const shard of INTAKE_SHARDS)
      followers.add({
        name: names[shard]!,
        table: readModels.table<never>({ name: `webhook-intake-${shard}`, indexes: [], rebuildable: false }),
        from: () => beginning.position(),
        shares,
        isFor: (record) => record.public.length > 0 && record.meta.environment !== SYSTEM_ENVIRONMENT && shardOf(record) === shard,
        handle: (batch, signal) => this.handle(shard, batch, signal),
      });
  }

  async start(): Promise<void> {}

  /** What is in hand is cut short by those who follow, which stop at the same time. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.inHand.values());
    await Promise.all(this.late);
  }

  private async handle(shard: number, batch: readonly RecordedEvent[], signal: AbortSignal): Promise<boolean> {
    const environments = new Map<string, RecordedEvent[]>();
    for (const record of batch) {
      const { environment } = record.meta;
      const known = environments.get(environment);
      if (known === undefined) environments.set(environment, [record]);
      else known.push(record);
    }
    // By its own clock: whoever has it since makes the same deliveries, and this process hears so only at the next renewal.
    if (environments.size > 0) await this.needs.leases.held(leaseOf(shard), signal);
    if (signal.aborted) return false;
    const taken = await allDone([...environments].map(([environment, records]) => this.take(environment, records, signal)));
    // What nobody wanted may be looked at again: a write for each event would cost more than that.
    return taken.includes(true);
  }

  private async take(environment: string, records: readonly RecordedEvent[], signal: AbortSignal): Promise<boolean> {
    const taken = this.deliverAll(environment, records, signal);
    this.inHand.set(records, taken);
    try {
      return await taken;
    } finally {
      this.inHand.delete(records);
    }
  }

  /**
   * Answers whether anything of it is on record.
   * @throws DomainError `service_unavailable` where one cannot be read now and may be later: those before it are on record by then
   */
  private async deliverAll(environment: string, records: readonly RecordedEvent[], signal: AbortSignal): Promise<boolean> {
    try {
      return await this.deliver(environment, records, signal);
    } catch {
      // One of them is at fault: from here on one by one, so that it does not take the others with it.
      for (const record of records) if (!signal.aborted) await this.deliverAlone(environment, record, signal);
      return true;
    }
  }

  private async deliverAlone(environment: string, record: RecordedEvent, signal: AbortSignal): Promise<void> {
    for (let tries = 0; !signal.aborted;) {
      try {
        await this.deliver(environment, [record], signal);
        return;
      } catch (error) {
        if (isUnavailable(error)) throw error;
        const wait = PAUSES[tries++];
        if (wait === undefined) return this.whenThere(() => this.needs.aside.add(record, error), signal);
        await pause(wait, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** Answers whether anybody wanted any of it. */
  private async deliver(environment: string, records: readonly RecordedEvent[], signal: AbortSignal): Promise<boolean> {
    const { directory, queues, clock, retention } = this.needs;
    const { position } = records.at(-1)!;
    // By a follower of its own: whoever waited for it through the reader of the log would wait for itself.
    await this.whenThere(() => directory.reached(position, clock.now() + DIRECTORY_TIMEOUT_MS), signal);
    const targets = directory.enabled(environment);
    const slice = Math.max(1, Math.floor(SLICE / targets.length));
    let isWanted = false;
    for (let start = 0; targets.length > 0 && start < records.length; start += slice) {
      const begun = performance.now();
      const wanted = records.slice(start, start + slice).flatMap((record) => wantedDeliveries(record, targets, clock.now() - retention));
      if (wanted.length === 0) continue;
      isWanted = true;
      const fresh = await this.whenThere(() => this.fresh(environment, wanted), signal);
      await this.sendAll(fresh.filter(({ target }) => queues.isPrompt(target.id)));
      const settled = fresh.map((one) => this.settled(environment, one));
      await this.whenThere(() => queues.add(environment, settled), signal);
      if (fresh.length >= MANY) await this.pace.giveWay(performance.now() - begun);
    }
    return isWanted;
  }

  /** While an engine is away, waiting is all that helps: tries that count would set aside what it missed. @throws when it stops meanwhile */
  private async whenThere<Answer>(ask: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        // What this process cannot know any more, no waiting brings.
        if (!isUnavailable(error) || error instanceof NeedsLaterRelease || signal.aborted) throw error;
        await pause(AWAY, undefined, { signal }).catch(() => {});
      }
    }
  }

  private lag(): number {
    const times = [...this.inHand.keys()].map(([oldest]) => oldest!.meta.at);
    return times.length === 0 ? 0 : Math.max(0, this.needs.clock.now() - Math.min(...times));
  }

  /** Those that are not on record: what the log tells may come twice. */
  private async fresh(environment: string, wanted: readonly WantedDelivery[]): Promise<readonly Fresh[]> {
    const now = this.needs.clock.now();
    const known = await this.needs.deliveries.known(
      environment,
      wanted.map(({ id }) => id),
    );
    return wanted
      .filter(({ id }) => !known.has(id))
      .map(({ target, eventId, event, sent }) => ({
        target,
        delivery: queuedDelivery({ endpointId: target.id, eventId, event, now }),
        sent,
        isGivenUp: false,
        answered: null,
        requests: null,
      }));
  }

  /** Resolves when everything was answered, or has taken too long. */
  private async sendAll(prompt: readonly Fresh[]): Promise<void> {
    if (prompt.length === 0) return;
    const begun = performance.now();
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        if (!this.pace.isBusy || performance.now() - begun > LONGEST_WHILE_BUSY) done();
      }, LONGEST);
      const done = (): void => {
        clearInterval(timer);
        resolve();
      };
      void Promise.all(prompt.map((one) => this.pool.run(one.target.id, () => this.send(one)))).then(done);
    });
  }

  /** Resolves when the endpoint has answered, or let us wait for too long. */
  private async send(one: Fresh): Promise<void> {
    const { queues, attempts } = this.needs;
    const { target, sent } = one;
    if (one.isGivenUp || !queues.isPrompt(target.id)) return;
    one.answered = attempts.send(target, sent);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        queues.isLate(target.id);
        resolve();
      }, SLOW_ANSWER_MS);
      void one.answered!.then((requests) => {
        one.requests = requests;
        queues.learn(target.id, requests);
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** What is recorded of a delivery now: its outcome, or that it waits. */
  private settled(environment: string, one: Fresh): StoredDelivery {
    const { queues, schedule, clock, timeout } = this.needs;
    const { delivery, requests, answered } = one;
    const now = clock.now();
    if (requests !== null) return attempted(delivery, requests, schedule, now);
    if (answered === null) {
      one.isGivenUp = true;
      return delivery;
    }
    // Should this process end before the answer comes, the queue takes over.
    const waiting = postponed(delivery, now + 2 * timeout, now);
    const late = answered
      .then((requests) => queues.settle(environment, waiting, requests))
      .catch((error: unknown) =>
        this.needs.log.error('The outcome of a webhook could not be recorded; it is sent again.', { environment, delivery: delivery.id, error }),
      )
      .finally(() => this.late.delete(late));
    this.late.add(late);
    return waiting;
  }
}

function leaseOf(shard: number): string {
  return `notifications.webhook-intake-${shard}`;
}
