import { WEBHOOK_EVENT_NAMES, type PublicEventName } from '../events.ts';
import { Integer, ListOf, OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { accepted, Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { PageQuery } from '../pages.ts';
import { WebhookDelivery, WebhookEndpoint, WebhookReplay } from './webhook-endpoint.ts';

const EVENT_NAMES = { text: { min: 1, max: 100, known: WEBHOOK_EVENT_NAMES } } as const;

@Operation({ get: '/webhook_endpoints', owner: 'notifications', summary: 'List webhook endpoints', answers: listOf(WebhookEndpoint) })
export class ListWebhookEndpoints extends PageQuery<WebhookEndpoint> {}

@Operation({
  post: '/webhook_endpoints',
  owner: 'notifications',
  summary: 'Create a webhook endpoint',
  description:
    'Each event is posted as it stands in the events feed, signed anew at each attempt. In production mode the URL is https and leads to a public address; redirects are not followed.',
  answers: created(WebhookEndpoint),
  refuses: ['duplicate_endpoint', 'invalid_url', 'webhook_endpoint_limit_reached'],
})
export class CreateWebhookEndpoint extends Command<WebhookEndpoint> {
  @Picked(WebhookEndpoint) endpoint_url!: string;
  @ListOf(EVENT_NAMES, { doc: 'The events to send; an empty list sends none.', example: ['organization.created'] }) events!: readonly string[];
}

@Operation({ get: '/webhook_endpoints/{id}', owner: 'notifications', summary: 'Get a webhook endpoint', answers: ok(WebhookEndpoint) })
export class GetWebhookEndpoint extends Query<WebhookEndpoint> {
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) id!: string;
}

@Operation({
  patch: '/webhook_endpoints/{id}',
  owner: 'notifications',
  summary: 'Update a webhook endpoint',
  description: 'What is absent stays.',
  answers: ok(WebhookEndpoint),
  refuses: ['duplicate_endpoint', 'invalid_url'],
})
export class UpdateWebhookEndpoint extends Command<WebhookEndpoint> {
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) id!: string;
  @Optional() @Picked(WebhookEndpoint) endpoint_url?: string;
  @Optional() @Picked(WebhookEndpoint) status?: 'enabled' | 'disabled';
  @Optional() @ListOf(EVENT_NAMES, { doc: 'The events to send from now on.', example: ['organization.created'] }) events?: readonly string[];
}

@Operation({ delete: '/webhook_endpoints/{id}', owner: 'notifications', summary: 'Delete a webhook endpoint', answers: empty(204) })
export class DeleteWebhookEndpoint extends Command<void> {
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) id!: string;
}

@Operation({
  post: '/webhook_endpoints/{id}/rotate_secret',
  owner: 'notifications',
  summary: 'Replace the secret of a webhook endpoint',
  description:
    'For `overlap_seconds` receivers with either secret succeed: `webhook-signature` carries both signatures; the other signature headers are made with the old secret, and an attempt that is answered 400, 401 or 403 is repeated at once with the new one.',
  answers: ok(WebhookEndpoint),
})
export class RotateWebhookEndpointSecret extends Command<WebhookEndpoint> {
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) id!: string;
  @Integer({ doc: 'How long the old secret is still used.', minimum: 0, maximum: 604_800, default: 86_400 }) overlap_seconds!: number;
}

@Operation({
  get: '/webhook_endpoints/{id}/deliveries',
  owner: 'notifications',
  summary: 'List what was sent to a webhook endpoint',
  description: 'Kept for 30 days.',
  answers: listOf(WebhookDelivery),
})
export class ListWebhookDeliveries extends PageQuery<WebhookDelivery> {
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) id!: string;
  @Optional() @Picked(WebhookDelivery) status?: 'pending' | 'delivered' | 'failed';
  @Optional() @Picked(WebhookDelivery) event?: PublicEventName;
}

@Operation({ get: '/webhook_endpoints/{id}/deliveries/{delivery_id}', owner: 'notifications', summary: 'Get a delivery', answers: ok(WebhookDelivery) })
export class GetWebhookDelivery extends Query<WebhookDelivery> {
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) id!: string;
  @Ref(() => WebhookDelivery, { doc: 'The delivery.' }) delivery_id!: string;
}

@Operation({
  post: '/webhook_endpoints/{id}/deliveries/{delivery_id}/redeliver',
  owner: 'notifications',
  summary: 'Send an event again',
  description: 'At once, and then at the usual times until it is delivered.',
  answers: accepted(WebhookDelivery),
  refuses: ['webhook_endpoint_disabled'],
})
export class RedeliverWebhook extends Command<WebhookDelivery> {
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) id!: string;
  @Ref(() => WebhookDelivery, { doc: 'The delivery.' }) delivery_id!: string;
}

@Operation({
  post: '/webhook_endpoints/{id}/replay',
  owner: 'notifications',
  summary: 'Send all events since a time again',
  description: 'Reads the events feed, so that it goes back as far as the feed does. Goes on in the background, after a restart too.',
  answers: accepted(WebhookReplay),
  refuses: ['webhook_endpoint_disabled'],
})
export class ReplayWebhooks extends Command<WebhookReplay> {
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) id!: string;
  @Text({ doc: 'Send the events from this time on.', format: 'date-time', example: '2026-01-15T12:00:00.000Z' }) since!: string;
  @Optional()
  @ListOf(EVENT_NAMES, { doc: 'Only these events; absent: those that the endpoint is subscribed to.', minItems: 1, example: ['organization.created'] })
  events?: readonly string[];
}

@Operation({
  post: '/webhook_endpoints/{id}/test',
  owner: 'notifications',
  summary: 'Send a sample event',
  description: 'Its data is made up, and it is not in the events feed; everything else is as with a real one.',
  answers: accepted(WebhookDelivery),
  refuses: ['webhook_endpoint_disabled'],
})
export class TestWebhookEndpoint extends Command<WebhookDelivery> {
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) id!: string;
  @OneOf(WEBHOOK_EVENT_NAMES, { doc: 'The event to send.', example: 'organization.created' }) event!: PublicEventName;
}
