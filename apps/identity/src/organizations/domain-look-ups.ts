import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { areFacts } from '#libs/event-sourcing/src/deciding/records';
import { Follower } from '#libs/event-sourcing/src/following/follower';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import type { Position, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { Signal } from '#libs/platform/src/signal';
import { systemContext } from '#libs/platform/src/system-context';
import { LeasedWork } from '#libs/read-models/src/leased-work';
import { Leases } from '#libs/read-models/src/leases';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { OrganizationEvent } from '../domain/organization.decider.ts';
import { allEnvironments, environmentsView, type StoredEnvironment } from '../views/environments.view.ts';
import { lookUpMinute, organizationsView } from '../views/organizations.view.ts';
import { DomainVerification, type DomainAddress } from './domain-verification.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** When a young domain is looked for, counted from the beginning of its window; after that, once an hour. */
const YOUNG = [0, 5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE] as const;
const YOUTH = YOUNG[YOUNG.length - 1]!;

/** Look-ups at one time: a server that lets each wait 3 s still leaves 60 a second to the others. */
const YOUNG_AT_ONCE = 192;
const OLD_AT_ONCE = 64;
const MINUTES_OF_AN_HOUR = 60;
/** In a flood of new domains, those beyond this are looked for within the hour. */
const MAX_YOUNG = 200_000;

/** Each begins a window of 30 days. */
type Beginning = FactOf<OrganizationEvent, 'organization_domain.created' | 'organization_domain.updated' | 'organization_domain.verification_restarted'>;

const BEGINNINGS = ['organization_domain.created', 'organization_domain.updated', 'organization_domain.verification_restarted'] as const;
const isBeginning = areFacts<Beginning>(...BEGINNINGS);

/** A pending domain whose window began at `start`. A later beginning makes another window, and ends this one. */
interface Window extends DomainAddress {
  readonly start: number;
}

/**
 * Looks for the TXT records of pending domains. What is due follows from the log and the rows alone: nothing about it is stored, and a restart
 * goes on where the old process was.
 */
@Injectable()
export class DomainLookUps {
  private readonly rows: Table<Organization>;
  private readonly environments: Table<StoredEnvironment>;
  private readonly outcomes;

  constructor(
    private readonly verification: DomainVerification,
    private readonly following: LogFollowing,
    private readonly clock: Clock,
    private readonly log: Log,
    readModels: ReadModels,
    metrics: Metrics,
  ) {
    this.rows = readModels.table(tableOf(organizationsView));
    this.environments = readModels.table(tableOf(environmentsView));
    this.outcomes = metrics.counter({ name: 'domain_look_ups_total', help: 'DNS look-ups of pending domains.', labels: ['outcome'] });
  }

  /** Looks for domains in the first minutes of their window, as the log tells of them. */
  async watchYoung(signal: AbortSignal): Promise<void> {
    const stopped = new AbortController();
    const both = AbortSignal.any([signal, stopped.signal]);
    const queues = new YoungQueues();
    const head = await this.following.reader.head();
    // Whatever fell due while nobody looked is looked for at once.
    for await (const window of this.recentWindows(head)) queues.add(window, window.start);
    const following = this.follow(head, queues, both).finally(() => stopped.abort());
    const lookingUp = this.lookUpDue(queues, both).finally(() => stopped.abort());
    await Promise.all([following, lookingUp]);
  }

  /** Looks for older domains, each in its minute of every hour. */
  async watchOld(signal: AbortSignal): Promise<void> {
    // Whoever did this before may have left its last minute unfinished.
    for (let minute = this.minuteNow() - 1; !signal.aborted;) {
      // Behind by more than an hour, as after a sleep: a minute of an earlier one is the same.
      minute = Math.max(minute, this.minuteNow() - MINUTES_OF_AN_HOUR + 1);
      if (minute > this.minuteNow()) await rest(SECOND, signal);
      else await this.lookUpMinute(minute++, signal);
    }
  }

  private async lookUpMinute(minute: number, signal: AbortSignal): Promise<void> {
    const limit = new ConcurrencyLimit(OLD_AT_ONCE);
    for await (const window of this.windowsOf(minute)) {
      if (signal.aborted) break;
      if (this.clock.now() - window.start > YOUTH) await limit.run(() => this.lookUp(window));
    }
    await limit.empty();
  }

  private async follow(head: Position, queues: YoungQueues, signal: AbortSignal): Promise<void> {
    const handle = (batch: readonly RecordedEvent[]): void => {
      for (const event of batch) if (isBeginning(event)) queues.add(windowOf(event), event.meta.at);
    };
    const follower = new Follower({ types: BEGINNINGS, handle }, this.following.reader);
    follower.begin(head);
    await follower.follow(signal);
  }

  private async lookUpDue(queues: YoungQueues, signal: AbortSignal): Promise<void> {
    const limit = new ConcurrencyLimit(YOUNG_AT_ONCE);
    while (!signal.aborted) {
      for (const window of queues.takeDue(this.clock.now())) {
        await limit.run(async () => {
          const asked = this.clock.now();
          if ((await this.lookUp(window)) === 'pending') queues.add(window, asked + 1);
        });
        if (signal.aborted) break;
      }
      await (queues.isEmpty ? queues.added.next(signal) : rest(100, signal));
    }
    await limit.empty();
  }

  /** Whatever goes wrong with one domain is told, and leaves the others alone: its next look-up comes. */
  private async lookUp(window: Window): Promise<'pending' | 'settled'> {
    try {
      const before = await this.verification.find(window);
      if (before?.state !== 'pending' || Date.parse(before.updated_at) !== window.start) return 'settled';
      const domain = await this.verification.lookUp(systemContext(window.environment, this.clock.now()), window);
      this.outcomes.inc({ outcome: domain?.state === 'verified' ? 'proven' : 'absent' });
      return domain?.state === 'pending' ? 'pending' : 'settled';
    } catch (error) {
      this.outcomes.inc({ outcome: 'error' });
      this.log.warn('A domain could not be looked for and will be again.', { environment: window.environment, domain: window.domain, error });
      return 'pending';
    }
  }

  /** Those of rows that changed after `head` are left to the log, which tells of them (or, where only something else changed, to the hour). */
  private async *recentWindows(head: Position): AsyncIterable<Window> {
    const oldest = this.clock.now() - YOUTH;
    for (let minute = Math.floor(oldest / MINUTE); minute <= this.minuteNow(); minute++)
      for await (const window of this.windowsOf(minute)) if (window.start >= oldest && window.position <= head) yield window;
  }

  /** The windows that began in this minute of whatever hour. */
  private async *windowsOf(minute: number): AsyncIterable<Window & { readonly position: Position }> {
    const where = { index: 'look_up_minute', values: [lookUpMinute(new Date(minute * MINUTE).toISOString())] };
    for (const { id: environment } of await allEnvironments(this.environments)) {
      for (let after: string | undefined, more = true; more;) {
        const page = await this.rows.page(environment, { where, order: 'asc', limit: 100, after });
        for (const row of page.rows) {
          const organization = contentOf(row);
          for (const { id, state, updated_at } of organization.domains)
            if (state === 'pending' && lookUpMinute(updated_at) === where.values[0])
              yield { environment, organization: organization.id, domain: id, start: Date.parse(updated_at), position: row.position };
        }
        after = page.rows.at(-1)?.id;
        more = page.hasAfter;
      }
    }
  }

  private minuteNow(): number {
    return Math.floor(this.clock.now() / MINUTE);
  }
}

/** One process of a cluster looks for young domains, another, or the same, for old ones. */
@Injectable()
export class YoungDomainLookUps extends LeasedWork {
  constructor(lookUps: DomainLookUps, leases: Leases, log: Log) {
    super('identity.young-domains', (signal) => lookUps.watchYoung(signal), { leases, log });
  }
}

@Injectable()
export class OldDomainLookUps extends LeasedWork {
  constructor(lookUps: DomainLookUps, leases: Leases, log: Log) {
    super('identity.old-domains', (signal) => lookUps.watchOld(signal), { leases, log });
  }
}

function windowOf({ meta, data }: Recorded<Beginning>): Window {
  return { environment: meta.environment, organization: meta.organization!, domain: data.id, start: meta.at };
}

/** One queue for each pause: within a queue all wait equally long, so the first that came is the first that is due. */
class YoungQueues {
  readonly added = new Signal();
  private readonly queues = YOUNG.map(() => new Set<Window>());

  get isEmpty(): boolean {
    return this.queues.every((queue) => queue.size === 0);
  }

  /** Queues the first of the window's look-ups that is due at `from` or later; none after the last. */
  add(window: Window, from: number): void {
    const next = YOUNG.findIndex((pause) => window.start + pause >= from);
    const waiting = this.queues.reduce((sum, queue) => sum + queue.size, 0);
    if (waiting < MAX_YOUNG) this.queues[next]?.add(window);
    this.added.notify();
  }

  *takeDue(now: number): Iterable<Window> {
    for (const [index, queue] of this.queues.entries())
      for (const window of queue) {
        if (window.start + YOUNG[index]! > now) break;
        queue.delete(window);
        yield window;
      }
  }
}

/** At most so many at one time. */
class ConcurrencyLimit {
  private readonly running = new Set<Promise<void>>();

  constructor(private readonly size: number) {}

  /** Resolves when the task has begun. The task must not fail. */
  async run(task: () => Promise<unknown>): Promise<void> {
    while (this.running.size >= this.size) await Promise.race(this.running);
    const running: Promise<void> = task().then(() => void this.running.delete(running));
    this.running.add(running);
  }

  async empty(): Promise<void> {
    await Promise.all(this.running);
  }
}

async function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  await pause(milliseconds, undefined, { signal }).catch(() => {});
}
