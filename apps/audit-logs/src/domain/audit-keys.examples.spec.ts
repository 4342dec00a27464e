import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { auditKeysDecider } from './audit-keys.decider.ts';

describe('the log of the keys of the checkpoints of an environment', () =>
  itReadsStoredExamples(auditKeysDecider, Object.keys(auditKeysDecider.sealed), new URL('audit-keys.examples.json', import.meta.url)));
