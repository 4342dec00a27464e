import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { auditStreamsView } from '../views/audit-streams.view.ts';
import { auditStreamDecider } from './audit-stream.decider.ts';

describe('the log of the stream of a trail', () =>
  itReadsStoredExamples(auditStreamDecider, auditStreamsView.handles, new URL('audit-stream.examples.json', import.meta.url)));
