import { feature } from '#libs/runtime/src/feature';
import { webhookEndpointDecider } from '../domain/webhook-endpoint.decider.ts';
import { EndpointSecrets } from '../targets/endpoint-secrets.ts';
import { targetRule } from '#libs/messaging/src/webhooks/target-rule.provider';
import { webhookEndpointsView } from '../views/webhook-endpoints.view.ts';
import { WebhookEndpoints } from './webhook-endpoints.ts';

export const webhookEndpoints = feature({
  deciders: [webhookEndpointDecider],
  views: [webhookEndpointsView],
  providers: [WebhookEndpoints, EndpointSecrets, targetRule],
});
