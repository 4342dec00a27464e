import { feature } from '#libs/runtime/src/feature';
import { authorizationModelDecider } from '../domain/authorization-model.decider.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { OrganizationRoleSets } from '../repositories/organization-role-sets.ts';
import { authorizationModelsView } from '../views/authorization-models.view.ts';
import { organizationRolesDecider, type OrganizationRolesEvent } from '../domain/organization-roles.decider.ts';
import { OrganizationRoleGuard } from './organization-role-guard.ts';
import { OrganizationRoles } from './organization-roles.ts';
import { organizationRolesView } from '../views/organization-roles.view.ts';
import { Permissions } from './permissions.ts';
import { ResourceTypes } from './resource-types.ts';
import { DropDeletedPermission, DropMappingsOfWhatIsGone, SeedModelOfEnvironment, TellOfChangedRoles } from './model.reactions.ts';
import { DirectoryRows } from '../repositories/directory-rows.ts';
import { directoriesView, directoryGroupMembersView, directoryGroupsView } from '../views/directories.views.ts';
import { RoleMappings } from './role-mappings.ts';
import { Roles } from './roles.ts';
import { TypeUses } from './type-uses.ts';

export const model = feature({
  deciders: [authorizationModelDecider, organizationRolesDecider],
  views: [authorizationModelsView, organizationRolesView, directoriesView, directoryGroupsView, directoryGroupMembersView],
  providers: [
    AuthorizationModels,
    OrganizationRoleSets,
    ResourceTypes,
    Permissions,
    Roles,
    OrganizationRoles,
    OrganizationRoleGuard,
    TypeUses,
    RoleMappings,
    DirectoryRows,
  ],
  reactions: [SeedModelOfEnvironment, DropDeletedPermission, TellOfChangedRoles, DropMappingsOfWhatIsGone],
  // Takes a permission away from the role, perhaps.
  removals: ['organization_role.updated' satisfies OrganizationRolesEvent['type']],
});
