import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import {
  CreateWebhookEndpoint,
  DeleteWebhookEndpoint,
  GetWebhookEndpoint,
  ListWebhookEndpoints,
  RotateWebhookEndpointSecret,
  UpdateWebhookEndpoint,
} from '#libs/contracts/src/webhook-endpoints/operations';
import { WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { NotificationsSettings } from '#libs/platform/src/config/settings';
import { refusedField, unavailable } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { pageOf } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { ShortLived } from '#libs/read-models/src/short-lived';
import {
  createEndpoint,
  deleteEndpoint,
  requireWebhookEndpoint,
  rotateSecret,
  updateEndpoint,
  webhookEndpointDecider,
  type StoredWebhookEndpoint,
  type WebhookEndpointEvent,
  type WebhookEndpointState,
} from '../domain/webhook-endpoint.decider.ts';
import { EndpointSecrets } from '../targets/endpoint-secrets.ts';
import { subscribable } from '../targets/subscribable.ts';
import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { requireEndpoint, webhookEndpointsView } from '../views/webhook-endpoints.view.ts';

const serialise = serialiserOf(WebhookEndpoint);
/** Of a process that died in its turn, nobody waits for longer. */
const LONGEST_TURN = 5_000;

@Injectable()
export class WebhookEndpoints {
  private readonly rows: Table<StoredWebhookEndpoint>;

  constructor(
    private readonly repository: Repository,
    private readonly secrets: EndpointSecrets,
    private readonly rule: TargetRule,
    private readonly settings: NotificationsSettings,
    private readonly leases: ShortLived,
    private readonly clock: Clock,
    private readonly deletions: Deletions,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(webhookEndpointsView));
  }

  @Handles(ListWebhookEndpoints)
  async list(query: ListWebhookEndpoints): Promise<Serialised<List<WebhookEndpoint>>> {
    return pageOf(this.rows, query, { idPrefix: 'we', textOf: async (row) => serialise(await this.opened(query.context, contentOf(row))) });
  }

  @Handles(CreateWebhookEndpoint)
  async create(operation: CreateWebhookEndpoint): Promise<WebhookEndpoint> {
    const { context } = operation;
    const url = this.rule.url(operation.endpoint_url);
    const events = subscribable(operation.events);
    return this.oneAtATime(context, async () => {
      const id = `we_${derivedId(context.commandId, 0)}`;
      await this.refuseTooMany(context, id);
      const secret = await this.secrets.make(context.environment, id);
      return this.transact(context, id, createEndpoint({ ...url, events, secret }));
    });
  }

  @Handles(GetWebhookEndpoint)
  async show({ context, id }: GetWebhookEndpoint): Promise<WebhookEndpoint> {
    return this.opened(context, await requireEndpoint(this.rows, context, id));
  }

  @Handles(UpdateWebhookEndpoint)
  async update({ context, id, endpoint_url, status, events }: UpdateWebhookEndpoint): Promise<WebhookEndpoint> {
    await requireEndpoint(this.rows, context, id);
    const changes = {
      ...(endpoint_url !== undefined && this.rule.url(endpoint_url)),
      ...(status !== undefined && { status }),
      ...(events !== undefined && { events: subscribable(events) }),
    };
    return this.transact(context, id, updateEndpoint(id, changes));
  }

  @Handles(RotateWebhookEndpointSecret)
  async rotateSecret({ context, id, overlap_seconds }: RotateWebhookEndpointSecret): Promise<WebhookEndpoint> {
    await requireEndpoint(this.rows, context, id);
    return this.transact(context, id, rotateSecret(id, await this.secrets.make(context.environment, id), overlap_seconds));
  }

  @Handles(DeleteWebhookEndpoint)
  async delete({ context, id }: DeleteWebhookEndpoint): Promise<void> {
    await this.deletions.once({ context, what: 'Webhook endpoint', id }, async () => {
      await requireEndpoint(this.rows, context, id);
      return this.repository.transact(webhookEndpointDecider, context, id, deleteEndpoint(id));
    });
  }

  private async transact(context: RequestContext, id: string, decision: Decision<WebhookEndpointState, WebhookEndpointEvent>): Promise<WebhookEndpoint> {
    const { state } = await this.repository.transact(webhookEndpointDecider, context, id, decision);
    return this.opened(context, requireWebhookEndpoint(state, id));
  }

  private async opened({ environment }: RequestContext, endpoint: StoredWebhookEndpoint): Promise<WebhookEndpoint> {
    return { ...endpoint, secret: await this.secrets.current(environment, endpoint) };
  }

  /** Creations in an environment wait for each other, wherever they were asked for, so that the limit holds among them. */
  private async oneAtATime<Created>({ environment, commandId, deadline }: RequestContext, create: () => Promise<Created>): Promise<Created> {
    const turn = `webhook-endpoints.${environment}`;
    let lease = await this.leases.lease(turn, commandId, LONGEST_TURN);
    for (; lease === null; lease = await this.leases.lease(turn, commandId, LONGEST_TURN)) {
      if (this.clock.now() > deadline) throw unavailable('Too many webhook endpoints are being created at once.');
      await pause(5 + 20 * Math.random());
    }
    try {
      return await create();
    } finally {
      // What cannot be given back ends by itself.
      await this.leases.release(turn, commandId, lease.token).catch(() => {});
    }
  }

  private async refuseTooMany({ environment }: RequestContext, id: string): Promise<void> {
    const { WEBHOOK_ENDPOINTS_PER_ENVIRONMENT: limit } = this.settings;
    const { rows } = await this.rows.page(environment, { order: 'asc', limit });
    // A repeated command has its endpoint already.
    if (rows.length < limit || rows.some((row) => row.id === id)) return;
    const message = `The environment has ${limit} webhook endpoints and may not have more.`;
    throw refusedField('invalid', 'webhook_endpoint_limit_reached', { field: 'endpoint_url', message });
  }
}
