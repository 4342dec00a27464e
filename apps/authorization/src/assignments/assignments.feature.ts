import { feature } from '#libs/runtime/src/feature';
import { AssignmentGuard } from './assignment-guard.ts';
import { AssignmentLists } from './assignment-lists.ts';
import { groupRoleAssignmentDecider } from '../domain/group-role-assignment.decider.ts';
import { GroupRoleAssignments } from './group-role-assignments.ts';
import { groupRoleAssignmentsView } from '../views/group-role-assignments.view.ts';
import { roleAssignmentDecider } from '../domain/role-assignment.decider.ts';
import { RoleAssignments } from './role-assignments.ts';
import { roleAssignmentsView } from '../views/role-assignments.view.ts';

export const assignments = feature({
  deciders: [roleAssignmentDecider, groupRoleAssignmentDecider],
  views: [roleAssignmentsView, groupRoleAssignmentsView],
  providers: [AssignmentLists, AssignmentGuard, RoleAssignments, GroupRoleAssignments],
});
