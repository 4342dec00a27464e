import { primaryView } from '#libs/event-sourcing/src/views/view';
import type { Index } from '#libs/read-models/src/read-models';
import {
  roleAssignmentDecider,
  roleAssignments,
  type StoredRoleAssignment,
  type RoleAssignmentEvent,
  type RoleAssignmentState,
} from '../domain/role-assignment.decider.ts';

const indexes: readonly Index<StoredRoleAssignment>[] = [
  { name: 'organization', keys: ({ organization_id }) => [organization_id] },
  { name: 'membership', keys: ({ organization_membership_id }) => [organization_membership_id] },
  { name: 'membership_resource', keys: ({ organization_membership_id, resource }) => [both(organization_membership_id, resource.id)] },
  { name: 'membership_type', keys: ({ organization_membership_id, resource }) => [both(organization_membership_id, resource.resource_type_slug)] },
  { name: 'resource', keys: ({ resource }) => [resource.id] },
  { name: 'resource_role', keys: ({ resource, role }) => [both(resource.id, role.id)] },
  { name: 'role', keys: ({ role }) => [role.id] },
];

/** The value of an index that finds rows by two things at once; the first is an id, which holds no full stop. */
export function both(id: string, other: string): string {
  return `${id}.${other}`;
}

/** Every assignment that was not deleted; it means nothing once its membership, role or resource is gone. */
export const roleAssignmentsView = primaryView<RoleAssignmentState, RoleAssignmentEvent, StoredRoleAssignment>({
  name: 'role_assignments',
  version: 1,
  decider: roleAssignmentDecider,
  indexes,
  rowIdOf: ({ id }) => id,
  rowOf: roleAssignments.live,
});
