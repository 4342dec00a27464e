import { Signal } from '#libs/platform/src/signal';
import { within } from '#libs/platform/src/deadline';
import { unavailable } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import type { ShortLived } from './short-lived.ts';

/** How long after the death of a holder others may take over. */
const TTL = 3_000;
/** A holder has three tries to keep what it holds. */
const RENEWAL = TTL / 3;

/** The leases of this process: what it does for the whole cluster while it holds them. */
export class Leases {
  /** Until when each is ours for certain; 0: it is not. */
  private readonly heldUntil = new Map<string, number>();
  private readonly tokens = new Map<string, number>();
  /** Under which token each was given back last: that may be carried out after this process has taken it again, under a greater one. */
  private readonly givenBack = new Map<string, number>();
  /** The last question had no answer: this process can hold nothing. */
  isCutOff = false;
  private readonly renewals = new Signal();
  private readonly answers = new Signal();
  private renewing: NodeJS.Timeout | null = null;

  constructor(
    private readonly store: ShortLived,
    /** Tells this process from its replicas. */
    private readonly holder: string,
    private readonly log: Log,
    metrics: Metrics,
  ) {
    metrics.gauge({
      name: 'lease_held',
      help: '1 where this process holds the lease of a work. No holder in the whole cluster: nobody does that work.',
      labels: ['work'],
      collect: (gauge) => {
        for (const work of this.heldUntil.keys()) gauge.set({ work }, this.isHeld(work) ? 1 : 0);
      },
    });
  }

  /**
   * Takes a lease, or keeps it; answers its token, which is greater than `after`: what was sent under that one and is carried out late is fenced by what is stored under the new one.
   * A lease that cannot be asked for is a lease that is not held: null.
   */
  async acquireOrRenew(name: string, after = 0): Promise<number | null> {
    // Counted from before the question, as its answer may be old when it comes.
    const until = performance.now() + TTL;
    try {
      const asked = this.store.lease(name, this.holder, TTL, Math.max(after, this.givenBack.get(name) ?? 0));
      const lease = await within(asked, TTL, () => unavailable('The store of leases does not answer.'));
      this.isCutOff = false;
      this.heldUntil.set(name, lease === null ? 0 : until);
      if (lease !== null) this.tokens.set(name, lease.token);
      this.answers.notify();
      return lease?.token ?? null;
    } catch (error) {
      this.isCutOff = true;
      this.log.warn('A lease cannot be asked for.', { work: name, error });
      this.heldUntil.set(name, 0);
      return null;
    }
  }

  /**
   * Resolves when it is time to ask again, for a lease that is held as for one that is not; or when the signal aborts. Everything of this process asks at the same moment, so
   * that the store has one question to answer.
   */
  nextRenewal(signal: AbortSignal): Promise<void> {
    if (!signal.aborted) this.renewing ??= setTimeout(() => this.beginRenewal(), RENEWAL).unref();
    return this.renewals.next(signal);
  }

  /**
   * Whether the lease is ours as far as can be told without asking: a process that was paused past its lease knows it at once. `token`: and has been since it was taken under
   * that one, so that nobody else had it meanwhile.
   */
  isHeld(name: string, token?: number): boolean {
    return (this.heldUntil.get(name) ?? 0) > performance.now() && (token === undefined || this.tokens.get(name) === token);
  }

  /**
   * For work that is begun now, under the lease as it is: throws from where that is not ours for certain, or was another's meanwhile.
   * @throws DomainError `service_unavailable`
   */
  holding(name: string): () => void {
    const token = this.tokens.get(name) ?? 0;
    return () => {
      if (!this.isHeld(name, token)) throw unavailable('Another process may do this since.');
    };
  }

  /**
   * Resolves once the lease is ours for certain, or the signal aborts. A process that was paused for longer than a lease lasts, and finds that nobody took it meanwhile, goes on
   * under the same token: its work is not aborted for that.
   */
  async held(name: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.isHeld(name)) await this.answers.next(signal);
  }

  async release(name: string): Promise<void> {
    if (!this.isHeld(name)) return;
    this.heldUntil.set(name, 0);
    const token = this.tokens.get(name)!;
    this.givenBack.set(name, token);
    // Where it cannot be given back, it ends by itself.
    await this.store.release(name, this.holder, token).catch(() => {});
  }

  /** Takes part in this work no longer: that this process does not hold its lease says nothing. */
  async forget(name: string): Promise<void> {
    await this.release(name);
    this.heldUntil.delete(name);
  }

  private beginRenewal(): void {
    this.renewing = null;
    this.renewals.notify();
  }
}
