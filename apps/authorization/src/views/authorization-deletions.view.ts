import { deletionsView } from '#libs/event-sourcing/src/deciding/deletions';
import type { AuthorizationModelEvent } from '../domain/authorization-model.decider.ts';
import type { GroupRoleAssignmentEvent } from '../domain/group-role-assignment.decider.ts';
import type { OrganizationRolesEvent } from '../domain/organization-roles.decider.ts';
import type { ResourceEvent } from '../domain/resource.events.ts';
import type { RoleAssignmentEvent } from '../domain/role-assignment.decider.ts';

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
