import { primaryView } from '#libs/event-sourcing/src/views/view';
import type { Index } from '#libs/read-models/src/read-models';
import {
  groupRoleAssignmentDecider,
  groupRoleAssignments,
  type GroupRoleAssignmentEvent,
  type GroupRoleAssignmentState,
  type StoredGroupRoleAssignment,
} from '../domain/group-role-assignment.decider.ts';
import { both } from './role-assignments.view.ts';

const indexes: readonly Index<StoredGroupRoleAssignment>[] = [
  { name: 'organization', keys: ({ organization_id }) => [organization_id] },
  { name: 'group', keys: ({ group_id }) => [group_id] },
  { name: 'group_resource', keys: ({ group_id, resource }) => [both(group_id, resource.id)] },
  { name: 'group_type', keys: ({ group_id, resource }) => [both(group_id, resource.resource_type_slug)] },
  { name: 'resource', keys: ({ resource }) => [resource.id] },
  { name: 'resource_role', keys: ({ resource, role }) => [both(resource.id, role.id)] },
  { name: 'role', keys: ({ role }) => [role.id] },
];

/** Every assignment that was not deleted; it means nothing once its group, role or resource is gone. */
export const groupRoleAssignmentsView = primaryView<GroupRoleAssignmentState, GroupRoleAssignmentEvent, StoredGroupRoleAssignment>({
  name: 'group_role_assignments',
  version: 1,
  decider: groupRoleAssignmentDecider,
  indexes,
  rowIdOf: ({ id }) => id,
  rowOf: groupRoleAssignments.live,
});
