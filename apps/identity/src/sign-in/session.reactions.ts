import { Injectable } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { toFolded } from '#libs/event-sourcing/src/deciding/records';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { MembershipEvent } from '../domain/membership.decider.ts';
import { endOutdatedSession, endSessionOfInactive, sessionDecider, type StoredSession } from '../domain/session.decider.ts';
import type { UserEvent } from '../domain/user.decider.ts';
import { sessionsView } from '../views/sessions.view.ts';

type PasswordReset = FactOf<UserEvent, 'password_reset.succeeded'>;
type UserUpdated = FactOf<UserEvent, 'user.updated'>;
type MembershipUpdated = FactOf<MembershipEvent, 'organization_membership.updated'>;

/** Whoever is inactive in an organization is signed in to it no more: refused from the deactivation on, and told of by this. Who has signed in since they are active again stays. */
@Injectable()
export class EndSessionsOfInactiveMemberships implements Reaction<MembershipUpdated> {
  readonly name = 'end-sessions-of-inactive-memberships';
  readonly handles = ['organization_membership.updated'] as const;
  private readonly rows: Table<StoredSession>;

  constructor(
    private readonly cascade: Cascade,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(sessionsView));
  }

  async react(event: Recorded<MembershipUpdated>): Promise<void> {
    const { id, status } = event.data;
    if (status !== 'inactive') return;
    await this.cascade.each(event, this.rows, { index: 'membership', values: [id] }, ({ id: session }) =>
      this.cascade.decide(event, sessionDecider, session, endSessionOfInactive(session, toFolded(event))),
    );
  }
}

/** Whoever was signed in before the password was reset may be whom it was reset against. */
@Injectable()
export class EndSessionsBeforePasswordResets implements Reaction<PasswordReset> {
  readonly name = 'end-sessions-before-password-resets';
  readonly handles = ['password_reset.succeeded'] as const;
  private readonly rows: Table<StoredSession>;

  constructor(
    private readonly cascade: Cascade,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(sessionsView));
  }

  async react(event: Recorded<PasswordReset>): Promise<void> {
    const user = streamKeyOf(event.stream);
    await this.cascade.each(event, this.rows, { index: 'user', values: [user] }, ({ id }) =>
      this.cascade.decide(event, sessionDecider, id, endOutdatedSession(id, toFolded(event), 'password_reset')),
    );
  }
}

/** Whoever was signed in before the address was proven need not be whom it is of: refused from then on, and told of by this. */
@Injectable()
export class EndSessionsOfUnprovenAddresses implements Reaction<UserUpdated> {
  readonly name = 'end-sessions-of-unproven-addresses';
  readonly handles = ['user.updated'] as const;
  private readonly rows: Table<StoredSession>;

  constructor(
    private readonly cascade: Cascade,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(sessionsView));
  }

  async react(event: Recorded<UserUpdated>): Promise<void> {
    const { credentials_removed_by: by } = event.data;
    if (by === undefined) return;
    await this.cascade.each(event, this.rows, { index: 'user', values: [streamKeyOf(event.stream)] }, async ({ id }) => {
      if (id !== by) await this.cascade.decide(event, sessionDecider, id, endOutdatedSession(id, toFolded(event), 'credentials_removed'));
    });
  }
}
