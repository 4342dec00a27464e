import { Module, type OnModuleInit } from '@nestjs/common';
import { ROLE_DIRECTORY } from '#libs/contracts/src/roles/role-directory';
import { reopenWhatWasLeftClosed, undoWhatMayNotHang } from '#libs/event-sourcing/src/deciding/guards/hanging';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Forwarders } from '#libs/event-sourcing/src/following/forwarder';
import { Reactions } from '#libs/event-sourcing/src/following/reaction';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Positions } from '#libs/platform/src/positions';
import { ReadModels } from '#libs/read-models/src/read-models';
import type { Service } from '#libs/runtime/src/service';
import { AccessIndex } from './access/access-index.ts';
import { AssignmentGuard } from './assignments/assignment-guard.ts';
import { AssignmentLists } from './assignments/assignment-lists.ts';
import { deleteAssignmentsOfWhatIsGone } from './assignments/delete-assignments.reaction.ts';
import { GroupRoleAssignments } from './assignments/group-role-assignments.ts';
import { RoleAssignments } from './assignments/role-assignments.ts';
import { AccessChecks } from './checks/access-checks.ts';
import { CLOSED, hangings } from './guards/hangings.ts';
import { Reopening } from './guards/reopening.ts';
import { OrganizationRoles } from './model/organization-roles.ts';
import { Permissions } from './model/permissions.ts';
import { ResourceTypes } from './model/resource-types.ts';
import { deleteRolesWhenOrganizationDeleted, dropPermissionWhenDeleted, tellOfChangedRoles } from './model/roles.reactions.ts';
import { Roles } from './model/roles.ts';
import { seedModelWhenEnvironmentCreated } from './model/seeds.reaction.ts';
import { TypeUses } from './model/type-uses.ts';
import { AuthorizationModels } from './repositories/authorization-models.ts';
import { ParentRows } from './repositories/parent-rows.ts';
import { ResourceRows } from './repositories/resource-rows.ts';
import { ResourceTrees } from './repositories/resource-trees.ts';
import { deleteResourcesUnderDeleted, deleteResourcesWhenOrganizationDeleted } from './resources/delete-resources.reaction.ts';
import { Resources } from './resources/resources.ts';
import { endedUsersView, groupMembersView, groupsView, membershipsView } from './views/access.views.ts';
import { authorizationDeletionsView } from './views/authorization-deletions.view.ts';
import { authorizationModelsView } from './views/authorization-models.view.ts';
import { groupRoleAssignmentsView } from './views/group-role-assignments.view.ts';
import { organizationRolesView } from './views/organization-roles.view.ts';
import { resourcesView } from './views/resources.view.ts';
import { roleAssignmentsView } from './views/role-assignments.view.ts';

export const authorization: Service = {
  owner: 'authorization',
  views: [
    authorizationModelsView,
    organizationRolesView,
    membershipsView,
    groupsView,
    groupMembersView,
    endedUsersView,
    resourcesView,
    roleAssignmentsView,
    groupRoleAssignmentsView,
    authorizationDeletionsView,
  ],
  awaits: [{ ...ROLE_DIRECTORY, handles: ['role.deleted', 'roles.reordered', 'organization_role.deleted'] }],
};

/** Needs from the runtime: the ports and settings that its classes name. */
@Module({
  providers: [
    AuthorizationModels,
    ResourceTypes,
    Permissions,
    Roles,
    OrganizationRoles,
    TypeUses,
    AccessIndex,
    AccessChecks,
    ResourceRows,
    ResourceTrees,
    Reopening,
    Resources,
    ParentRows,
    AssignmentLists,
    AssignmentGuard,
    RoleAssignments,
    GroupRoleAssignments,
  ],
})
export class AuthorizationModule implements OnModuleInit {
  constructor(
    private readonly forwarders: Forwarders,
    private readonly reactions: Reactions,
    private readonly repository: Repository,
    private readonly readModels: ReadModels,
    private readonly clock: Clock,
    private readonly models: AuthorizationModels,
    private readonly lifecycle: Lifecycle,
    private readonly access: AccessIndex,
    private readonly positions: Positions,
    private readonly trees: ResourceTrees,
    private readonly resources: ResourceRows,
    private readonly events: EventStore,
    private readonly parents: ParentRows,
    private readonly reopening: Reopening,
  ) {}

  onModuleInit(): void {
    this.lifecycle.add(this.access);
    this.forwarders.add({
      service: 'authorization',
      categories: ['authorization_model', 'organization_roles', 'resource_tree', 'role_assignment', 'group_role_assignment'],
    });
    this.reactions.add(seedModelWhenEnvironmentCreated(this.models));
    const { repository, readModels, positions, clock } = this;
    this.reactions.add(dropPermissionWhenDeleted({ repository, readModels, positions, clock }));
    this.reactions.add(deleteRolesWhenOrganizationDeleted({ repository, clock }));
    this.reactions.add(tellOfChangedRoles(this.models));
    const { trees, resources: rows } = this;
    this.reactions.add(deleteResourcesUnderDeleted({ trees, rows, positions, clock }));
    this.reactions.add(deleteResourcesWhenOrganizationDeleted({ trees, rows, positions, clock }));
    this.reactions.add(deleteAssignmentsOfWhatIsGone({ repository, readModels, positions, clock }));
    const { events, parents, reopening } = this;
    const declared = hangings({ parents, repository, trees, clock });
    this.reactions.add(undoWhatMayNotHang('undo-what-may-not-hang', CLOSED, declared, { events, readModels, positions, clock }));
    this.reactions.add(reopenWhatWasLeftClosed('reopen-what-was-left-closed', reopening.byThing(), { events, clock }));
  }
}
