import type { Clock } from '#libs/platform/src/clock';
import { isUnavailable } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import type { ReadModels } from '#libs/read-models/src/read-models';
import type { FeedReader } from '../readers/feed-reader.ts';
import type { EndpointDirectory, Target } from '../targets/endpoint-directory.ts';
import { entryIdOf, type DeliveryLog, type DueEntry } from './delivery-log.ts';
import { attempted, dropped, isSuccess, postponed, type Attempted, type SentEvent, type StoredDelivery } from './delivery.ts';
import { FairPool } from '#libs/messaging/src/webhooks/fair-pool';
import { Notes } from './notes.ts';
import type { RetrySchedule } from '#libs/messaging/src/webhooks/retry-schedule';
import type { WebhookAttempts } from './webhook-attempts.ts';

/** An endpoint that takes longer than this is served from its queue, where nobody waits for it. */
export const SLOW_ANSWER_MS = 250;
/** Deliveries that are taken from a queue in one go. */
const SLICE = 500;
/** An endpoint has few requests at a time, so that it takes more than sixty that never answer before those of others wait. */
const LIMITS = { total: 1024, perKey: 16 };
/** How often is asked what others have queued, */
const NOTES_EVERY = 500;
/** and how often every environment is looked through, since a note can be lost. */
const LOOK_AGAIN = 60_000;
/** So long an endpoint is taken for slow after it was: only the process that works on its queue learns that it has become prompt. */
const SLOW_FOR = 30_000;
/** The feed may be behind the intake, and a delivery is recorded after its entry in the queue; what is still missing after this time is gone. */
const MISSING_TIMEOUT_MS = 5 * 60_000;
const MISSING_PAUSE = 500;
/** Before work on a queue that failed begins again. */
const FAILED_PAUSE = 1_000;
/** The last time whose text sorts as it should. */
const FOR_EVER = Date.parse('9999-12-31T23:59:59.999Z');

/** Something waits in an endpoint's queue. */
interface Note {
  readonly environment: string;
  readonly endpoint: string;
  /** Milliseconds since the epoch. */
  readonly due: number;
  readonly entries: number;
}

interface Needs {
  readonly directory: EndpointDirectory;
  readonly deliveries: DeliveryLog;
  readonly feed: FeedReader;
  readonly attempts: WebhookAttempts;
  readonly schedule: RetrySchedule;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly readModels: ReadModels;
  /** Whether this process is the one that works on the queues, as far as can be told without asking. */
  readonly isHolder: () => boolean;
}

interface Hint {
  readonly environment: string;
  /** When to look into the endpoint's queue. */
  readonly due: number;
  /** Nothing of the endpoint is due earlier, as far as this process knows: from there on its queue is read. */
  readonly from: number;
}

/**
 * One durable queue for each endpoint: whatever is not delivered at once waits here for its time, after a restart too. A dead or slow receiver fills its own
 * queue and nobody else's. Every process adds, and one of them works on what was added.
 */
export class WebhookQueues {
  private readonly pool = new FairPool(LIMITS);
  private readonly notes: Notes<Note>;
  private readonly hints = new Map<string, Hint>();
  private readonly draining = new Map<string, Promise<void>>();
  /** Endpoints with something due in their queue. */
  private readonly behind = new Set<string>();
  /** Until when an endpoint is taken for slow, by `performance.now()`. A hint of this process alone: others learn for themselves. */
  private readonly slow = new Map<string, number>();
  /** How long the oldest delivery that was due had waited when all environments were looked through last. */
  private lagWhenLooked = 0;
  private isRunning = false;
  private wake: () => void = () => {};

  constructor(private readonly needs: Needs) {
    this.notes = new Notes('webhook_queue_notes', needs.readModels, needs.clock);
    needs.directory.onChange(({ id, environment, isEnabled }) => {
      if (!isEnabled && this.isWorking) this.hint(id, { environment, due: 0, from: 0 });
    });
    needs.metrics.gauge({
      name: 'webhook_queue_depth',
      help: 'Webhooks that wait for their next attempt. Told by the process that works on the queues; the others tell 0.',
      collect: (gauge) => gauge.set(this.isWorking ? needs.deliveries.depth : 0),
    });
    needs.metrics.gauge({
      name: 'webhook_queues_behind',
      help: 'Webhook endpoints whose queue is being worked on.',
      collect: (gauge) => gauge.set(this.behind.size),
    });
    needs.metrics.gauge({
      name: 'webhook_queue_lag_seconds',
      help: 'How long the oldest webhook whose attempt is due has been waiting for it. Told by the process that works on the queues; the others tell 0.',
      collect: (gauge) => gauge.set(this.isWorking ? this.lag() / 1000 : 0),
    });
  }

