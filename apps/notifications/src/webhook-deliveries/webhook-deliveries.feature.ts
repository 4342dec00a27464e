import { PlatformSettings } from '#libs/platform/src/config/settings';
import { feature } from '#libs/runtime/src/feature';
import { DeliveryLog } from './delivery-log.ts';
import { ResponseExcerpts } from './response-excerpts.ts';
import { RETRY_PAUSES, RetrySchedule } from '#libs/messaging/src/webhooks/retry-schedule';
import { WebhookDeliveries } from './webhook-deliveries.ts';
import { WebhookStart } from './webhook-start.ts';
import { WebhookWork } from './webhook-work.ts';

const retrySchedule = {
  provide: RetrySchedule,
  useFactory: ({ GATEHOUSE_MODE }: PlatformSettings) => new RetrySchedule(RETRY_PAUSES[GATEHOUSE_MODE]),
  inject: [PlatformSettings],
};

export const webhookDeliveries = feature({ providers: [WebhookDeliveries, DeliveryLog, ResponseExcerpts, WebhookWork, WebhookStart, retrySchedule] });
