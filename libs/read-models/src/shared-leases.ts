import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import type { Log } from '#libs/platform/src/log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import type { Leases } from './leases.ts';
import type { ReadModels, Table } from './read-models.ts';

/** A replica that was silent for so long counts no more. */
const ANNOUNCED_FOR = 3_000;
/** What it has left behind is removed after so long, by whoever sees it. */
const FORGOTTEN_AFTER = 60_000;
/** Who has waited so long for those before asks in the next round. */
const LONGEST_TURN = 1_000;
/** More than there are replicas. */
const MANY = 1_000;
const COUNT_DIGITS = 16;

interface Needs {
  readonly leases: Leases;
  readonly readModels: ReadModels;
  /** Tells this process from its replicas. */
  readonly replica: string;
  readonly log: Log;
}

/** Another replica, as it was heard of last, by this process's own clock. */
interface Heard {
  readonly count: string;
  readonly at: number;
}

/**
 * Leases of one work in shards, which the replicas share out among themselves: each takes no more than its part, and gives back what is more than that once
 * another replica is there. Replicas tell of themselves by a number that grows; whether it does is all that anybody compares, since clocks differ.
 */
export class SharedLeases implements BackgroundComponent {
  readonly name: string;
  /** Before those who work under the leases, and until they have ended. */
  readonly stage = 'announcements';
  private readonly table: Table<never>;
  private readonly heard = new Map<string, Heard>();
  private readonly over = new Map<string, AbortController>();
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();
  /** One question after the other: each knows what became of the one before. */
  private asked: Promise<unknown> = Promise.resolve();
  private announcements = 0;
  /** How many replicas there are beside this one, as far as is known. */
  private others = 0;
  private isLeft = false;

  constructor(
    work: string,
    /** Of its leases, one for each shard. */
    private readonly names: readonly string[],
    private readonly needs: Needs,
  ) {
    this.name = `shares of ${work}`;
    this.table = needs.readModels.table<never>({ name: `${work}-replicas`, indexes: [], rebuildable: false, isMadeAnew: true });
  }

  /** Resolves when it is known who else is there: whoever takes everything first would have to give it back. */
  async start(): Promise<void> {
    await this.look();
    this.running = this.keepLooking();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
    // Others need not wait until it counts no more.
    await this.retire();
  }

  private async retire(): Promise<void> {
    await this.table.purge(SYSTEM_ENVIRONMENT, [this.needs.replica]).catch(() => {});
  }

  /** As `Leases.acquireOrRenew`, while this replica has less than its part; null where it has that already. */
  acquireOrRenew(name: string): Promise<number | null> {
    const { leases } = this.needs;
    const begun = performance.now();
    const token = this.asked.then(() => {
      // Their store does not answer, and each in turn would find that out.
      const isLate = performance.now() - begun > LONGEST_TURN;
      return isLate || this.held().length >= this.part() ? null : leases.acquireOrRenew(name);
    });
    this.asked = token;
    return token;
  }

  /** Aborts once this lease is to be given back, as soon as what is under way is done and on record. */
  untilOver(name: string): AbortSignal {
    const over = new AbortController();
    this.over.set(name, over);
    return over.signal;
  }

  /** This replica takes no part any more: the others do not count it, and what it holds it gives back. */
  async leave(): Promise<void> {
    this.isLeft = true;
    for (const name of this.held()) this.over.get(name)?.abort();
    await this.retire();
  }

  private part(): number {
    return this.isLeft ? 0 : Math.ceil(this.names.length / (1 + this.others));
  }

  /** Without asking: what a process has lost, it knows by its own clock. */
  private held(): readonly string[] {
    return this.names.filter((name) => this.needs.leases.isHeld(name));
  }

  private async keepLooking(): Promise<void> {
    const { signal } = this.stopping;
    for (;;) {
      await this.needs.leases.nextRenewal(signal);
      if (signal.aborted || this.isLeft) return;
      await this.look();
      for (const name of this.held().slice(this.part())) this.over.get(name)?.abort();
    }
  }

  /** While the table is away, everybody keeps what they have. */
  private async look(): Promise<void> {
    const { leases, replica, log } = this.needs;
    // Others would leave a part to it that it cannot take.
    if (leases.isCutOff) return;
    try {
      const count = String(++this.announcements).padStart(COUNT_DIGITS, '0');
      await this.table.write([{ environment: SYSTEM_ENVIRONMENT, id: replica, position: count, revision: 0, text: JSON.stringify({ count }) }]);
      const { rows } = await this.table.page(SYSTEM_ENVIRONMENT, { order: 'asc', limit: MANY });
      await this.learn(new Map(rows.filter(({ id }) => id !== replica).map(({ id, position }) => [id, position])));
    } catch (error) {
      log.debug('It cannot be told which replicas there are.', { work: this.name, error });
    }
  }

  private async learn(counts: ReadonlyMap<string, string>): Promise<void> {
    const now = performance.now();
    for (const id of this.heard.keys()) if (!counts.has(id)) this.heard.delete(id);
    for (const [id, count] of counts) if (this.heard.get(id)?.count !== count) this.heard.set(id, { count, at: now });
    this.others = [...this.heard.values()].filter(({ at }) => now - at < ANNOUNCED_FOR).length;
    const forgotten = [...this.heard].filter(([, { at }]) => now - at > FORGOTTEN_AFTER).map(([id]) => id);
    if (forgotten.length > 0) await this.table.purge(SYSTEM_ENVIRONMENT, forgotten);
  }
}
