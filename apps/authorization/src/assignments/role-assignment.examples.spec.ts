import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { roleAssignmentDecider } from './role-assignment.decider.ts';
import { roleAssignmentsView } from './role-assignments.view.ts';

describe('the log of a role assignment', () =>
  itReadsStoredExamples(roleAssignmentDecider, roleAssignmentsView.handles, new URL('role-assignment.examples.json', import.meta.url)));
