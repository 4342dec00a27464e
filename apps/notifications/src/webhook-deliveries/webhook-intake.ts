import { setTimeout as pause } from 'node:timers/promises';
import type { PublicEventName } from '#libs/contracts/src/events';
import type { Delivery, MessageBus } from '#libs/messaging/src/message-bus';
import type { Clock } from '#libs/platform/src/clock';
import { isUnavailable } from '#libs/platform/src/domain-error';
import type { Part } from '#libs/platform/src/lifecycle';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import type { EndpointDirectory, Target } from '../webhook-endpoints/endpoint-directory.ts';
import type { DeliveryLog } from './delivery-log.ts';
import { attempted, deliveryId, postponed, queuedDelivery, type Attempted, type StoredDelivery } from './delivery.ts';
import { FairPool } from './fair-pool.ts';
import { Pace } from './pace.ts';
import type { RetrySchedule } from './retry-schedule.ts';
import type { WebhookAttempts } from './webhook-attempts.ts';
import { PATIENCE, type WebhookQueues } from './webhook-queues.ts';

/** What it hears of the bus. */
export const WEBHOOKS = { group: 'webhooks', topics: ['*'] } as const;
/** `<environment>.<service>`: what else there is has no public names. Topics of the embedded bus began with `gatehouse.` once, and may still hold messages. */
const TOPIC = /^(?:gatehouse\.)?([^.]+)\.[^.]+$/;
const LIMITS = { total: 64, perKey: 32 };
/** Deliveries that are made in one go: with many endpoints, few messages. */
const SLICE = 500;
/** Deliveries after which others get their turn. */
const MANY = 100;
/** Messages wait this long for those before them; longer only where it is this process that is slow. */
const LONGEST = 500;
const LONGEST_WHILE_BUSY = 2_000;
/** How long the log may be behind the bus before it is asked where it ends. */
const PATIENCE_FOR_LOG = 10_000;
/** Before an engine that is away is asked again. */
const AWAY = 1_000;

interface Needs {
  readonly bus: MessageBus;
  readonly directory: EndpointDirectory;
  readonly deliveries: DeliveryLog;
  readonly queues: WebhookQueues;
  readonly attempts: WebhookAttempts;
  readonly schedule: RetrySchedule;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** How long a request may take. */
  readonly timeout: number;
}

/** A delivery that is sent before it is recorded; the message that asks for it is on record meanwhile. */
interface Fresh {
  readonly target: Target;
  readonly delivery: StoredDelivery;
  readonly body: string;
  /** Left to the queue before it was sent. */
  isGivenUp: boolean;
  /** Pending from when it is sent until it is answered. */
  answered: Promise<readonly Attempted[]> | null;
  requests: readonly Attempted[] | null;
}

/**
 * Turns each announced event into a delivery per endpoint that wants it. While an endpoint answers promptly, its deliveries are sent from the message and
 * recorded once, with their outcome; whatever takes longer than that goes to its queue, and the next messages are not held up.
 */
export class WebhookIntake implements Part {
  readonly name = 'webhooks';
  readonly stage = 'work';
  private readonly pace = new Pace();
  private readonly pool = new FairPool(LIMITS);
  private readonly late = new Set<Promise<void>>();
  private readonly stopping = new AbortController();
  private subscription: { stop(): Promise<void> } | null = null;
  private readonly inHand = new Set<readonly Delivery[]>();

  constructor(private readonly needs: Needs) {
    needs.metrics.gauge({
      name: 'webhook_intake_lag_seconds',
      help: 'Age of the oldest event whose deliveries are being made.',
      collect: (gauge) => gauge.set(this.lag() / 1000),
    });
  }

  async start(): Promise<void> {
    this.subscription = await this.needs.bus.subscribe({ ...WEBHOOKS, handle: (messages) => this.handle(messages) });
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.subscription?.stop();
    await Promise.all(this.late);
  }

  private async handle(messages: readonly Delivery[]): Promise<void> {
    const environment = TOPIC.exec(messages[0]!.topic)?.[1];
    if (environment === undefined) return;
    this.inHand.add(messages);
    try {
      await this.deliver(environment, messages);
    } finally {
      this.inHand.delete(messages);
    }
  }

  private async deliver(environment: string, messages: readonly Delivery[]): Promise<void> {
    const { directory, queues, clock } = this.needs;
    const position = messages.at(-1)!.headers['position'] ?? '';
    await this.whenThere(() => directory.reached(position, clock.now() + PATIENCE_FOR_LOG));
    const targets = directory.enabled(environment);
    const slice = Math.max(1, Math.floor(SLICE / targets.length));
    for (let start = 0; targets.length > 0 && start < messages.length; start += slice) {
      const begun = performance.now();
      const fresh = await this.whenThere(() => this.fresh(environment, messages.slice(start, start + slice), targets));
      await this.sendAll(fresh.filter(({ target }) => queues.isPrompt(target.id)));
      const settled = fresh.map((one) => this.settled(environment, one));
      await this.whenThere(() => queues.add(environment, settled));
      if (fresh.length >= MANY) await this.pace.giveWay(performance.now() - begun);
    }
  }

  /** While an engine is away, waiting is all that helps: tries that count would make dead letters of what it missed. @throws when it stops meanwhile */
  private async whenThere<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    const { signal } = this.stopping;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!isUnavailable(error) || signal.aborted) throw error;
        await pause(AWAY, undefined, { signal }).catch(() => {});
      }
    }
  }

  private lag(): number {
    const times = [...this.inHand].map(([oldest]) => Date.parse(oldest!.headers['ce_time'] ?? ''));
    return times.length === 0 ? 0 : Math.max(0, this.needs.clock.now() - Math.min(...times));
  }

  /** The deliveries that follow from the messages and are not on record: a message may come twice. */
  private async fresh(environment: string, messages: readonly Delivery[], targets: readonly Target[]): Promise<readonly Fresh[]> {
    const now = this.needs.clock.now();
    const wanted = messages.flatMap((message) => {
      const { ce_type: event, ce_id: eventId, position } = message.headers as Record<string, string>;
      return targets
        .filter(({ events, since }) => events.has(event!) && since < (position ?? ''))
        .map((target) => ({ target, eventId: eventId!, event: event as PublicEventName, body: message.value, id: deliveryId(target.id, eventId!) }));
    });
    const known = await this.needs.deliveries.known(
      environment,
      wanted.map(({ id }) => id),
    );
    return wanted
      .filter(({ id }) => !known.has(id))
      .map(({ target, eventId, event, body }) => ({
        target,
        delivery: queuedDelivery({ endpointId: target.id, eventId, event, now }),
        body,
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
    const { target, delivery, body } = one;
    if (one.isGivenUp || !queues.isPrompt(target.id)) return;
    one.answered = attempts.send(target, { id: delivery.event_id, body });
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        queues.isLate(target.id);
        resolve();
      }, PATIENCE);
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
