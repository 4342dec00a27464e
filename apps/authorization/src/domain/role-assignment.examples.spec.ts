import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { roleAssignmentsView } from '../views/role-assignments.view.ts';
import { roleAssignmentDecider } from './role-assignment.decider.ts';

describe('the log of a role assignment', () =>
  itReadsStoredExamples(roleAssignmentDecider, roleAssignmentsView.handles, new URL('role-assignment.examples.json', import.meta.url)));
