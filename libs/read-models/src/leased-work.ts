import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '#libs/platform/src/log';
import type { Part } from '#libs/platform/src/runtime/lifecycle';
import type { ShortLived } from './short-lived.ts';

const TTL = 3_000;
const RENEWAL = TTL / 3;
/** Between two tries to get the lease, and before work that failed begins again. */
const RETRY = 1_000;

interface Needs {
  readonly leases: ShortLived;
  readonly log: Log;
  /** Tells this process from its replicas. */
  readonly holder: string;
}

/** Does its work until `signal` aborts. It may be aborted anywhere and begin again elsewhere, and two may overlap for a moment. */
export type Work = (signal: AbortSignal) => Promise<void>;

/** Work that one process of a cluster does at a time: whoever holds the lease. */
export class LeasedWork implements Part {
  readonly stage = 'work';
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();

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
    while (!signal.aborted) {
      if (await this.hasLease()) await this.workWhileHeld();
      await pause(RETRY, undefined, { signal }).catch(() => {});
    }
  }

  private async workWhileHeld(): Promise<void> {
    const lost = new AbortController();
    const renewal = setInterval(() => void this.hasLease().then((held) => held || lost.abort()), RENEWAL);
    try {
      await this.work(AbortSignal.any([this.stopping.signal, lost.signal]));
    } catch (error) {
      this.needs.log.error('Work in the background failed and will begin again.', { work: this.name, error });
    } finally {
      clearInterval(renewal);
      await this.needs.leases.release(this.name, this.needs.holder).catch(() => {});
    }
  }

  /** A lease that cannot be asked for is a lease that is not held. */
  private async hasLease(): Promise<boolean> {
    try {
      return (await this.needs.leases.lease(this.name, this.needs.holder, TTL)) !== null;
    } catch (error) {
      this.needs.log.warn('A lease cannot be asked for.', { work: this.name, error });
      return false;
    }
  }
}
