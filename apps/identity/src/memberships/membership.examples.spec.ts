import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { membershipDecider } from './membership.decider.ts';
import { membershipsView } from './memberships.view.ts';

describe('the log of a membership', () =>
  itReadsStoredExamples(membershipDecider, membershipsView.handles, new URL('membership.examples.json', import.meta.url)));
