import { Module, type OnModuleInit } from '@nestjs/common';
import { undoWhatMayNotHang } from '#libs/event-sourcing/src/deciding/guards/hanging';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Forwarders } from '#libs/event-sourcing/src/following/forwarder';
import { Reactions } from '#libs/event-sourcing/src/following/reaction';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Log } from '#libs/platform/src/log';
import { Positions } from '#libs/platform/src/positions';
import { LeasedWork, type Work } from '#libs/read-models/src/leased-work';
import { Leases } from '#libs/read-models/src/leases';
import { ReadModels } from '#libs/read-models/src/read-models';
import type { Service } from '#libs/runtime/src/service';
import { Dependents } from './dependents.ts';
import { Environments } from './environments/environments.ts';
import { environmentsView } from './environments/environments.view.ts';
import { deleteGroupsWithTheirOrganization, removeDeletedMembers } from './groups/group.reactions.ts';
import { Groups } from './groups/groups.ts';
import { groupMembersView, groupsView } from './groups/groups.view.ts';
import { identityDeletionsView } from './identity-deletions.view.ts';
import { GivenRoles } from './memberships/given-roles.ts';
import { deleteMembershipsWithTheirEnds, replaceDeletedRoles } from './memberships/membership.reactions.ts';
import { Memberships } from './memberships/memberships.ts';
import { membershipsView } from './memberships/memberships.view.ts';
import { RoleDirectory } from './memberships/role-directory.ts';
import { roleDirectoryView } from './memberships/role-directory.view.ts';
import { ShownMemberships } from './memberships/shown-memberships.ts';
import { deleteDomainsWhenOrganizationDeleted } from './organizations/delete-domains.reaction.ts';
import { DnsDomainVerifier } from './organizations/dns.domain-verifier.ts';
import { DomainLookUps } from './organizations/domain-look-ups.ts';
import { DomainVerification } from './organizations/domain-verification.ts';
import { DomainVerifier } from './organizations/domain-verifier.ts';
import { OrganizationDomains } from './organizations/organization-domains.ts';
import { Organizations } from './organizations/organizations.ts';
import { organizationsView } from './organizations/organizations.view.ts';
import { PasswordKey } from './users/password-key.ts';
import { PasswordWork } from './users/password-work.ts';
import { Passwords } from './users/passwords.ts';
import { usersOfOrganizationsView } from './users/users-of-organizations.view.ts';
import { Users } from './users/users.ts';
import { usersView } from './users/users.view.ts';

export const identity: Service = {
  owner: 'identity',
  views: [
    environmentsView,
    organizationsView,
    usersView,
    usersOfOrganizationsView,
    membershipsView,
    roleDirectoryView,
    groupsView,
    groupMembersView,
    identityDeletionsView,
  ],
};

/** Needs from the runtime: the ports and settings that its classes name. */
@Module({
  providers: [
    Environments,
    Organizations,
    OrganizationDomains,
    Users,
    Passwords,
    PasswordKey,
    PasswordWork,
    Memberships,
    ShownMemberships,
    RoleDirectory,
    GivenRoles,
    Groups,
    Dependents,
    DomainVerification,
    DomainLookUps,
    { provide: DomainVerifier, useClass: DnsDomainVerifier },
  ],
})
export class IdentityModule implements OnModuleInit {
  constructor(
    private readonly lookUps: DomainLookUps,
    private readonly reactions: Reactions,
    private readonly forwarders: Forwarders,
    private readonly repository: Repository,
    private readonly dependents: Dependents,
    private readonly shown: ShownMemberships,
    private readonly roles: RoleDirectory,
    private readonly given: GivenRoles,
    private readonly events: EventStore,
    private readonly positions: Positions,
    private readonly readModels: ReadModels,
    private readonly lifecycle: Lifecycle,
    private readonly leases: Leases,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  onModuleInit(): void {
    this.forwarders.add({ service: 'identity', categories: ['organization', 'user', 'organization_membership', 'group'] });
    this.reactions.add(deleteDomainsWhenOrganizationDeleted(this.repository, this.clock));
    const { dependents, shown, roles, readModels } = this;
    for (const reaction of [deleteMembershipsWithTheirEnds, replaceDeletedRoles]) this.reactions.add(reaction({ dependents, shown, roles, readModels }));
    const { events, positions, clock, given } = this;
    const needs = { events, readModels, positions, clock };
    this.reactions.add(undoWhatMayNotHang('undo-roles-that-may-not-be-given', ['organization_role'], [given.hanging()], needs));
    for (const reaction of [deleteGroupsWithTheirOrganization, removeDeletedMembers])
      this.reactions.add(reaction({ dependents, memberships: shown, readModels }));
    this.work('identity.young-domains', (signal) => this.lookUps.watchYoung(signal));
    this.work('identity.old-domains', (signal) => this.lookUps.watchOld(signal));
  }

  private work(name: string, work: Work): void {
    const { leases, log } = this;
    this.lifecycle.add(new LeasedWork(name, work, { leases, log }));
  }
}
