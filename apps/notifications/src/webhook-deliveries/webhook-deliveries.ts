import { Injectable } from '@nestjs/common';
import { eventDataOf } from '#libs/contracts/src/events';
import { exampleOf } from '#libs/contracts/src/examples';
import { Event } from '#libs/contracts/src/feed/event';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import {
  GetWebhookDelivery,
  ListWebhookDeliveries,
  RedeliverWebhook,
  ReplayWebhooks,
  TestWebhookEndpoint,
} from '#libs/contracts/src/webhook-endpoints/operations';
import { WebhookDelivery, type WebhookReplay } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound, unavailable } from '#libs/platform/src/domain-error';
import { derivedId, isIdOf } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { pageOf } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type PageRequest, type Table } from '#libs/read-models/src/read-models';
import type { StoredWebhookEndpoint } from '../domain/webhook-endpoint.decider.ts';
import { subscribable } from '../targets/subscribable.ts';
import { requireEndpoint, webhookEndpointsView } from '../views/webhook-endpoints.view.ts';
import { DeliveryLog } from './delivery-log.ts';
import { deliveryId, queuedAgain, queuedDelivery, type StoredDelivery } from './delivery.ts';
import { ResponseExcerpts } from './response-excerpts.ts';
import { WebhookWork } from './webhook-work.ts';

const serialise = serialiserOf(WebhookDelivery);
const serialiseEvent = serialiserOf(Event);

/** The delivery log, and everything that a person may send again. */
@Injectable()
export class WebhookDeliveries {
  private readonly endpoints: Table<StoredWebhookEndpoint>;

  constructor(
    private readonly deliveries: DeliveryLog,
    private readonly work: WebhookWork,
    private readonly excerpts: ResponseExcerpts,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.endpoints = readModels.table(tableOf(webhookEndpointsView));
  }

  @Handles(ListWebhookDeliveries)
  async list(query: ListWebhookDeliveries): Promise<Serialised<List<WebhookDelivery>>> {
    await requireEndpoint(this.endpoints, query.context, query.id);
    return pageOf(this.deliveries.deliveries, query, {
      idPrefix: 'webhook_delivery',
      where: filterOf(query),
      textOf: async (row) => serialise(await this.shown(query.context, contentOf(row))),
    });
  }

  @Handles(GetWebhookDelivery)
  async get({ context, id, delivery_id }: GetWebhookDelivery): Promise<WebhookDelivery> {
    await requireEndpoint(this.endpoints, context, id);
    return this.shown(context, await this.found(context, id, delivery_id));
  }

  @Handles(RedeliverWebhook)
  async redeliver({ context, id, delivery_id }: RedeliverWebhook): Promise<WebhookDelivery> {
    await this.enabled(context, id);
    const { environment, deadline } = context;
    while (this.clock.now() < deadline) {
      const delivery = queuedAgain(await this.found(context, id, delivery_id), this.clock.now());
      await this.work.queues.add(environment, [delivery]);
      // An attempt that ended at the same time may have been faster to say what comes next.
      if ((await this.deliveries.savedInstead(environment, [delivery])).length === 0) return this.shown(context, delivery);
    }
    throw unavailable('The delivery changed too often meanwhile.');
  }

  @Handles(TestWebhookEndpoint)
  async test({ context, id, event }: TestWebhookEndpoint): Promise<WebhookDelivery> {
    await this.enabled(context, id);
    const now = this.clock.now();
    const eventId = `event_${derivedId(context.commandId, 0)}`;
    const known = await this.deliveries.get(context.environment, deliveryId(id, eventId));
    if (known !== null) return this.shown(context, known);
    const type = eventDataOf(event);
    const data = type === null ? {} : exampleOf(type);
    const sample = serialiseEvent({ object: 'event', id: eventId, event, data, created_at: new Date(now).toISOString() });
    const delivery = queuedDelivery({ endpointId: id, eventId, event, now, sample });
    await this.work.queues.add(context.environment, [delivery]);
    return delivery;
  }

  @Handles(ReplayWebhooks)
  async replay({ context, id, since, events }: ReplayWebhooks): Promise<WebhookReplay> {
    const endpoint = await this.enabled(context, id);
    const replay: WebhookReplay = {
      object: 'webhook_replay',
      id: `webhook_replay_${derivedId(context.commandId, 0)}`,
      webhook_endpoint_id: id,
      since: new Date(since).toISOString(),
      events: events === undefined ? endpoint.events : subscribable(events),
      created_at: new Date(this.clock.now()).toISOString(),
    };
    await this.work.replays.add(context.environment, replay);
    return replay;
  }

  private async enabled(context: RequestContext, id: string): Promise<StoredWebhookEndpoint> {
    const endpoint = await requireEndpoint(this.endpoints, context, id);
    if (endpoint.status === 'disabled')
      throw new DomainError('conflict', 'webhook_endpoint_disabled', `The webhook endpoint '${id}' is disabled: nothing is sent to it.`);
    return endpoint;
  }

  private shown({ environment }: RequestContext, delivery: StoredDelivery): Promise<WebhookDelivery> {
    return this.excerpts.opened(environment, delivery);
  }

  private async found({ environment }: RequestContext, endpointId: string, id: string): Promise<StoredDelivery> {
    const delivery = isIdOf('webhook_delivery', id) ? await this.deliveries.get(environment, id) : null;
    if (delivery?.webhook_endpoint_id !== endpointId) throw notFound('Webhook delivery', id);
    return delivery;
  }
}

function filterOf({ id, status, event }: ListWebhookDeliveries): PageRequest['where'] {
  if (status !== undefined && event !== undefined) return { index: 'endpoint_status_event', values: [`${id} ${status} ${event}`] };
  if (status !== undefined) return { index: 'endpoint_status', values: [`${id} ${status}`] };
  return event === undefined ? { index: 'endpoint', values: [id] } : { index: 'endpoint_event', values: [`${id} ${event}`] };
}
