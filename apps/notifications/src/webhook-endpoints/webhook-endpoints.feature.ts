import { PlatformSettings, WebhookSettings } from '#libs/platform/src/config/settings';
import { feature } from '#libs/runtime/src/feature';
import { webhookEndpointDecider } from '../domain/webhook-endpoint.decider.ts';
import { EndpointSecrets } from '../targets/endpoint-secrets.ts';
import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { webhookEndpointsView } from '../views/webhook-endpoints.view.ts';
import { WebhookEndpoints } from './webhook-endpoints.ts';

const targetRule = {
  provide: TargetRule,
  useFactory: ({ GATEHOUSE_MODE }: PlatformSettings, { WEBHOOK_ALLOW_NETWORKS }: WebhookSettings) =>
    new TargetRule({ mode: GATEHOUSE_MODE, allowNetworks: WEBHOOK_ALLOW_NETWORKS }),
  inject: [PlatformSettings, WebhookSettings],
};

export const webhookEndpoints = feature({
  deciders: [webhookEndpointDecider],
  views: [webhookEndpointsView],
  providers: [WebhookEndpoints, EndpointSecrets, targetRule],
});
