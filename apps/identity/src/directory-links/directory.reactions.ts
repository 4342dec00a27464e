import { Injectable } from '@nestjs/common';
import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import type { DirectoryUserEvent } from '#apps/directory-sync/src/domain/directory-user.decider';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { leaseOf, type Reaction } from '#libs/event-sourcing/src/following/reaction';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { allDone } from '#libs/platform/src/all-done';
import { Leases } from '#libs/read-models/src/leases';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { InvitationEvent } from '../domain/invitation.decider.ts';
import type { MembershipEvent } from '../domain/membership.decider.ts';
import type { OrganizationEvent } from '../domain/organization.decider.ts';
import type { UserEvent } from '../domain/user.decider.ts';
import { directoryLinksView, peopleOfDirectoriesView, type PersonOfDirectory } from '../views/directory-links.view.ts';
import type { StoredDirectoryLink } from '../domain/directory-link.decider.ts';
import { DirectoryFollowing, type Cause } from './directory-following.ts';

const AT_ONCE = 64;

type Handled =
  | FactOf<DirectoryUserEvent, 'dsync.user.created' | 'dsync.user.updated' | 'dsync.user.deleted'>
  | FactOf<OrganizationEvent, 'organization_domain.verified'>
  | FactOf<MembershipEvent, 'organization_membership.created' | 'organization_membership.updated' | 'organization_membership.deleted'>
  | FactOf<UserEvent, 'user.updated' | 'user.deleted'>
  | FactOf<InvitationEvent, 'invitation.accepted'>;

/** Users and memberships follow the people of directories, and what else their links depend on. */
@Injectable()
export class FollowPeopleOfDirectories implements Reaction<Handled> {
  readonly name = 'follow-people-of-directories';
  readonly atOnce = AT_ONCE;
  readonly handles = [
    ...(['dsync.user.created', 'dsync.user.updated', 'dsync.user.deleted', 'organization_domain.verified'] as const),
    ...(['organization_membership.created', 'organization_membership.updated', 'organization_membership.deleted'] as const),
    ...(['user.updated', 'user.deleted', 'invitation.accepted'] as const),
  ];

  constructor(
    private readonly following: DirectoryFollowing,
    private readonly cascade: Cascade,
  ) {}

  async react(event: Recorded<Handled>): Promise<void> {
    switch (event.type) {
      case 'dsync.user.created':
      case 'dsync.user.updated':
      case 'dsync.user.deleted':
        return this.following.follow(event.meta.environment, event.data.id, causeOf(event), event.data.directory_id);
      case 'organization_domain.verified':
        return this.linked(event, 'unverified', event.meta.organization!);
      case 'organization_membership.created':
        return this.managed(event);
      case 'organization_membership.updated': {
        const { id, status, managed_by } = event.data;
        if (status !== undefined || managed_by !== undefined) await this.linked(event, 'membership', id);
        return this.managed(event);
      }
      case 'organization_membership.deleted':
        return this.linked(event, 'membership', event.data.id);
      case 'user.updated':
        return event.data.email === undefined ? undefined : this.linked(event, 'user', streamKeyOf(event.stream));
      case 'user.deleted':
        return this.linked(event, 'user', event.data.id);
      case 'invitation.accepted':
        return this.linked(event, 'invitation', event.data.id);
    }
  }

  /** Of whom no link names yet. */
  private async managed({
    id,
    data,
    meta,
  }: Recorded<FactOf<MembershipEvent, 'organization_membership.created' | 'organization_membership.updated'>>): Promise<void> {
    if (data.managed_by != null) await this.following.followManager(meta.environment, data.managed_by, causeOf({ id, meta }));
  }

  private linked(event: Recorded<Handled>, index: 'unverified' | 'membership' | 'user' | 'invitation', value: string): Promise<void> {
    const { environment } = event.meta;
    return this.cascade.each(event, directoryLinksView, { index, values: [value] }, ({ id }) => this.following.follow(environment, id, causeOf(event)));
  }
}

type PolicyFact = FactOf<DirectoryEvent, 'directory.updated' | 'dsync.deleted'>;

/** How far somebody went through the people of a directory. */
interface Walk {
  readonly after: string;
}

/** A policy that is switched on counts for all who are in the directory, and its end for all who are linked: they are gone through in the order of their ids, from where that was broken off. */
@Injectable()
export class FollowPoliciesOfDirectories implements Reaction<PolicyFact> {
  readonly name = 'follow-policies-of-directories';
  readonly handles = ['directory.updated', 'dsync.deleted'] as const;
  private readonly people: Table<PersonOfDirectory>;
  private readonly links: Table<StoredDirectoryLink>;
  private readonly walks: Table<Walk>;

  constructor(
    private readonly following: DirectoryFollowing,
    private readonly cascade: Cascade,
    private readonly leases: Leases,
    readModels: ReadModels,
  ) {
    this.people = readModels.table(tableOf(peopleOfDirectoriesView));
    this.links = readModels.table(tableOf(directoryLinksView));
    this.walks = readModels.table<Walk>({ name: 'walks-through-directories', indexes: [], rebuildable: false });
  }

  async react(event: Recorded<PolicyFact>): Promise<void> {
    if (event.type === 'directory.updated' && event.data.policy === undefined) return;
    await this.cascade.reached(event);
    // Of a directory that is gone, people are being taken away, and whoever is linked is met by the link.
    await (event.type === 'directory.updated' ? this.through(event, this.people) : this.through(event, this.links));
  }

  private async through<Row>(event: Recorded<PolicyFact>, table: Table<Row>): Promise<void> {
    const { id, position, data, meta } = event;
    const { environment } = meta;
    const held = this.leases.holding(leaseOf(this));
    const begun = await this.walks.get(environment, id);
    const where = { index: 'directory', values: [data.id] };
    for (let after = begun === null ? undefined : contentOf(begun).after, more = true; more;) {
      const page = await table.page(environment, { where, order: 'asc', limit: AT_ONCE, after });
      await allDone(page.rows.map((row) => this.following.follow(environment, row.id, causeOf(event))));
      after = page.rows.at(-1)?.id;
      more = page.hasAfter && after !== undefined;
      held();
      if (after !== undefined) await this.walks.write([{ environment, id, position, revision: 0, text: JSON.stringify({ after } satisfies Walk) }]);
    }
    await this.walks.purge(environment, [id]);
  }
}

function causeOf({ id, meta }: Pick<Recorded, 'id' | 'meta'>): Cause {
  return { id, at: meta.at };
}
