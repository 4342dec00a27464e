import { NotificationsSettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { feature } from '#libs/runtime/src/feature';
import { webhookEndpointDecider } from '../domain/webhook-endpoint.decider.ts';
import { EndpointSecrets } from '../targets/endpoint-secrets.ts';
import { TargetRule } from '../targets/target-address.ts';
import { webhookEndpointsView } from '../views/webhook-endpoints.view.ts';
import { WebhookEndpoints } from './webhook-endpoints.ts';

const targetRule = {
  provide: TargetRule,
  useFactory: ({ GATEHOUSE_MODE }: PlatformSettings, { WEBHOOK_ALLOW_NETWORKS }: NotificationsSettings) =>
    new TargetRule({ mode: GATEHOUSE_MODE, allowNetworks: WEBHOOK_ALLOW_NETWORKS }),
  inject: [PlatformSettings, NotificationsSettings],
};

export const webhookEndpoints = feature({
  deciders: [webhookEndpointDecider],
  views: [webhookEndpointsView],
  providers: [WebhookEndpoints, EndpointSecrets, targetRule],
});
