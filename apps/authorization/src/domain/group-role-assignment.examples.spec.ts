import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { groupRoleAssignmentsView } from '../views/group-role-assignments.view.ts';
import { groupRoleAssignmentDecider } from './group-role-assignment.decider.ts';

describe('the log of a group role assignment', () =>
  itReadsStoredExamples(groupRoleAssignmentDecider, groupRoleAssignmentsView.handles, new URL('group-role-assignment.examples.json', import.meta.url)));
