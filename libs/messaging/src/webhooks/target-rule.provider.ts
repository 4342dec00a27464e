import { PlatformSettings, WebhookSettings } from '#libs/platform/src/config/settings';
import { TargetRule } from './target-address.ts';

/** Where a service may post to, as its settings say. */
export const targetRule = {
  provide: TargetRule,
  useFactory: ({ GATEHOUSE_MODE }: PlatformSettings, { WEBHOOK_ALLOW_NETWORKS }: WebhookSettings) =>
    new TargetRule({ mode: GATEHOUSE_MODE, allowNetworks: WEBHOOK_ALLOW_NETWORKS }),
  inject: [PlatformSettings, WebhookSettings],
};
