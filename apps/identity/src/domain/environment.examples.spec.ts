import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { environmentsView } from '../views/environments.view.ts';
import { environmentDecider } from './environment.decider.ts';

describe('the log of an environment', () =>
  itReadsStoredExamples(environmentDecider, environmentsView.handles, new URL('environment.examples.json', import.meta.url)));
