import { availableParallelism } from 'node:os';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { Metrics } from '#libs/platform/src/metrics';
import { HashingThreads } from './hashing-threads.ts';

/** Imported hashes take threads that Node keeps for slow work: of those four, one is left to files, names and signatures. */
const AT_ONCE = Math.min(3, availableParallelism());
/** At a quarter of a second each, who comes after these would be answered after nobody waits any more. */
const MAX_WAITING = 32;

/** A large one takes about a second. */
const MAX_LARGE_WAITING = 8;

/** Places for so many at once; whoever finds none waits in line. */
class Line {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly places: number,
    private readonly maxWaiting: number,
  ) {}

  get length(): number {
    return this.waiting.length;
  }

  /** Resolves when a place is free; false at once where too many wait. */
  async enter(): Promise<boolean> {
    if (this.running < this.places) {
      this.running++;
      return true;
    }
    if (this.waiting.length >= this.maxWaiting) return false;
    await new Promise<void>((resolve) => this.waiting.push(resolve));
    return true;
  }

  /** Whoever waits takes the place over. */
  leave(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.running--;
    else next();
  }
}

/**
 * Lets a few passwords be hashed at a time, and refuses when too many wait. What is large waits in a line of its own, so that it takes one of the places at most,
 * and the memory of one.
 */
@Injectable()
export class PasswordWork implements OnModuleDestroy {
  private readonly all = new Line(AT_ONCE, MAX_WAITING);
  private readonly large = new Line(1, MAX_LARGE_WAITING);
  private readonly threads = new HashingThreads();
  private readonly refused;

  constructor(
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    metrics.gauge({ name: 'passwords_waiting', help: 'Passwords that wait to be hashed.', collect: (gauge) => gauge.set(this.all.length + this.large.length) });
    this.refused = metrics.counter({ name: 'passwords_refused_total', help: 'Requests that were refused because too many passwords waited.' });
  }

  /** `salt`: the cost of a new hash, or the beginning of the hash to compare with. @throws DomainError as `run` */
  bcrypt(deadline: number, text: string, salt: number | string): Promise<string> {
    return this.run(deadline, () => this.threads.hash(text, salt));
  }

  /** `work` is to leave this thread at once. @throws DomainError `service_unavailable` where too many wait, or past the deadline */
  run<Result>(deadline: number, work: () => Result | Promise<Result>, { isLarge = false } = {}): Promise<Result> {
    const inLine = (): Promise<Result> => this.inLine(this.all, deadline, work);
    return isLarge ? this.inLine(this.large, deadline, inLine) : inLine();
  }

  async onModuleDestroy(): Promise<void> {
    await this.threads.end();
  }

  private async inLine<Result>(line: Line, deadline: number, work: () => Result | Promise<Result>): Promise<Result> {
    if (!(await line.enter())) throw this.tooMany();
    try {
      if (this.clock.now() > deadline) throw this.tooMany();
      return await work();
    } finally {
      line.leave();
    }
  }

  private tooMany(): Error {
    this.refused.inc();
    return unavailable('Too many passwords are being hashed at the moment.');
  }
}
