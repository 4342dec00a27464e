import { Injectable } from '@nestjs/common';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { MessageBus } from '#libs/messaging/src/message-bus';
import { Clock } from '#libs/platform/src/clock';
import { NotificationsSettings } from '#libs/platform/src/config/settings';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import type { Part } from '#libs/platform/src/lifecycle';
import { LeasedWork, type Work } from '#libs/read-models/src/leased-work';
import { Leases } from '#libs/read-models/src/leases';
import { ReadModels } from '#libs/read-models/src/read-models';
import { Feed } from '../feed/feed.ts';
import { EndpointDirectory } from '../webhook-endpoints/endpoint-directory.ts';
import { EndpointSecrets } from '../webhook-endpoints/endpoint-secrets.ts';
import { DeliveryLog } from './delivery-log.ts';
import { RetrySchedule } from './retry-schedule.ts';
import { TargetRule } from './target-address.ts';
import { ResponseExcerpts } from './response-excerpts.ts';
import { WebhookAttempts } from './webhook-attempts.ts';
import { WebhookIntake } from './webhook-intake.ts';
import { WebhookQueues } from './webhook-queues.ts';
import { WebhookReplays } from './webhook-replays.ts';
import { WebhookSender } from './webhook-sender.ts';

/** What one process does at a time, by the name of its lease. */
const QUEUES = 'notifications.webhook-queues';
const REPLAYS = 'notifications.webhook-replays';

/** Everything that sends webhooks, put together. */
@Injectable()
export class WebhookWork {
  readonly queues: WebhookQueues;
  readonly replays: WebhookReplays;
  /** What runs beside requests. */
  readonly parts: readonly Part[];

  constructor(
    bus: MessageBus,
    events: EventStore,
    readModels: ReadModels,
    leases: Leases,
    feed: Feed,
    deliveries: DeliveryLog,
    secrets: EndpointSecrets,
    excerpts: ResponseExcerpts,
    rule: TargetRule,
    schedule: RetrySchedule,
    settings: NotificationsSettings,
    clock: Clock,
    log: Log,
    metrics: Metrics,
  ) {
    const timeout = settings.WEBHOOK_TIMEOUT;
    const sender = new WebhookSender({ rule, timeout });
    const attempts = new WebhookAttempts({ sender, excerpts, clock, metrics, vendorWord: settings.VENDOR_WORD });
    const directory = new EndpointDirectory({ events, readModels, secrets, clock, log });
    const held = (name: string) => ({ isHolder: () => leases.isHeld(name) });
    this.queues = new WebhookQueues({ directory, deliveries, feed, attempts, schedule, clock, log, metrics, readModels, ...held(QUEUES) });
    this.replays = new WebhookReplays({ readModels, feed, directory, deliveries, queues: this.queues, clock, ...held(REPLAYS) });
    const leased = (name: string, work: Work): Part => new LeasedWork(name, work, { leases, log });
    this.parts = [
      directory,
      { name: 'webhook connections', stage: 'announcements', start: async () => {}, stop: () => sender.close() },
      new WebhookIntake({ bus, directory, deliveries, queues: this.queues, attempts, schedule, clock, log, metrics, timeout }),
      leased(QUEUES, (signal) => this.queues.run(signal)),
      leased(REPLAYS, (signal) => this.replays.run(signal)),
    ];
  }
}
