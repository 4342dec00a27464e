import { Module, type OnModuleInit } from '@nestjs/common';
import { Forwarders } from '#libs/event-sourcing/src/forwarder';
import { Reactions } from '#libs/event-sourcing/src/reaction';
import { Repository } from '#libs/event-sourcing/src/repository';
import { Clock } from '#libs/platform/src/clock';
import type { Service } from '#libs/platform/src/runtime/app';
import { Lifecycle } from '#libs/platform/src/runtime/lifecycle';
import { ReadModels } from '#libs/read-models/src/read-models';
import { AccessIndex } from './access/access-index.ts';
import { endedUsersView, groupMembersView, groupsView, membershipsView } from './access/access.views.ts';
import { AuthorizationModels } from './model/authorization-models.ts';
import { authorizationModelsView } from './model/authorization-models.view.ts';
import { OrganizationRoles } from './model/organization-roles.ts';
import { organizationRolesView } from './model/organization-roles.view.ts';
import { Permissions } from './model/permissions.ts';
import { ResourceTypes } from './model/resource-types.ts';
import { RoleHolders } from './model/role-holders.ts';
import { deleteRolesWhenOrganizationDeleted, dropPermissionWhenDeleted } from './model/roles.reactions.ts';
import { Roles } from './model/roles.ts';
import { seedModelWhenEnvironmentCreated } from './model/seeds.reaction.ts';
import { TypeUses } from './model/type-uses.ts';

export const authorization: Service = { owner: 'authorization', views: [authorizationModelsView, organizationRolesView, membershipsView, groupsView, groupMembersView, endedUsersView] };

/** Needs from the runtime: the ports and settings that its classes name. */
@Module({ providers: [AuthorizationModels, ResourceTypes, Permissions, Roles, OrganizationRoles, RoleHolders, TypeUses, AccessIndex] })
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
  ) {}

  onModuleInit(): void {
    this.lifecycle.add(this.access);
    this.forwarders.add({
      service: 'authorization',
      categories: ['authorization_model', 'organization_roles', 'resource_tree', 'role_assignment', 'group_role_assignment'],
    });
    this.reactions.add(seedModelWhenEnvironmentCreated(this.models));
    const { repository, readModels, clock } = this;
    this.reactions.add(dropPermissionWhenDeleted({ repository, readModels, clock }));
    this.reactions.add(deleteRolesWhenOrganizationDeleted({ repository, readModels, clock }));
  }
}
