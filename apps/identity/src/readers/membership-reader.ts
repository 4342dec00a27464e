import { Injectable } from '@nestjs/common';
import type { FullOrganizationMembership } from '#libs/contracts/src/organization-memberships/organization-membership';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { notFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import type { StoredMembership } from '../domain/membership.decider.ts';
import { type StoredUser } from '../domain/user.decider.ts';
import { membershipsView } from '../views/memberships.view.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { usersView } from '../views/users.view.ts';
import { RoleDirectory } from './role-directory.ts';
import { ShownUsers } from './shown-users.ts';

/** Memberships together with what they hang on: the organization, the user and the roles, each as it is now. */
@Injectable()
export class MembershipReader {
  private readonly rows: Table<StoredMembership>;
  private readonly organizations: Table<Organization>;
  private readonly users: Table<StoredUser>;

  constructor(
    private readonly roles: RoleDirectory,
    private readonly shown: ShownUsers,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(membershipsView));
    this.organizations = readModels.table(tableOf(organizationsView));
    this.users = readModels.table(tableOf(usersView));
  }

  /** @throws DomainError `entity_not_found`, also where its user or its organization was deleted and its own deletion is still to be recorded */
  async require(context: RequestContext, id: string): Promise<StoredMembership> {
    const membership = contentOf(await this.rows.require(context, id));
    const parents = [this.organizations.find(context, membership.organization_id), this.users.find(context, membership.user_id)];
    if ((await Promise.all(parents)).includes(null)) throw notFound('Organization membership', id);
    return membership;
  }

  /** @throws DomainError as `require` */
  async withId(context: RequestContext, id: string): Promise<FullOrganizationMembership> {
    const [membership] = await this.withIds(context.environment, [id]);
    return membership ?? this.full(context, await this.require(context, id));
  }

  /** @throws DomainError as `require` */
  async full({ environment }: RequestContext, stored: StoredMembership): Promise<FullOrganizationMembership> {
    const [membership] = await this.of(environment, [stored]);
    if (membership == null) throw notFound('Organization membership', stored.id);
    return membership;
  }

  /** Of several ids, in their order: null for what is not there, or hangs under something deleted. */
  async withIds(environment: string, ids: readonly string[]): Promise<readonly (FullOrganizationMembership | null)[]> {
    return this.ofRows(environment, await this.rows.getMany(environment, ids));
  }

  /** As `withIds`, of rows that are at hand. */
  async ofRows(environment: string, rows: readonly (StoredRow<StoredMembership> | null)[]): Promise<readonly (FullOrganizationMembership | null)[]> {
    return this.of(
      environment,
      rows.map((row) => (row === null ? null : contentOf(row))),
    );
  }

  /** Whether the organization and the user live, as the rows are: for reactions, which have waited for them. */
  async hasParents(environment: string, { organization_id, user_id }: Pick<StoredMembership, 'organization_id' | 'user_id'>): Promise<boolean> {
    return (await this.hasOrganization(environment, organization_id)) && (await this.users.get(environment, user_id)) !== null;
  }

  async hasOrganization(environment: string, id: string): Promise<boolean> {
    return (await this.organizations.get(environment, id)) !== null;
  }

  /** Complete memberships: an answer that shows less picks it by its class. */
  private async of(environment: string, memberships: readonly (StoredMembership | null)[]): Promise<readonly (FullOrganizationMembership | null)[]> {
    const present = memberships.filter((membership) => membership !== null);
    const organizationIds = [...new Set(present.map(({ organization_id }) => organization_id))];
    const [organizations, users, roles] = await Promise.all([
      contentsOf(this.organizations, environment, organizationIds),
      contentsOf(this.users, environment, [...new Set(present.map(({ user_id }) => user_id))]),
      this.roles.inOrganizations(environment, organizationIds),
    ]);
    const shown = new Map((await this.shown.all(environment, [...users.values()])).map((user) => [user.id, user]));
    return memberships.map((membership) => {
      const organization = organizations.get(membership?.organization_id ?? '');
      const user = shown.get(membership?.user_id ?? '');
      if (membership === null || organization === undefined || user === undefined) return null;
      const held = roles
        .get(organization.id)!
        .effectiveRoles({ manual: membership.roles, mapped: membership.mapped_roles })
        .map(({ slug }) => ({ slug }));
      return { ...membership, organization_name: organization.name, role: held[0]!, roles: held, user };
    });
  }
}

/** What rows say, by their ids, without those that are not there. */
async function contentsOf<Row>(table: Table<Row>, environment: string, ids: readonly string[]): Promise<ReadonlyMap<string, Row>> {
  const rows = await table.getMany(environment, ids);
  return new Map(rows.flatMap((row) => (row === null ? [] : [[row.id, contentOf(row)]])));
}
