import { primaryView } from '#libs/event-sourcing/src/views/view';
import { notFound } from '#libs/platform/src/domain-error';
import { isIdOf } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, type Table } from '#libs/read-models/src/read-models';
import {
  webhookEndpointDecider,
  type StoredWebhookEndpoint,
  type WebhookEndpointEvent,
  type WebhookEndpointState,
} from '../domain/webhook-endpoint.decider.ts';

/** Every living endpoint, with its secrets sealed. Private: answers are picked from it. */
export const webhookEndpointsView = primaryView<WebhookEndpointState, WebhookEndpointEvent, StoredWebhookEndpoint>({
  name: 'webhook_endpoints',
  version: 1,
  decider: webhookEndpointDecider,
  indexes: [],
  rowOf: (state) => (state?.object === 'webhook_endpoint' ? state : null),
});

/** A living endpoint, its secrets sealed. @throws DomainError `entity_not_found` */
export async function requireEndpoint(rows: Table<StoredWebhookEndpoint>, context: RequestContext, id: string): Promise<StoredWebhookEndpoint> {
  const row = isIdOf('we', id) ? await rows.find(context, id) : null;
  if (row === null) throw notFound('Webhook endpoint', id);
  return contentOf(row);
}
