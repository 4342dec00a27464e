import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { organizationsView } from '../views/organizations.view.ts';
import { organizationDecider } from './organization.decider.ts';

describe('the log of an organization', () =>
  itReadsStoredExamples(organizationDecider, organizationsView.handles, new URL('organization.examples.json', import.meta.url)));
