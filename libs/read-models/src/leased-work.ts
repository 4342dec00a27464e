import { isUnavailable, NeedsLaterRelease } from '#libs/platform/src/domain-error';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import type { Log } from '#libs/platform/src/log';
import type { Leases } from './leases.ts';
import { Fenced } from './read-models.ts';
import type { SharedLeases } from './shared-leases.ts';

/** The same failure is told again after so long. */
const REPEATED = 60_000;

interface Needs {
  readonly leases: Leases;
  readonly log: Log;
  /** Where not everybody who can get the lease takes it. */
  readonly shares?: Pick<SharedLeases, 'acquireOrRenew' | 'leave'> | undefined;
}

/**
 * Does its work until `signal` aborts. It may be aborted anywhere and begin again elsewhere, and two may overlap for a moment: `token` fences what the one
 * who was first still wants to store.
 */
export type Work = (signal: AbortSignal, token: number) => Promise<void>;

/** Work that one process of a cluster does at a time: whoever holds the lease. */
export class LeasedWork implements BackgroundComponent {
  readonly stage = 'work';
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();
  /** It came to what only a later release can do: asking for the lease again would keep a process of that release from it. */
  private isLeft = false;
  private told = { sentence: '', at: 0 };

  constructor(
    readonly name: string,
    private readonly work: Work,
    private readonly needs: Needs,
  ) {}

  async start(): Promise<void> {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted && !this.isLeft) {
      const token = await (this.needs.shares ?? this.needs.leases).acquireOrRenew(this.name);
      if (token !== null && !signal.aborted) await this.workUnder(token);
      await this.needs.leases.nextRenewal(signal);
    }
    await this.needs.leases.release(this.name);
  }

  private async workUnder(token: number): Promise<void> {
    const { leases, log } = this.needs;
    const lost = new AbortController();
    const over = new AbortController();
    let renewed = Promise.resolve();
    const renew = async (): Promise<void> => {
      if ((await leases.acquireOrRenew(this.name)) !== token) lost.abort();
    };
    const renewing = this.eachRound(over.signal, () => (renewed = renew()));
    try {
      await this.work(AbortSignal.any([this.stopping.signal, lost.signal]), token);
    } catch (error) {
      if (error instanceof Fenced) log.warn('Another does this work since; what was not stored is left to it.', { work: this.name });
      else if (error instanceof NeedsLaterRelease) this.leave(error);
      else this.tell(error);
    } finally {
      over.abort();
      await renewing;
      // Else it would take back what is given up now.
      await renewed;
      // Another may have more luck.
      await leases.release(this.name);
    }
  }

  private leave(reason: NeedsLaterRelease): void {
    this.isLeft = true;
    void this.needs.shares?.leave();
    this.needs.log.warn('Work in the background is left to processes of a later release.', { work: this.name, error: reason });
  }

  /** Does not wait for what it begins: an answer that does not come must not cost the next try. */
  private async eachRound(signal: AbortSignal, begin: () => unknown): Promise<void> {
    for (;;) {
      await this.needs.leases.nextRenewal(signal);
      if (signal.aborted) return;
      begin();
    }
  }

  /** While an engine is away, the same is true every second. */
  private tell(error: unknown): void {
    const now = performance.now();
    const sentence = String(error);
    if (sentence === this.told.sentence && now - this.told.at < REPEATED) return;
    this.told = { sentence, at: now };
    const { log } = this.needs;
    if (isUnavailable(error)) log.warn('Work in the background waits for what is away.', { work: this.name, reason: sentence });
    else log.error('Work in the background failed and will begin again.', { work: this.name, error });
  }
}
