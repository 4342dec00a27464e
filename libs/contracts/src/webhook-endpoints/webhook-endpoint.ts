import { WEBHOOK_EVENT_NAMES, type PublicEventName } from '../events.ts';
import { Const, Id, Integer, ListOf, OneOf, Ref, Text, Time } from '../fields.ts';

/** Where events are sent to as they happen. */
export class WebhookEndpoint {
  @Const('webhook_endpoint') object!: 'webhook_endpoint';
  @Id('we', { doc: 'Identifies the endpoint.' }) id!: string;
  @Text({
    doc: 'Where events are posted to, as the URL standard writes it; unique in the environment.',
    min: 1,
    max: 2048,
    example: 'https://example.com/webhooks',
  })
  endpoint_url!: string;
  @Text({
    doc: 'Signs what is sent. Keep it where the receiver alone can read it.',
    secret: true,
    example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=',
  })
  secret!: string;
  @OneOf(['enabled', 'disabled'], { doc: 'A disabled endpoint is sent nothing, and what waited for it is dropped.' }) status!: 'enabled' | 'disabled';
  @ListOf({ oneOf: WEBHOOK_EVENT_NAMES }, { doc: 'The events that it is sent; none when empty.', example: ['organization.created'] })
  events!: readonly PublicEventName[];
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** What became of one event at one endpoint. */
export class WebhookDelivery {
  @Const('webhook_delivery') object!: 'webhook_delivery';
  @Id('webhook_delivery', { doc: 'Identifies the delivery: one for each event and endpoint.' }) id!: string;
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) webhook_endpoint_id!: string;
  @Text({ doc: 'The event, as the feed and the `webhook-id` header name it.', example: 'event_01J0000000000000000000000A' }) event_id!: string;
  @OneOf(WEBHOOK_EVENT_NAMES, { doc: 'What happened.', example: 'organization.created' }) event!: PublicEventName;
  @OneOf(['pending', 'delivered', 'failed'], { doc: 'Delivered once the receiver answered with any 2xx; failed when nothing is tried any more.' })
  status!: 'pending' | 'delivered' | 'failed';
  @ListOf(() => WebhookAttempt, { doc: 'The last attempts, oldest first: at most 20.' }) attempts!: readonly WebhookAttempt[];
  @Time({ doc: 'When it is tried next.', nullable: true }) next_attempt_at!: string | null;
  @Time({ doc: 'When it was queued first.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** One request to the receiver. */
export class WebhookAttempt {
  @Time({ doc: 'When it began.' }) at!: string;
  @Integer({ doc: 'Status of the answer; null when there was none.', nullable: true, minimum: 100, maximum: 999 }) status_code!: number | null;
  @Integer({ doc: 'How long it took, in milliseconds.', minimum: 0 }) latency_ms!: number;
  @Text({ doc: 'Why it failed, where there was no answer, or none that counts.', nullable: true, example: 'timeout' }) error!: string | null;
  @Text({ doc: 'How the answer began: at most 1 KiB.', nullable: true }) response_excerpt!: string | null;
}

/** Events of the past that are on their way to an endpoint again. */
export class WebhookReplay {
  @Const('webhook_replay') object!: 'webhook_replay';
  @Id('webhook_replay', { doc: 'Identifies the replay.' }) id!: string;
  @Ref(() => WebhookEndpoint, { doc: 'The endpoint.' }) webhook_endpoint_id!: string;
  @Time({ doc: 'Events from this time on are sent again.' }) since!: string;
  @ListOf({ oneOf: WEBHOOK_EVENT_NAMES }, { doc: 'The events that are sent again.' }) events!: readonly PublicEventName[];
  @Time({ doc: 'When it was asked for: later events are sent anyway.' }) created_at!: string;
}
