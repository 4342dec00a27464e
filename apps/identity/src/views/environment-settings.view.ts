import { primaryView } from '#libs/event-sourcing/src/views/view';
import { environmentSettingsDecider, type EnvironmentSettingsEvent, type EnvironmentSettingsState } from '../domain/environment-settings.decider.ts';

/** What was set in each environment: one row, so that a long history of changes costs no reader anything. */
export const environmentSettingsView = primaryView<EnvironmentSettingsState, EnvironmentSettingsEvent, NonNullable<EnvironmentSettingsState>>({
  name: 'environment_settings',
  version: 1,
  decider: environmentSettingsDecider,
  indexes: [],
  rowOf: (state) => state,
});
