import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { auditRetentionDecider } from './audit-retention.decider.ts';

describe('the log of the retention of an audit trail', () =>
  itReadsStoredExamples(auditRetentionDecider, Object.keys(auditRetentionDecider.sealed), new URL('audit-retention.examples.json', import.meta.url)));
