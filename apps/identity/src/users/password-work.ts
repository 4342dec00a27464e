import { availableParallelism } from 'node:os';
import { Injectable } from '@nestjs/common';
import { Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { Metrics } from '#libs/platform/src/metrics';

/** Of the four threads that Node keeps for slow work, one is left to files and names. */
const AT_ONCE = Math.min(3, availableParallelism());
/** At a quarter of a second each, who comes after these would be answered after nobody waits any more. */
const MAX_WAITING = 32;

/** Lets a few passwords be hashed at a time, and refuses when too many wait. */
@Injectable()
export class PasswordWork {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly refused;

  constructor(
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    metrics.gauge({ name: 'passwords_waiting', help: 'Passwords that wait to be hashed.', collect: (gauge) => gauge.set(this.waiting.length) });
    this.refused = metrics.counter({ name: 'passwords_refused_total', help: 'Requests that were refused because too many passwords waited.' });
  }

  /** `work` is to leave this thread at once. @throws DomainError `service_unavailable` where too many wait, or past the deadline */
  async run<Result>(deadline: number, work: () => Promise<Result>): Promise<Result> {
    await this.turn();
    try {
      if (this.clock.now() > deadline) throw this.tooMany();
      return await work();
    } finally {
      // Whoever waits takes the place over.
      const next = this.waiting.shift();
      if (next === undefined) this.running--;
      else next();
    }
  }

  private async turn(): Promise<void> {
    if (this.running < AT_ONCE) {
      this.running++;
      return;
    }
    if (this.waiting.length >= MAX_WAITING) throw this.tooMany();
    await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  private tooMany(): Error {
    this.refused.inc();
    return unavailable('Too many passwords are being hashed at the moment.');
  }
}
