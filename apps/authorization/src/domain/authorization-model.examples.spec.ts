import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { authorizationModelsView } from '../views/authorization-models.view.ts';
import { organizationRolesView } from '../views/organization-roles.view.ts';
import { authorizationModelDecider } from './authorization-model.decider.ts';
import { organizationRolesDecider } from './organization-roles.decider.ts';

describe('the log of an authorization model', () =>
  itReadsStoredExamples(authorizationModelDecider, authorizationModelsView.handles, new URL('authorization-model.examples.json', import.meta.url)));

describe('the log of the roles of an organization', () =>
  itReadsStoredExamples(organizationRolesDecider, organizationRolesView.handles, new URL('organization-roles.examples.json', import.meta.url)));
