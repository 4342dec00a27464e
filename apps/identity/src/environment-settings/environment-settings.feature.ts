import { targetRule } from '#libs/messaging/src/webhooks/target-rule.provider';
import { feature } from '#libs/runtime/src/feature';
import { environmentSettingsDecider } from '../domain/environment-settings.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { KnownStates } from '../readers/known-states.ts';
import { environmentSettingsView } from '../views/environment-settings.view.ts';
import { EnvironmentSettings } from './environment-settings.ts';

export const environmentSettings = feature({
  deciders: [environmentSettingsDecider],
  views: [environmentSettingsView],
  providers: [EnvironmentSettings, EnvironmentSettingsReader, targetRule],
  backgroundComponents: [KnownStates],
});
