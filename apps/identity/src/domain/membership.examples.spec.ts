import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { membershipsView } from '../views/memberships.view.ts';
import { membershipDecider } from './membership.decider.ts';

describe('the log of a membership', () =>
  itReadsStoredExamples(membershipDecider, membershipsView.handles, new URL('membership.examples.json', import.meta.url)));
