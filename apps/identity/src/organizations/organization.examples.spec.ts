import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { organizationDecider } from './organization.decider.ts';
import { organizationsView } from './organizations.view.ts';

describe('the log of an organization', () =>
  itReadsStoredExamples(organizationDecider, organizationsView.handles, new URL('organization.examples.json', import.meta.url)));
