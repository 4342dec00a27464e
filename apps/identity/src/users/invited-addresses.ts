import { Injectable } from '@nestjs/common';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { ownHolder, type StoredInvitation } from '../domain/invitation.decider.ts';
import { foldedEmail, type StoredUser } from '../domain/user.decider.ts';
import { invitationsView } from '../views/invitations.view.ts';
import { usersView } from '../views/users.view.ts';

const PAGE = 100;

/** Invitations to whoever was no user then: the address of each lies under a key of its own. */
@Injectable()
export class InvitedAddresses {
  private readonly invitations: Table<StoredInvitation>;
  private readonly users: Table<StoredUser>;

  constructor(
    private readonly views: ReadYourWrites,
    readModels: ReadModels,
  ) {
    this.invitations = readModels.table(tableOf(invitationsView));
    this.users = readModels.table(tableOf(usersView));
  }

  /**
   * The holders of what was written to any of the addresses that this user ever had, and that nobody else has now, by the rows as they stand at the end of the log: what is not
   * named when a user is erased is found by nobody later.
   * @throws DomainError `service_unavailable` past the deadline
   */
  async holdersOf({ environment, deadline }: RequestContext, userId: string, addresses: readonly string[]): Promise<readonly string[]> {
    const holders: string[] = [];
    if (addresses.length > 0) await Promise.all([this.invitations, this.users].map(({ definition }) => this.views.waitForHead(deadline, definition.name)));
    for (const address of new Set(addresses.map(foldedEmail))) {
      const { rows: users } = await this.users.page(environment, { where: { index: 'email', values: [address] }, order: 'asc', limit: 2 });
      if (users.some(({ id }) => id !== userId)) continue;
      for (let after: string | undefined, more = true; more;) {
        const page = await this.invitations.page(environment, { where: { index: 'email', values: [address] }, order: 'asc', limit: PAGE, after });
        for (const { id, user_id } of page.rows.map(contentOf)) if (user_id === null) holders.push(ownHolder(id));
        after = page.rows.at(-1)?.id;
        more = page.hasAfter;
      }
    }
    return holders;
  }
}
