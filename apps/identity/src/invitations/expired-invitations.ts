import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { Log } from '#libs/platform/src/log';
import { systemContext } from '#libs/platform/src/system-context';
import { LeasedWork } from '#libs/read-models/src/leased-work';
import { Leases } from '#libs/read-models/src/leases';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { expireInvitation, invitationDecider } from '../domain/invitation.decider.ts';
import { allEnvironments, environmentsView, type StoredEnvironment } from '../views/environments.view.ts';
import { openInvitationsView, type OpenInvitation } from '../views/invitations.view.ts';

const PAGE = 100;
const ROUND = 15_000;

/** Records that the time of an invitation is over, so that what hangs on it ends; whoever looks at it knows before. */
@Injectable()
export class InvitationExpiry {
  private readonly open: Table<OpenInvitation>;
  private readonly environments: Table<StoredEnvironment>;

  constructor(
    private readonly repository: Repository,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.open = readModels.table(tableOf(openInvitationsView));
    this.environments = readModels.table(tableOf(environmentsView));
  }

  /** All that is due. */
  async record(signal: AbortSignal): Promise<void> {
    const to = new Date(this.clock.now()).toISOString();
    for (const { id: environment } of await allEnvironments(this.environments)) {
      for (let after: string | undefined, more = true; more && !signal.aborted;) {
        const page = await this.open.page(environment, { order: 'asc', limit: PAGE, after, to });
        for (const { id } of page.rows.map(contentOf))
          await this.repository.transact(invitationDecider, systemContext(environment, this.clock.now()), id, expireInvitation(id));
        after = page.rows.at(-1)?.id;
        more = page.hasAfter && page.rows.length > 0;
      }
    }
  }

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.record(signal);
      await pause(ROUND, undefined, { signal }).catch(() => {});
    }
  }
}

/** One process of a cluster does it. */
@Injectable()
export class ExpiredInvitations extends LeasedWork {
  constructor(expiry: InvitationExpiry, leases: Leases, log: Log) {
    super('identity.expired-invitations', (signal) => expiry.watch(signal), { leases, log });
  }
}
