import { deletionsView } from '#libs/event-sourcing/src/deciding/deletions';
import type { GroupRoleAssignmentEvent } from './assignments/group-role-assignment.decider.ts';
import type { RoleAssignmentEvent } from './assignments/role-assignment.decider.ts';
import type { AuthorizationModelEvent } from './model/authorization-model.decider.ts';
import type { OrganizationRolesEvent } from './model/organization-roles.decider.ts';
import type { ResourceEvent } from './resources/resource.events.ts';

export const authorizationDeletionsView = deletionsView('authorization', [
  'role_assignment.deleted' satisfies RoleAssignmentEvent['type'],
  'group_role_assignment.deleted' satisfies GroupRoleAssignmentEvent['type'],
  'resource_type.deleted' satisfies AuthorizationModelEvent['type'],
  'permission.deleted' satisfies AuthorizationModelEvent['type'],
  'role.deleted' satisfies AuthorizationModelEvent['type'],
  'organization_role.deleted' satisfies OrganizationRolesEvent['type'],
  // Takes a permission away from the role, perhaps.
  'organization_role.updated' satisfies OrganizationRolesEvent['type'],
  'resource.deleted' satisfies ResourceEvent['type'],
]);
