import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { authorizationModelDecider } from './authorization-model.decider.ts';
import { authorizationModelsView } from './authorization-models.view.ts';
import { organizationRolesDecider } from './organization-roles.decider.ts';
import { organizationRolesView } from './organization-roles.view.ts';

describe('the log of an authorization model', () =>
  itReadsStoredExamples(authorizationModelDecider, authorizationModelsView.handles, new URL('authorization-model.examples.json', import.meta.url)));

describe('the log of the roles of an organization', () =>
  itReadsStoredExamples(organizationRolesDecider, organizationRolesView.handles, new URL('organization-roles.examples.json', import.meta.url)));
