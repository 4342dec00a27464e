import { service } from '#libs/runtime/src/feature';
import { feed } from './feed/feed.feature.ts';
import { webhookDeliveries } from './webhook-deliveries/webhook-deliveries.feature.ts';
import { webhookEndpoints } from './webhook-endpoints/webhook-endpoints.feature.ts';

/** Nobody outside is told of endpoints. */
export const notifications = service('notifications', [webhookEndpoints, feed, webhookDeliveries], { isForwarded: false });
