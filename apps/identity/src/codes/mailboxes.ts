import { Injectable } from '@nestjs/common';
import { passOver, Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { DomainError } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { createUser, foldedEmail, isSameMailbox, requireUser, userDecider, type StoredUser } from '../domain/user.decider.ts';
import { usersView } from '../views/users.view.ts';

/** Two could have an address in spellings that were told apart once. */
const MOST_OF_AN_ADDRESS = 10;

/** Who reads the mail of an address. An address that only looks like theirs is somebody else's: what is sent there reaches somebody else. */
@Injectable()
export class Mailboxes {
  private readonly users: Table<StoredUser>;

  constructor(
    private readonly repository: Repository,
    readModels: ReadModels,
  ) {
    this.users = readModels.table(tableOf(usersView));
  }

  /** Null where nobody here reads it. @throws DomainError `service_unavailable` past the deadline */
  async userOf(context: RequestContext, email: string): Promise<StoredUser | null> {
    return (await this.lookUp(context, email)).user;
  }

  /**
   * As `userOf`, and where nobody reads it, a user is created. Takes one place among the aggregates that the command asks.
   * @throws DomainError `sign_up_not_allowed` where somebody has an address that looks like it, or nobody may sign up (`maySignUp`)
   */
  async userOfOrNew(context: RequestContext, email: string, maySignUp: boolean): Promise<StoredUser> {
    const id = `user_${derivedId(context.commandId, 0)}`;
    const known = await this.lookUp(context, email);
    if (known.user !== null && known.user.id !== id) {
      passOver(context);
      return known.user;
    }
    if (known.isTaken && known.user === null) throw signUpRefused('Another user has an address that looks like this one.');
    if (!maySignUp) throw signUpRefused('Nobody has this address, and nobody may sign up.');
    try {
      const { state } = await this.repository.transact(userDecider, context, id, createUser({ email }, null));
      return requireUser(state, id);
    } catch (error) {
      if (!(error instanceof DomainError && error.code === 'email_not_available')) throw error;
      // Somebody who asked at the same time was faster.
      const winner = await this.userOf(context, email);
      if (winner === null) throw signUpRefused('Another user has an address that looks like this one.');
      return winner;
    }
  }

  /** `isTaken`: nobody else can have the address. */
  private async lookUp(context: RequestContext, email: string): Promise<{ readonly user: StoredUser | null; readonly isTaken: boolean }> {
    const where = { index: 'email', values: [foldedEmail(email)] };
    const known = () => this.users.page(context.environment, { where, order: 'asc', limit: MOST_OF_AN_ADDRESS });
    let { rows } = await known();
    if (rows.length === 0) {
      // Whoever has the address may have been written a moment ago.
      if ((await this.users.findBy(context, where)) === null) return { user: null, isTaken: false };
      ({ rows } = await known());
    }
    const user = rows.map(contentOf).find((each) => each.email !== null && isSameMailbox(each.email, email)) ?? null;
    return { user, isTaken: true };
  }
}

function signUpRefused(message: string): DomainError {
  return new DomainError('forbidden', 'sign_up_not_allowed', message);
}
