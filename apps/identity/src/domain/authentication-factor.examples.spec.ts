import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { authenticationFactorsView } from '../views/authentication-factors.view.ts';
import { authenticationFactorDecider } from './authentication-factor.decider.ts';

describe('the log of an authentication factor', () =>
  itReadsStoredExamples(authenticationFactorDecider, authenticationFactorsView.handles, new URL('authentication-factor.examples.json', import.meta.url)));
