import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { environmentSettingsView } from '../views/environment-settings.view.ts';
import { environmentSettingsDecider } from './environment-settings.decider.ts';

describe('the log of the settings of an environment', () =>
  itReadsStoredExamples(environmentSettingsDecider, environmentSettingsView.handles, new URL('environment-settings.examples.json', import.meta.url)));
