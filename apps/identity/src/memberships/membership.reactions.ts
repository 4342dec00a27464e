import { Injectable } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { undoWhatMayNotHang } from '#libs/event-sourcing/src/deciding/guards/hanging';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { Positions } from '#libs/platform/src/positions';
import { MadeReaction, type Reaction } from '#libs/event-sourcing/src/following/reaction';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { contentOf, ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import type { AuthorizationModelEvent } from '#apps/authorization/src/domain/authorization-model.decider';
import type { OrganizationRolesEvent } from '#apps/authorization/src/domain/organization-roles.decider';
import { dropRole, membershipDecider, membershipKey, type MembershipEvent, type StoredMembership } from '../domain/membership.decider.ts';
import { MembershipReader } from '../readers/membership-reader.ts';
import { defaultRole, RoleDirectory } from '../readers/role-directory.ts';
import { membershipsView } from '../views/memberships.view.ts';
import { GrantedRoles } from './granted-roles.ts';

type RoleDeleted = FactOf<AuthorizationModelEvent, 'role.deleted'> | FactOf<OrganizationRolesEvent, 'organization_role.deleted'>;
type RolesGiven = FactOf<MembershipEvent, 'organization_membership.created' | 'organization_membership.updated'>;

/** Replaces a deleted role in every membership, including memberships that received it concurrently. */
@Injectable()
export class ReplaceDeletedRoles implements Reaction<RoleDeleted | RolesGiven> {
  readonly name = 'replace-deleted-roles';
  readonly handles = ['role.deleted', 'organization_role.deleted', 'organization_membership.created', 'organization_membership.updated'] as const;
  private readonly rows: Table<StoredMembership>;

  constructor(
    private readonly cascade: Cascade,
    private readonly memberships: MembershipReader,
    private readonly roles: RoleDirectory,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(membershipsView));
  }

  async react(event: Recorded<RoleDeleted | RolesGiven>): Promise<void> {
    if (event.type === 'organization_membership.created' || event.type === 'organization_membership.updated') return this.replaceDeletedOf(event);
    const { id } = event.data;
    await this.cascade.each(event, membershipsView, { index: 'role', values: [id] }, (row) => this.drop(event, row, id));
  }

  private async replaceDeletedOf(event: Recorded<RolesGiven>): Promise<void> {
    const { environment, organization } = event.meta;
    const { id, roles: given = [] } = event.data;
    if (given.every((role) => role.id === defaultRole(environment).id)) return;
    await this.cascade.reached(event);
    const known = await this.roles.inOrganization(environment, organization!);
    for (const role of given.filter((each) => known.isDeleted(each))) {
      const row = await this.rows.get(environment, id);
      if (row !== null) await this.drop(event, row, role.id);
    }
  }

  private async drop(event: Recorded<RoleDeleted | RolesGiven>, row: StoredRow<StoredMembership>, roleId: string): Promise<void> {
    const { environment } = event.meta;
    const membership = contentOf(row);
    // What is to be deleted itself needs no other role.
    if (!(await this.memberships.hasParents(environment, membership))) return;
    const key = membershipKey(membership.organization_id, membership.user_id);
    await this.cascade.decide(event, membershipDecider, key, dropRole(membership.id, roleId, defaultRole(environment)));
  }
}

/** Stands in for whoever gave a role that was being deleted, and died before taking it back. */
@Injectable()
export class TakeBackRolesThatMayNotBeGiven extends MadeReaction {
  constructor(given: GrantedRoles, events: EventStore, readModels: ReadModels, positions: Positions, clock: Clock) {
    super(undoWhatMayNotHang('undo-roles-that-may-not-be-given', ['organization_role'], [given.hanging()], { events, readModels, positions, clock }));
  }
}
