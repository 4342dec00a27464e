import { Injectable } from '@nestjs/common';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { ApplicationLinks } from '../codes/application-links.ts';
import { InvitationTokens } from '../codes/invitation-tokens.ts';
import { invitationDecider, stateAt, type InvitationEvent } from '../domain/invitation.decider.ts';
import type { StoredUser } from '../domain/user.decider.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { usersView } from '../views/users.view.ts';
import type { Addressed } from './mail-templates.ts';

export type InvitationSent = Extract<InvitationEvent, { readonly type: 'invitation.created' | 'invitation.resent' }>;

const DAY = 24 * 60 * 60_000;

/** What is written to whoever is invited. */
@Injectable()
export class InvitationLetters {
  private readonly organizations: Table<Organization>;
  private readonly users: Table<StoredUser>;

  constructor(
    private readonly repository: Repository,
    private readonly tokens: InvitationTokens,
    private readonly links: ApplicationLinks,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.organizations = readModels.table(tableOf(organizationsView));
    this.users = readModels.table(tableOf(usersView));
  }

  /** Null where nobody waits for it: the invitation has ended, was sent again since, or its organization is gone. */
  async of({ type, data, meta: { environment } }: Recorded<InvitationSent>): Promise<Addressed | null> {
    const invitation = await this.repository.load(invitationDecider, environment, data.id);
    const round = type === 'invitation.created' ? 0 : data.round;
    const now = this.clock.now();
    if (invitation?.email == null || invitation.round !== round || stateAt(invitation, new Date(now).toISOString()) !== 'pending') return null;
    const [organization, inviter, user] = await Promise.all([
      this.contentOf(this.organizations, environment, invitation.organization_id),
      this.contentOf(this.users, environment, invitation.inviter_user_id),
      this.contentOf(this.users, environment, invitation.user_id),
    ]);
    if (organization === null && invitation.organization_id !== null) return null;
    return {
      to: invitation.email,
      secret: { link: this.links.invitation(await this.tokens.of({ environment }, invitation)) },
      time: Math.max(1, Math.round((Date.parse(invitation.expires_at) - now) / DAY)),
      locale: invitation.locale ?? user?.locale ?? null,
      invited: { organization: organization?.name ?? null, inviter: inviter === null ? null : nameOf(inviter) },
    };
  }

  private async contentOf<Row>(table: Table<Row>, environment: string, id: string | null): Promise<Row | null> {
    const row = id === null ? null : await table.get(environment, id);
    return row === null ? null : contentOf(row);
  }
}

function nameOf({ name, first_name, last_name }: StoredUser): string | null {
  return name ?? ([first_name, last_name].filter((part) => part !== null).join(' ') || null);
}