  /** The one way into the queue. Records the deliveries, and sees to it that those that are pending are sent when they are due. */
  async add(environment: string, deliveries: readonly StoredDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    await this.needs.deliveries.save(environment, deliveries);
    const notes = notesOf(environment, deliveries);
    if (notes.length === 0) return;
    // Asked after they were saved: whoever takes this work over later finds them there.
    if (!this.isWorking) return this.notes.leave(notes);
    for (const { endpoint, due } of notes) this.hint(endpoint, { environment, due, from: due });
  }

  /** Whether the endpoint answers as fast as events come: then its queue is passed by. */
  isPrompt(endpointId: string): boolean {
    const until = this.slow.get(endpointId);
    if (until !== undefined && until <= performance.now()) this.slow.delete(endpointId);
    return !this.slow.has(endpointId) && !this.behind.has(endpointId);
  }

  /** Learns from how an endpoint answered. */
  learn(endpointId: string, requests: readonly Attempted[]): void {
    const { answer, latency } = requests.at(-1)!;
    if (isSuccess(answer) && latency < SLOW_ANSWER_MS) this.slow.delete(endpointId);
    else this.isLate(endpointId);
  }

  /** The endpoint has not answered within `SLOW_ANSWER_MS`. */
  isLate(endpointId: string): void {
    this.slow.set(endpointId, performance.now() + SLOW_FOR);
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
    const ending = new AbortController();
    const stop = (): void => {
      ending.abort();
      this.wake();
    };
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    this.isRunning = true;
    try {
      await this.work(ending.signal);
    } finally {
      signal.removeEventListener('abort', stop);
      // Also where it failed: what is being sent ends before this work begins again.
      ending.abort();
      this.isRunning = false;
      await Promise.all(this.draining.values());
      this.hints.clear();
    }
  }

  private get isWorking(): boolean {
    return this.isRunning && this.needs.isHolder();
  }

  private async work(signal: AbortSignal): Promise<void> {
    const { clock } = this.needs;
    let looking: Promise<void> | null = null;
    for (let lookAgain = 0, askAgain = 0; !signal.aborted;) {
      const woken = new Promise<void>((resolve) => (this.wake = resolve));
      const now = clock.now();
      // Whoever lost the lease without hearing of it would keep them from who has it.
      if (now >= askAgain) askAgain = this.needs.isHolder() && (await this.takeNotes()) ? now : now + NOTES_EVERY;
      if (now >= lookAgain && looking === null) {
        lookAgain = now + LOOK_AGAIN;
        looking = this.lookAround(signal).finally(() => (looking = null));
      }
      this.startDue(clock.now(), signal);
      const timer = setTimeout(() => this.wake(), Math.max(0, Math.min(askAgain, lookAgain, this.nextDue()) - clock.now()));
      await woken;
      clearTimeout(timer);
    }
    await looking;
  }

  /** Hears what other processes have queued; answers whether there is more to hear. */
  private async takeNotes(): Promise<boolean> {
    const { notes, hasMore } = await this.notes.take();
    for (const { environment, endpoint, due, entries } of notes) {
      this.needs.deliveries.heardOf(entries);
      this.hint(endpoint, { environment, due, from: due });
    }
    return hasMore;
  }

  /** Finds what waits in any environment, also for an endpoint that is no more. */
  private async lookAround(signal: AbortSignal): Promise<void> {
    const { directory, deliveries, clock, log } = this.needs;
    try {
      let lag = 0;
      for (const environment of directory.environments()) {
        if (signal.aborted) return;
        const { entries, hasMore } = await deliveries.first(environment, SLICE);
        for (const { endpoint, due } of entries) this.hint(endpoint, { environment, due, from: due });
        // Nothing else is due earlier than the last of them.
        const { due: last } = entries.at(-1) ?? { due: 0 };
        if (hasMore) for (const { id } of directory.all(environment)) this.hint(id, { environment, due: last, from: last });
        lag = Math.max(lag, clock.now() - (entries[0]?.due ?? Infinity));
      }
      this.lagWhenLooked = lag;
      await deliveries.count();
    } catch (error) {
      log.warn('The queues of webhooks could not be looked through and will be again.', { error });
    }
  }

  private hint(endpointId: string, { environment, due, from }: Hint): void {
    const { due: knownDue, from: knownFrom } = this.hints.get(endpointId) ?? { due: Infinity, from: Infinity };
    this.hints.set(endpointId, { environment, due: Math.min(due, knownDue), from: Math.min(from, knownFrom) });
    if (due < knownDue && !this.draining.has(endpointId)) this.wake();
  }

