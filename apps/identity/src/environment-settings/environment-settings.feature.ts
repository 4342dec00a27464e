import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { PlatformSettings, WebhookSettings } from '#libs/platform/src/config/settings';
import { feature } from '#libs/runtime/src/feature';
import { environmentSettingsDecider } from '../domain/environment-settings.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { KnownStates } from '../readers/known-states.ts';
import { environmentSettingsView } from '../views/environment-settings.view.ts';
import { EnvironmentSettings } from './environment-settings.ts';

/** Where texts may be posted: where webhooks may go. */
const targetRule = {
  provide: TargetRule,
  useFactory: ({ GATEHOUSE_MODE }: PlatformSettings, { WEBHOOK_ALLOW_NETWORKS }: WebhookSettings) =>
    new TargetRule({ mode: GATEHOUSE_MODE, allowNetworks: WEBHOOK_ALLOW_NETWORKS }),
  inject: [PlatformSettings, WebhookSettings],
};

export const environmentSettings = feature({
  deciders: [environmentSettingsDecider],
  views: [environmentSettingsView],
  providers: [EnvironmentSettings, EnvironmentSettingsReader, targetRule],
  backgroundComponents: [KnownStates],
});
