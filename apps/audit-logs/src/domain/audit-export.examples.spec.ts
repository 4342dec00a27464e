import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { auditExportDecider } from './audit-export.decider.ts';

describe('the log of the exports of an audit trail', () =>
  itReadsStoredExamples(auditExportDecider, Object.keys(auditExportDecider.sealed), new URL('audit-export.examples.json', import.meta.url)));
