import { Injectable } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { toFolded } from '#libs/event-sourcing/src/deciding/records';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { authenticationFactorDecider, deleteRemovedFactor, type StoredFactor } from '../domain/authentication-factor.decider.ts';
import type { UserEvent } from '../domain/user.decider.ts';
import { authenticationFactorsView } from '../views/authentication-factors.view.ts';

type UserUpdated = FactOf<UserEvent, 'user.updated'>;

/** Whoever enrolled a factor before the address was proven need not be whom it is of: it counts no more from then on, and ends by this. */
@Injectable()
export class DeleteFactorsOfUnprovenAddresses implements Reaction<UserUpdated> {
  readonly name = 'delete-authentication-factors-of-unproven-addresses';
  readonly handles = ['user.updated'] as const;
  private readonly rows: Table<StoredFactor>;

  constructor(
    private readonly cascade: Cascade,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(authenticationFactorsView));
  }

  async react(event: Recorded<UserUpdated>): Promise<void> {
    if (event.data.credentials_removed_by === undefined) return;
    await this.cascade.each(event, this.rows, { index: 'user', values: [streamKeyOf(event.stream)] }, ({ id }) =>
      this.cascade.decide(event, authenticationFactorDecider, id, deleteRemovedFactor(id, toFolded(event))),
    );
  }
}
