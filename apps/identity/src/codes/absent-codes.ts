import { Injectable } from '@nestjs/common';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { Clock } from '#libs/platform/src/clock';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { ShortLivedValues } from '#libs/read-models/src/short-lived-values';
import { TRIES, TRIES_REMEMBERED } from './one-time-codes.ts';

/**
 * Tries of codes that nobody was sent. They count, and are answered, as those of a code are: or whoever tries one more than may be learns where an account is, also where
 * nobody may sign up and an application tells nobody whether a code was sent.
 */
@Injectable()
export class AbsentCodes {
  private readonly tries: ShortLivedValues<number>;

  constructor(
    store: ShortLived,
    private readonly naming: Naming,
    private readonly clock: Clock,
  ) {
    this.tries = new ShortLivedValues(store, 'absent_code_tries');
  }

  /** False where as many were tried as may be of a code. */
  async mayTry(context: RequestContext, kind: string, mailbox: string): Promise<boolean> {
    const key = this.keyOf(context, kind, mailbox);
    for (;;) {
      const { stored, entry } = await this.tries.putIfAbsent(key, 1, this.clock.now() + TRIES_REMEMBERED);
      if (stored) return true;
      if (entry.value >= TRIES) return false;
      if (await this.tries.replace(key, entry, entry.value + 1)) return true;
    }
  }

  /** A code is asked for, and none is sent: it is tried anew, as another one would be. */
  async ask(context: RequestContext, kind: string, mailbox: string): Promise<void> {
    await this.tries.take(this.keyOf(context, kind, mailbox));
  }

  /** The store knows nobody's address. */
  private keyOf({ environment }: RequestContext, kind: string, mailbox: string): string {
    return `${environment} ${this.naming.keyOf('absent code', kind, mailbox)}`;
  }
}
