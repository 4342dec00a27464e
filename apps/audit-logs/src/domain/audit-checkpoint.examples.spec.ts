import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { auditCheckpointDecider } from './audit-checkpoint.decider.ts';

describe('the log of the checkpoints of an audit trail', () =>
  itReadsStoredExamples(auditCheckpointDecider, Object.keys(auditCheckpointDecider.sealed), new URL('audit-checkpoint.examples.json', import.meta.url)));
