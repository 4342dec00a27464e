import type { Clock } from '#libs/platform/src/clock';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import { atTime, contentOf, LAST, type ReadModels, type Table, type Write } from './read-models.ts';

/** A time that is kept of owners, and that is neither a fact nor expiring: when a key was last used. */
export interface Stamp {
  /** Names it for ever, after the field that shows it: `api_key.last_used_at`. */
  readonly name: string;
}

/** How often it is looked what is to be stored: twice within the second in which a first use has to be. */
const ROUND_MS = 500;
/** What was stored of an owner is not stored again for so long. */
const REST_MS = 10_000;
/** Stamps that are written at once, so that nobody else waits long. */
const BULK = 500;
/** Owners whose uses one process knows at a time: some 200 bytes each. */
const MOST_OWNERS = 200_000;

interface Needs {
  readonly readModels: ReadModels;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Absent: `MOST_OWNERS`. */
  readonly mostOwners?: number;
}

/** An owner that was used of late. */
interface Use {
  readonly environment: string;
  readonly owner: string;
  /** Milliseconds since the epoch: the last use, and the one that is stored or being stored; 0 for none. */
  at: number;
  stored: number;
}

/** Uses that were stored at one time. */
interface Resting {
  readonly since: number;
  readonly uses: readonly Use[];
}

/**
 * Stamps: the newest time of each owner. Uses are gathered in memory and stored within a second at first, then at most every 10 s for each owner, many at once. What a
 * process knows when it is killed is lost; one that is stopped stores it. Answers show what is stored, so they never go back, whichever process is asked.
 */
export class Stamps implements BackgroundComponent {
  readonly name = 'stamps';
  /** Stopped after everybody who records any. */
  readonly stage = 'views';
  private readonly table: Table<string>;
  private readonly books = new Map<string, Book>();
  private timer: NodeJS.Timeout | null = null;
  private isStopped = false;
  private storing: Promise<void> = Promise.resolve();
  private failures = 0;
  private readonly written;
  private readonly lost;

  constructor(private readonly needs: Needs) {
    // One for all of them: what may be done to a collection of MongoDB is said by its name.
    this.table = needs.readModels.table({ name: 'stamps', indexes: [], guard: 'time', rebuildable: false });
    this.written = needs.metrics.counter({ name: 'stamps_written_total', help: 'Times of last use that were stored.', labels: ['stamp'] });
    this.lost = needs.metrics.counter({
      name: 'stamps_lost_total',
      help: 'Times of last use that were not stored: more owners were used than a process remembers, or it was stopped while the database was away.',
      labels: ['stamp'],
    });
  }

  /** Of an owner that was used of late it costs a look at what is in memory. Never fails, and nobody waits for anything. */
  record(stamp: Stamp, environment: string, owner: string, at = this.needs.clock.now()): void {
    const book = this.books.get(stamp.name) ?? this.bookOf(stamp);
    const use = book.uses.get(environment)?.get(owner);
    if (use !== undefined) {
      if (at > use.at) use.at = at;
    } else if (!this.isStopped && book.begin({ environment, owner, at, stored: 0 })) this.timer ??= this.nextRound();
    else this.lost.inc({ stamp: stamp.name });
  }

  /** The times of owners (ISO 8601), in their order; null for one that was never used, or has ended. */
  async latest(stamp: Stamp, environment: string, owners: readonly string[]): Promise<readonly (string | null)[]> {
    const rows = await this.table.getMany(
      environment,
      owners.map((owner) => idOf(stamp.name, owner)),
    );
    return rows.map((row) => (row === null ? null : contentOf(row)));
  }

  /** Their stamps go, and no later one takes their place. */
  async end(stamp: Stamp, environment: string, owners: readonly string[]): Promise<void> {
    await this.table.write(owners.map((owner): Write => ({ environment, id: idOf(stamp.name, owner), position: LAST, revision: 0, text: null })));
  }

  async start(): Promise<void> {}

  /** Stores what is in memory. */
  async stop(): Promise<void> {
    this.isStopped = true;
    if (this.timer !== null) clearTimeout(this.timer);
    await this.storing;
    for (const [stamp, book] of this.books) {
      book.hasten();
      await this.store(stamp, book);
      this.lost.inc({ stamp }, book.forget());
    }
  }

  /** One round: stores whatever is due. */
  round(): Promise<void> {
    return (this.storing = this.storing.then(async () => {
      for (const [stamp, book] of this.books) await this.store(stamp, book);
    }));
  }

