import { Injectable } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { toFolded } from '#libs/event-sourcing/src/deciding/records';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { MadeReaction, type Reaction } from '#libs/event-sourcing/src/following/reaction';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import type { MembershipEvent } from '../domain/membership.decider.ts';
import { endOutdatedSession, endSessionOfInactive, sessionDecider } from '../domain/session.decider.ts';
import type { UserEvent } from '../domain/user.decider.ts';
import { endWithUnprovenAddress } from '../codes/unproven-addresses.ts';
import { sessionsView } from '../views/sessions.view.ts';

type PasswordReset = FactOf<UserEvent, 'password_reset.succeeded'>;
type MembershipUpdated = FactOf<MembershipEvent, 'organization_membership.updated'>;

/**
 * Whoever is inactive in an organization is signed in to it no more: refused from the deactivation on, and told of by this. Who has signed in since they are active again
 * stays.
 */
@Injectable()
export class EndSessionsOfInactiveMemberships implements Reaction<MembershipUpdated> {
  readonly name = 'end-sessions-of-inactive-memberships';
  readonly handles = ['organization_membership.updated'] as const;

  constructor(private readonly cascade: Cascade) {}

  async react(event: Recorded<MembershipUpdated>): Promise<void> {
    if (event.data.status !== 'inactive') return;
    await this.cascade.each(event, sessionsView, { index: 'membership', values: [event.data.id] }, ({ id }) =>
      this.cascade.decide(event, sessionDecider, id, endSessionOfInactive(id, toFolded(event))),
    );
  }
}

/** Whoever was signed in before the password was reset may be whom it was reset against. */
@Injectable()
export class EndSessionsBeforePasswordResets implements Reaction<PasswordReset> {
  readonly name = 'end-sessions-before-password-resets';
  readonly handles = ['password_reset.succeeded'] as const;

  constructor(private readonly cascade: Cascade) {}

  async react(event: Recorded<PasswordReset>): Promise<void> {
    await this.cascade.each(event, sessionsView, { index: 'user', values: [streamKeyOf(event.stream)] }, ({ id }) =>
      this.cascade.decide(event, sessionDecider, id, endOutdatedSession(id, toFolded(event), 'password_reset')),
    );
  }
}

/** Sessions of before the first proof of an address, but for the one that it was proven with. */
@Injectable()
export class EndSessionsOfUnprovenAddresses extends MadeReaction {
  constructor(cascade: Cascade) {
    super(
      endWithUnprovenAddress(cascade, {
        name: 'end-sessions-of-unproven-addresses',
        view: sessionsView,
        end: (id, fact) => endOutdatedSession(id, fact, 'credentials_removed'),
      }),
    );
  }
}
