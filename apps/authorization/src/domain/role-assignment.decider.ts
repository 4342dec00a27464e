import type { MembershipEvent } from '#apps/identity/src/domain/membership.decider';
import { assignments, type AssignmentEvent, type AssignmentState, type StoredAssignment } from './assignments.decider.ts';

type Category = 'role_assignment';
type Holder = 'organization_membership_id';

export type StoredRoleAssignment = StoredAssignment<Category, Holder>;
export type RoleAssignmentState = AssignmentState<Category, Holder>;
export type RoleAssignmentEvent = AssignmentEvent<Category, Holder>;

/** A role that a membership has on a resource. One that it has there already stays as it is. */
export const roleAssignments = assignments({
  category: 'role_assignment',
  holder: 'organization_membership_id',
  holderEnds: { ends: 'organization_membership.deleted' satisfies MembershipEvent['type'], index: 'membership' },
  sealed: { 'role_assignment.created': null, 'role_assignment.deleted': null },
  idPrefix: 'role_assignment',
  noun: 'Role assignment',
  duplicate: null,
});

export const roleAssignmentDecider = roleAssignments.decider;