  private nextRound(): NodeJS.Timeout {
    return setTimeout(() => {
      void this.round().then(() => {
        const isWanted = !this.isStopped && [...this.books.values()].some(({ size }) => size > 0);
        this.timer = isWanted ? this.nextRound() : null;
      });
    }, this.pause()).unref();
  }

  /** Longer from failure to failure, up to the time that an owner rests. */
  private pause(): number {
    return Math.min(ROUND_MS * 2 ** this.failures, REST_MS);
  }

  private async store(stamp: string, book: Book): Promise<void> {
    try {
      const hasStored = await book.store(this.needs.clock, (count) => this.written.inc({ stamp }, count));
      if (hasStored) this.failures = 0;
    } catch (error) {
      if (this.failures++ === 0) this.needs.log.warn('Times of last use cannot be stored for now; they are tried again.', { stamp, error });
    }
  }

  private bookOf({ name }: Stamp): Book {
    const known = this.books.get(name);
    if (known !== undefined) return known;
    const book = new Book(name, this.table, this.needs.mostOwners ?? MOST_OWNERS);
    // A rise from nothing at all would not be seen as one.
    this.lost.inc({ stamp: name }, 0);
    this.books.set(name, book);
    return book;
  }
}

/** The uses of one stamp that this process knows: each is either waiting to be stored, or resting since it was. */
class Book {
  /** By environment and owner. */
  readonly uses = new Map<string, Map<string, Use>>();
  size = 0;
  private waiting: Use[] = [];
  /** The oldest first. */
  private resting: Resting[] = [];

  constructor(
    private readonly stamp: string,
    private readonly table: Table<string>,
    private readonly mostOwners: number,
  ) {}

  /** False where there is no room, since nothing can be stored. */
  begin(use: Use): boolean {
    while (this.size >= this.mostOwners && this.resting.length > 0) this.wake(this.resting.shift()!.uses);
    if (this.size >= this.mostOwners) return false;
    const owners = this.uses.get(use.environment);
    if (owners === undefined) this.uses.set(use.environment, new Map([[use.owner, use]]));
    else owners.set(use.owner, use);
    this.size++;
    this.waiting.push(use);
    return true;
  }

  /** Stores those who wait, and tells how many as it does; answers whether there were any. What cannot be written waits on. */
  async store(clock: Clock, told: (count: number) => void): Promise<boolean> {
    const now = clock.now();
    // A clock that was set back begins anew.
    while (this.resting.length > 0 && Math.abs(now - this.resting[0]!.since) >= REST_MS) this.wake(this.resting.shift()!.uses);
    const waiting = this.waiting;
    this.waiting = [];
    let written = 0;
    try {
      for (; written < waiting.length; written += BULK) {
        const uses = waiting.slice(written, written + BULK);
        const times = uses.map(({ at }) => at);
        await this.table.write(uses.map((use) => this.writeOf(use)));
        for (const [index, use] of uses.entries()) use.stored = times[index]!;
        // Whoever sees the stored time may use it anew before this process hears that it is stored: they rest from when it was taken.
        this.resting.push({ since: now, uses });
        told(uses.length);
      }
    } catch (error) {
      this.waiting = [...waiting.slice(written), ...this.waiting];
      throw error;
    }
    return waiting.length > 0;
  }

  /** Nobody rests. */
  hasten(): void {
    for (const { uses } of this.resting.splice(0)) this.wake(uses);
  }

  /** Answers how many were never stored. */
  forget(): number {
    const { length } = this.waiting;
    this.waiting = [];
    this.resting = [];
    this.uses.clear();
    this.size = 0;
    return length;
  }

  /** Those that were used since they were stored wait again, the others are forgotten. */
  private wake(uses: readonly Use[]): void {
    for (const use of uses) {
      if (use.at > use.stored) this.waiting.push(use);
      else {
        const owners = this.uses.get(use.environment)!;
        owners.delete(use.owner);
        if (owners.size === 0) this.uses.delete(use.environment);
        this.size--;
      }
    }
  }

  private writeOf({ environment, owner, at }: Use): Write {
    const time = new Date(at).toISOString();
    return { environment, id: idOf(this.stamp, owner), position: atTime(at), revision: 0, text: `"${time}"`, row: time };
  }
}

function idOf(stamp: string, owner: string): string {
  return `${owner} ${stamp}`;
}
