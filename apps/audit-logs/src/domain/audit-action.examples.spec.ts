import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { auditActionsView } from '../views/audit-actions.view.ts';
import { auditActionDecider } from './audit-action.decider.ts';

describe('the log of an action', () =>
  itReadsStoredExamples(auditActionDecider, auditActionsView.handles, new URL('audit-action.examples.json', import.meta.url)));
