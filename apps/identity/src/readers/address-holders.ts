import { Injectable } from '@nestjs/common';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { purposeOf, type Holder } from '#libs/event-sourcing/src/sealing/holders';
import { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { Clock } from '#libs/platform/src/clock';
import { foldedEmail } from '../domain/user.decider.ts';

/** Nothing lies under such a holder that is older. */
const FIRST = { year: 2026, month: 10 };

/**
 * Whose an address is that no user has: a holder for each address and month. They are found again from the address alone, however much lies under them, when the user is
 * erased who has it then; and what is erased in one month keeps nobody from being told of in the next. Nobody's address is known by them.
 */
@Injectable()
export class AddressHolders {
  constructor(
    private readonly naming: Naming,
    private readonly keys: KeyStore,
    private readonly clock: Clock,
  ) {}

  /** What is recorded now of an address lies under it. */
  current(email: string): Holder {
    return this.of(email, new Date(this.clock.now()).toISOString().slice(0, 7));
  }

  /** Under which something lies of these addresses, and those under which it would now. */
  async all(environment: string, emails: readonly string[]): Promise<readonly Holder[]> {
    const folded = [...new Set(emails.map(foldedEmail))];
    const current = folded.map((email) => this.current(email));
    const holders = [...new Set([...current, ...folded.flatMap((email) => this.months().map((month) => this.of(email, month)))])];
    const found = await this.keys.findMany(holders.map((holder) => purposeOf(holder, environment)));
    return holders.filter((holder) => current.includes(holder) || found.has(purposeOf(holder, environment)));
  }

  /** Up to this one. */
  private months(): readonly string[] {
    const now = new Date(this.clock.now());
    const count = (now.getUTCFullYear() - FIRST.year) * 12 + now.getUTCMonth() - FIRST.month + 1;
    return Array.from({ length: Math.max(0, count) }, (_, index) => new Date(Date.UTC(FIRST.year, FIRST.month + index, 1)).toISOString().slice(0, 7));
  }

  private of(email: string, month: string): Holder {
    return `address.${this.naming.keyOf('address', foldedEmail(email))}.${month}`;
  }
}
