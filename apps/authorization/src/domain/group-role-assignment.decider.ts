import { refusedField } from '#libs/platform/src/domain-error';

import type { GroupEvent } from '#apps/identity/src/domain/group.decider';
import { assignments, type AssignmentEvent, type AssignmentState, type StoredAssignment } from './assignments.decider.ts';

type Category = 'group_role_assignment';
type Holder = 'group_id';

export type StoredGroupRoleAssignment = StoredAssignment<Category, Holder>;
export type GroupRoleAssignmentState = AssignmentState<Category, Holder>;
export type GroupRoleAssignmentEvent = AssignmentEvent<Category, Holder>;

/** A role that a group has on a resource. */
export const groupRoleAssignments = assignments({
  category: 'group_role_assignment',
  holder: 'group_id',
  holderEnds: { ends: 'group.deleted' satisfies GroupEvent['type'], index: 'group' },
  sealed: { 'group_role_assignment.created': null, 'group_role_assignment.deleted': null },
  idPrefix: 'gra',
  noun: 'Group role assignment',
  duplicate: ({ role, resource }) => {
    const message = `The group already has the role '${role.slug}' on this resource.`;
    return refusedField('conflict', 'duplicate_group_role_assignment', { field: 'role_slug', message, entity_id: resource.id });
  },
});

export const groupRoleAssignmentDecider = groupRoleAssignments.decider;
