import type { Clock } from '#libs/platform/src/clock';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import type { SweptData } from '#libs/platform/src/retention';
import type { ShortLived } from './short-lived.ts';

/** Removes at most `limit` things that are out of date at `now`; answers how many it removed. Fewer than `limit` means that nothing is left. */
export type Sweep = (now: number, limit: number) => Promise<number>;

/** Small, so that a sweep never stands long before requests. */
const BATCH = 500;

interface Needs {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly leases: ShortLived;
  readonly intervalMs: number;
  /** Tells this process from its replicas. */
  readonly holder: string;
}

/** Runs the sweepers, each in one process of a cluster at a time. */
export class Sweepers implements BackgroundComponent {
  readonly name = 'sweepers';
  readonly stage = 'work';
  private readonly sweeps = new Map<SweptData, Sweep>();
  private readonly stopping = new AbortController();
  private round: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private readonly swept;

  constructor(private readonly needs: Needs) {
    this.swept = needs.metrics.counter({ name: 'swept_total', help: 'What retention removed.', labels: ['data'] });
  }

  add(data: SweptData, sweep: Sweep): void {
    this.sweeps.set(data, sweep);
  }

  async start(): Promise<void> {
    const nextRound = (): void => {
      this.round = this.round.then(() => this.sweepAll());
    };
    this.timer = setInterval(nextRound, this.needs.intervalMs).unref();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    clearInterval(this.timer);
    await this.round;
  }

  /** One round: every sweeper until nothing is left. A sweeper that fails is logged and tried again in the next round. */
  async sweepAll(): Promise<void> {
    for (const [data, sweep] of this.sweeps) {
      try {
        await this.sweepOne(data, sweep);
      } catch (error) {
        this.needs.log.error('A sweeper failed and will try again.', { data, error });
      }
    }
  }

  private async sweepOne(data: SweptData, sweep: Sweep): Promise<void> {
    const { leases, holder, intervalMs, clock } = this.needs;
    if ((await leases.lease(`sweeper.${data}`, holder, 2 * intervalMs)) === null) return;
    for (let removed = BATCH; removed === BATCH && !this.stopping.signal.aborted;) {
      removed = await sweep(clock.now(), BATCH);
      this.swept.inc({ data }, removed);
    }
  }
}
