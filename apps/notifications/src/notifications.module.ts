import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ListEnvironments } from '#libs/contracts/src/environments/operations';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { NotificationsSettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { Sweepers } from '#libs/read-models/src/sweepers';
import { feature, service } from '#libs/runtime/src/feature';
import { Feed } from './feed/feed.ts';
import { FeedReader } from './readers/feed-reader.ts';
import { feedView } from './views/feed.view.ts';
import { DeliveryLog } from './webhook-deliveries/delivery-log.ts';
import { ResponseExcerpts } from './webhook-deliveries/response-excerpts.ts';
import { RETRY_PAUSES, RetrySchedule } from './webhook-deliveries/retry-schedule.ts';
import { TargetRule } from './targets/target-address.ts';
import { WebhookDeliveries } from './webhook-deliveries/webhook-deliveries.ts';
import { WebhookWork } from './webhook-deliveries/webhook-work.ts';
import { webhookEndpointDecider } from './domain/webhook-endpoint.decider.ts';
import { EndpointSecrets } from './targets/endpoint-secrets.ts';
import { WebhookEndpoints } from './webhook-endpoints/webhook-endpoints.ts';
import { webhookEndpointsView } from './views/webhook-endpoints.view.ts';

const targetRule = {
  provide: TargetRule,
  useFactory: ({ GATEHOUSE_MODE }: PlatformSettings, { WEBHOOK_ALLOW_NETWORKS }: NotificationsSettings) =>
    new TargetRule({ mode: GATEHOUSE_MODE, allowNetworks: WEBHOOK_ALLOW_NETWORKS }),
  inject: [PlatformSettings, NotificationsSettings],
};

const retrySchedule = {
  provide: RetrySchedule,
  useFactory: ({ GATEHOUSE_MODE }: PlatformSettings) => new RetrySchedule(RETRY_PAUSES[GATEHOUSE_MODE]),
  inject: [PlatformSettings],
};

/** Starts the work beside requests, and sweeps what is past its retention. */
@Injectable()
class NotificationsWork implements OnModuleInit {
  constructor(
    private readonly feed: FeedReader,
    private readonly deliveries: DeliveryLog,
    private readonly work: WebhookWork,
    private readonly operations: OperationTransport,
    private readonly lifecycle: Lifecycle,
    private readonly followers: LeasedFollowers,
    private readonly sweepers: Sweepers,
    private readonly settings: NotificationsSettings,
    private readonly clock: Clock,
  ) {}

  onModuleInit(): void {
    for (const part of this.work.parts) this.lifecycle.add(part);
    this.work.intake.follow(this.followers, this.lifecycle);
    this.sweepers.add('events_feed', (_now, limit) => this.everywhere(limit, (environment, left) => this.feed.sweep(environment, left)));
    this.sweepers.add('webhook_deliveries', (now, limit) =>
      this.everywhere(limit, (environment, left) => this.sweepDeliveries(environment, now - this.settings.DELIVERIES_RETENTION, left)),
    );
  }

  private async sweepDeliveries(environment: string, before: number, limit: number): Promise<number> {
    const swept = await this.deliveries.sweep(environment, before, limit);
    return swept + (await this.work.aside.sweep(environment, before, limit));
  }

  /** Sweeps one environment after the other, until `limit` is reached. */
  private async everywhere(limit: number, sweep: (environment: string, limit: number) => Promise<number>): Promise<number> {
    const context = systemContext(SYSTEM_ENVIRONMENT, this.clock.now());
    const environments = await this.operations.call(Object.assign(new ListEnvironments(), { context }));
    let swept = 0;
    for (const { id } of environments) if (swept < limit) swept += await sweep(id, limit - swept);
    return swept;
  }
}

const feed = feature({ views: [feedView], providers: [Feed, FeedReader] });
const endpoints = feature({ deciders: [webhookEndpointDecider], views: [webhookEndpointsView], providers: [EndpointSecrets, WebhookEndpoints, targetRule] });
const deliveries = feature({ providers: [DeliveryLog, ResponseExcerpts, WebhookDeliveries, WebhookWork, NotificationsWork, retrySchedule] });

/** Nobody outside is told of endpoints. */
export const notifications = service('notifications', [endpoints, feed, deliveries], { isForwarded: false });