  private startDue(now: number, signal: AbortSignal): void {
    for (const [id, { environment, due, from }] of this.hints) {
      if (due > now || this.draining.has(id)) continue;
      this.hints.delete(id);
      const work = this.drain(environment, id, from, signal)
        .catch((error: unknown) => {
          // Of an engine that is away others tell, once rather than for every endpoint.
          if (!isUnavailable(error)) this.needs.log.error('The queue of a webhook endpoint stopped and is tried again.', { environment, endpoint: id, error });
          this.hint(id, { environment, due: this.needs.clock.now() + FAILED_PAUSE, from });
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

  /** `from`: nothing of the endpoint is due earlier. What is queued there meanwhile has a hint of its own. */
  private async drain(environment: string, id: string, from: number, signal: AbortSignal): Promise<void> {
    const { deliveries, directory, clock } = this.needs;
    let begin = from;
    try {
      while (!signal.aborted && this.needs.isHolder()) {
        const target = await directory.latest(environment, id);
        if (signal.aborted) break;
        const isWanted = target?.isEnabled === true;
        const due = await deliveries.due(environment, id, isWanted ? clock.now() : FOR_EVER, SLICE, begin);
        const { waiting, leftovers, kept } = await this.withoutLeftovers(environment, due);
        if (waiting.length === 0 && (leftovers === 0 || due.length < SLICE)) break;
        this.behind.add(id);
        if (isWanted) await this.sendAll(target, waiting, signal);
        else await this.dropAll(environment, waiting);
        begin = (kept[0] ?? due.at(-1))!.due;
      }
    } finally {
      this.behind.delete(id);
    }
    const next = await deliveries.nextDue(environment, id, begin);
    if (next === null) return;
    const now = clock.now();
    // An entry that is due and still there waits for its delivery.
    this.hint(id, { environment, due: next > now ? next : now + MISSING_PAUSE, from: next });
  }

  private async withoutLeftovers(
    environment: string,
    entries: readonly DueEntry[],
  ): Promise<{ readonly waiting: readonly StoredDelivery[]; readonly leftovers: number; readonly kept: readonly DueEntry[] }> {
    const lost = this.needs.clock.now() - MISSING_TIMEOUT_MS;
    const isLeftover = ({ delivery, due }: DueEntry): boolean => delivery === 'overtaken' || (delivery === 'early' && due < lost);
    const leftovers = entries.filter(isLeftover);
    await this.needs.deliveries.done(
      environment,
      leftovers.map(({ entryId }) => entryId),
    );
    return {
      waiting: entries.flatMap(({ delivery }) => (typeof delivery === 'string' ? [] : [delivery])),
      leftovers: leftovers.length,
      kept: entries.filter((entry) => entry.delivery === 'early' && !isLeftover(entry)),
    };
  }

  private async sendAll(target: Target, waiting: readonly StoredDelivery[], signal: AbortSignal): Promise<void> {
    const { environment } = target;
    const bodies = await this.bodiesOf(environment, waiting);
    const attempts = await Promise.allSettled(
      waiting.map(async (delivery, index) => {
        const sent = bodies[index]!;
        if (sent === null) return this.withoutBody(environment, delivery);
        // A process that was paused meanwhile may have lost its lease before it hears so.
        const requests = await this.pool.run(target.id, async () =>
          signal.aborted || !this.needs.isHolder() ? null : this.needs.attempts.send(target, { id: delivery.event_id, ...sent }),
        );
        if (requests !== null) await this.settle(environment, delivery, requests);
      }),
    );
    for (const attempt of attempts) if (attempt.status === 'rejected') throw attempt.reason;
  }

  private async dropAll(environment: string, waiting: readonly StoredDelivery[]): Promise<void> {
    const now = this.needs.clock.now();
    await this.add(
      environment,
      waiting.map((delivery) => dropped(delivery, now)),
    );
    await this.needs.deliveries.done(environment, waiting.map(entryIdOf));
  }

  private async bodiesOf(environment: string, waiting: readonly StoredDelivery[]): Promise<readonly (Omit<SentEvent, 'id'> | null)[]> {
    const texts = await this.needs.feed.texts(
      environment,
      waiting.map(({ event_id }) => event_id),
    );
    return waiting.map(({ sample }, index) => (sample == null ? texts[index]! : { body: sample, holders: [] }));
  }

  private async withoutBody(environment: string, delivery: StoredDelivery): Promise<void> {
    const now = this.needs.clock.now();
    const isYoung = now - Date.parse(delivery.created_at) < MISSING_TIMEOUT_MS;
    await this.add(environment, [isYoung ? postponed(delivery, now + MISSING_PAUSE, now) : dropped(delivery, now)]);
    await this.needs.deliveries.done(environment, [entryIdOf(delivery)]);
  }

  private lag(): number {
    const now = this.needs.clock.now();
    let lag = this.lagWhenLooked;
    for (const { due } of this.hints.values()) lag = Math.max(lag, now - due);
    return lag;
  }
}

/** One for each endpoint with something that waits. */
function notesOf(environment: string, deliveries: readonly StoredDelivery[]): readonly Note[] {
  const notes = new Map<string, Note>();
  for (const { webhook_endpoint_id: endpoint, next_attempt_at } of deliveries) {
    if (next_attempt_at === null) continue;
    const due = Date.parse(next_attempt_at);
    const known = notes.get(endpoint);
    notes.set(endpoint, { environment, endpoint, due: Math.min(due, known?.due ?? due), entries: 1 + (known?.entries ?? 0) });
  }
  return [...notes.values()];
}
