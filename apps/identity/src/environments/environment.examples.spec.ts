import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { environmentDecider } from './environment.decider.ts';
import { environmentsView } from './environments.view.ts';

describe('the log of an environment', () =>
  itReadsStoredExamples(environmentDecider, environmentsView.handles, new URL('environment.examples.json', import.meta.url)));
