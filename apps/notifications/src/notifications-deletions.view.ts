import { deletionsView } from '#libs/event-sourcing/src/deciding/deletions';
import type { WebhookEndpointEvent } from './webhook-endpoints/webhook-endpoint.decider.ts';

export const notificationsDeletionsView = deletionsView('notifications', ['webhook_endpoint.deleted' satisfies WebhookEndpointEvent['type']]);
