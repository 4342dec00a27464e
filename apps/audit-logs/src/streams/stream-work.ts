import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { FairPool } from '#libs/messaging/src/webhooks/fair-pool';
import { Pace } from '#libs/messaging/src/webhooks/pace';
import { Clock } from '#libs/platform/src/clock';
import { aborted } from '#libs/platform/src/deadline';
import { isUnavailable, NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { Replicas } from '#libs/platform/src/replicas';
import { Signal } from '#libs/platform/src/signal';
import { hashOf } from '#libs/platform/src/text-hash';
import { LeasedWork } from '#libs/read-models/src/leased-work';
import { Leases } from '#libs/read-models/src/leases';
import { ReadModels } from '#libs/read-models/src/read-models';
import { SharedLeases } from '#libs/read-models/src/shared-leases';
import type { TrailOwner } from '../sealing/trail-keys.ts';
import { StreamDelivery, type OpenStream } from './stream-delivery.ts';
import { StreamDirectory } from './stream-directory.ts';

/** For ever: with others, two replicas of which one is older would both deliver a stream. */
const SHARDS = 6;
/** Streams that send at once; those that are slow, or fail, only take the places of each other. */
const LIMITS = { prompt: { total: 32, perKey: 1 }, slow: { total: 32, perKey: 1 } } as const;
/** A request that takes longer is waited for elsewhere, and the stream is slow until one is faster. */
const SLOW = 1_000;
/** What is waited for is looked at as often, since clocks are set. */
const LOOK = 1_000;
/** Before an engine that is away is asked again, */
const AWAY = 1_000;
/** and before what failed otherwise is tried again. */
const AGAIN = 10_000;

/** One that this process delivers. */
interface Lane {
  readonly open: OpenStream;
  readonly woken: Signal;
  readonly changed: Signal;
  /** Something was recorded since it was looked at. */
  hasNews: boolean;
  hasChanged: boolean;
  isSlow: boolean;
}

/** Delivers streams beside requests: each by one process at a time, whoever holds the lease of its shard; the replicas share these out. */
@Injectable()
export class StreamWork implements OnModuleInit {
  private readonly lanes = new Map<string, Lane>();
  private readonly pools = { prompt: new FairPool(LIMITS.prompt), slow: new FairPool(LIMITS.slow) };
  private readonly pace = new Pace();

  constructor(
    private readonly delivery: StreamDelivery,
    private readonly directory: StreamDirectory,
    private readonly leases: Leases,
    private readonly replicas: Replicas,
    private readonly readModels: ReadModels,
    private readonly lifecycle: Lifecycle,
    private readonly clock: Clock,
    private readonly log: Log,
    metrics: Metrics,
  ) {
    metrics.gauge({
      name: 'audit_streams',
      help: 'Streams of audit trails that this process delivers, by what they are: active, paused by hand (inactive), not taken by their receiver (error), or refused (invalid).',
      labels: ['state'],
      collect: (gauge) => {
        for (const state of ['active', 'inactive', 'error', 'invalid'] as const) gauge.set({ state }, this.count(state));
      },
    });
    metrics.gauge({
      name: 'audit_stream_stalled_seconds',
      help: 'Longest time for which a stream of an audit trail had something to send and sent nothing, although its receiver did not fail.',
      collect: (gauge) => gauge.set(this.stalled() / 1_000),
    });
  }

  onModuleInit(): void {
    const names = Array.from({ length: SHARDS }, (_, shard) => `audit.streams-${shard}`);
    const { leases, readModels, log } = this;
    const shares = new SharedLeases('audit-streams', names, { leases, readModels, replica: this.replicas.id, log });
    this.lifecycle.add(shares);
    for (const [shard, name] of names.entries())
      this.lifecycle.add(new LeasedWork(name, (signal) => this.work(shard, { name, signal, over: shares.untilOver(name) }), { leases, log, shares }));
  }

  private async work(
    shard: number,
    { name, signal, over }: { readonly name: string; readonly signal: AbortSignal; readonly over: AbortSignal },
  ): Promise<void> {
    const ended = new AbortController();
    const until = AbortSignal.any([signal, over, ended.signal]);
    // As many streams wait for it as the shard has; Node warns of a leak where there are more than ten.
    setMaxListeners(0, until);
    const running: Promise<void>[] = [];
    const tell = (owner: TrailOwner, isChanged: boolean): void => {
      const key = keyOf(owner);
      if (until.aborted || hashOf(key) % SHARDS !== shard) return;
      const lane = this.lanes.get(key);
      if (lane !== undefined) return wake(lane, isChanged, this.clock.now());
      running.push(this.run(owner, name, until).catch((error: unknown) => ended.abort(error)));
    };
    const leave = this.directory.listen(tell);
    try {
      for (const owner of this.directory.all()) tell(owner, false);
      await aborted(until);
    } finally {
      leave();
      // What is under way is answered and on record before another process goes on.
      await Promise.all(running);
    }
    if (ended.signal.aborted) throw ended.signal.reason;
  }

  /** @throws NeedsLaterRelease */
  private async run(owner: TrailOwner, lease: string, until: AbortSignal): Promise<void> {
    const key = keyOf(owner);
    const open: OpenStream = { owner, stored: null, sentAt: null, waitingSince: null, state: null };
    const lane: Lane = { open, woken: new Signal(), changed: new Signal(), hasNews: true, hasChanged: false, isSlow: false };
    this.lanes.set(key, lane);
    try {
      while (!until.aborted) {
        lane.hasNews = lane.hasChanged = false;
        const next = await this.deliver(lane, lease, until);
        if (next === 'when something is recorded') await this.news(lane, until);
        else if (next.in > 0) await rest(lane, next.in, until);
      }
    } finally {
      this.lanes.delete(key);
    }
  }

  private async deliver(lane: Lane, lease: string, until: AbortSignal): ReturnType<StreamDelivery['deliver']> {
    const { open } = lane;
    const isMine = async (): Promise<boolean> => {
      // By its own clock: a process that stood still learns that it is not the holder any more.
      await this.leases.held(lease, until);
      return !until.aborted;
    };
    const begun = performance.now();
    try {
      const { work, isSlow } = await this.pools[lane.isSlow ? 'slow' : 'prompt'].run(keyOf(open.owner), () =>
        begunWithin(SLOW, this.delivery.deliver(open, isMine)),
      );
      const next = await work;
      lane.isSlow = isSlow || open.state === 'error' || open.state === 'invalid';
      if (next !== 'when something is recorded') await this.pace.giveWay(Math.min(performance.now() - begun, SLOW));
      return next;
    } catch (error) {
      if (error instanceof NeedsLaterRelease) throw error;
      // What was stored is not known.
      open.stored = null;
      if (!isUnavailable(error)) this.log.error('The stream of an audit trail failed, and is tried again.', { ...open.owner, error });
      return { in: isUnavailable(error) ? AWAY : AGAIN };
    }
  }

  private async news(lane: Lane, until: AbortSignal): Promise<void> {
    while (!lane.hasNews && !until.aborted) await lane.woken.next(until);
  }

  private count(state: OpenStream['state']): number {
    return [...this.lanes.values()].filter(({ open }) => open.state === state).length;
  }

  private stalled(): number {
    const since = [...this.lanes.values()].flatMap(({ open: { waitingSince } }) => waitingSince ?? []);
    return since.length === 0 ? 0 : Math.max(0, this.clock.now() - Math.min(...since));
  }
}

/** Resolves when the work is done, or has taken so long (milliseconds) that others need not wait for it. */
async function begunWithin<Done>(milliseconds: number, work: Promise<Done>): Promise<{ readonly work: Promise<Done>; readonly isSlow: boolean }> {
  const over = new AbortController();
  const late = pause(milliseconds, true, { signal: over.signal, ref: false }).catch(() => true);
  const isSlow = await Promise.race([
    work.then(
      () => false,
      () => false,
    ),
    late,
  ]);
  over.abort();
  return { work, isSlow };
}

/** A change of the stream ends it early: it may have been resumed. */
async function rest({ changed, hasChanged }: Lane, milliseconds: number, until: AbortSignal): Promise<void> {
  if (hasChanged) return;
  const over = new AbortController();
  const signal = AbortSignal.any([until, over.signal]);
  await Promise.race([pause(Math.min(milliseconds, LOOK), undefined, { signal }).catch(() => {}), changed.next(signal)]);
  over.abort();
}

function wake(lane: Lane, isChanged: boolean, now: number): void {
  lane.hasNews = true;
  if (isChanged) {
    lane.hasChanged = true;
    lane.changed.notify();
  }
  if (lane.open.state === 'active') lane.open.waitingSince ??= now;
  lane.woken.notify();
}

function keyOf({ environment, organization }: TrailOwner): string {
  return `${environment} ${organization}`;
}
