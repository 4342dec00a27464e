import { primaryView } from '#libs/event-sourcing/src/views/view';
import { webhookEndpointDecider, type StoredWebhookEndpoint, type WebhookEndpointEvent, type WebhookEndpointState } from './webhook-endpoint.decider.ts';

/** Every living endpoint, with its secrets sealed. Private: answers are picked from it. */
export const webhookEndpointsView = primaryView<WebhookEndpointState, WebhookEndpointEvent, StoredWebhookEndpoint>({
  name: 'webhook_endpoints',
  version: 1,
  decider: webhookEndpointDecider,
  handles: ['webhook_endpoint.created', 'webhook_endpoint.updated', 'webhook_endpoint.secret_rotated', 'webhook_endpoint.deleted'],
  indexes: [],
  rowOf: (state) => (state?.object === 'webhook_endpoint' ? state : null),
});
