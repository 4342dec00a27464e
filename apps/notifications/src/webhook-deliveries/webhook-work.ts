import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { Injectable } from '@nestjs/common';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { Clock } from '#libs/platform/src/clock';
import { NotificationsSettings, WebhookSettings } from '#libs/platform/src/config/settings';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { Replicas } from '#libs/platform/src/replicas';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import { LeasedWork, type Work } from '#libs/read-models/src/leased-work';
import { Leases } from '#libs/read-models/src/leases';
import { ReadModels } from '#libs/read-models/src/read-models';
import { FeedReader } from '../readers/feed-reader.ts';
import { EndpointDirectory } from '../targets/endpoint-directory.ts';
import { EndpointSecrets } from '../targets/endpoint-secrets.ts';
import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { DeliveryLog } from './delivery-log.ts';
import { RetrySchedule } from '#libs/messaging/src/webhooks/retry-schedule';
import { ResponseExcerpts } from './response-excerpts.ts';
import { WebhookAttempts } from './webhook-attempts.ts';
import { FirstPosition } from './first-position.ts';
import { SetAside } from './set-aside.ts';
import { WebhookIntake } from './webhook-intake.ts';
import { WebhookQueues } from './webhook-queues.ts';
import { WebhookRepeats } from './webhook-repeats.ts';
import { WebhookReplays } from './webhook-replays.ts';
import { WebhookSender } from '#libs/messaging/src/webhooks/webhook-sender';

/** What one process does at a time, by the name of its lease. */
const QUEUES = 'notifications.webhook-queues';
const REPLAYS = 'notifications.webhook-replays';

/** Everything that sends webhooks, put together. */
@Injectable()
export class WebhookWork {
  readonly queues: WebhookQueues;
  readonly replays: WebhookReplays;
  readonly aside: SetAside;
  readonly intake: WebhookIntake;
  /** What runs beside requests. */
  readonly backgroundComponents: readonly BackgroundComponent[];
  /** Also in a process that only the command line runs, where none of the components was started. */
  readonly repeats: WebhookRepeats;

  constructor(
    events: EventStore,
    following: LogFollowing,
    readModels: ReadModels,
    leases: Leases,
    replicas: Replicas,
    vault: Vault,
    feed: FeedReader,
    deliveries: DeliveryLog,
    secrets: EndpointSecrets,
    excerpts: ResponseExcerpts,
    rule: TargetRule,
    schedule: RetrySchedule,
    settings: NotificationsSettings,
    webhooks: WebhookSettings,
    clock: Clock,
    log: Log,
    metrics: Metrics,
  ) {
    const timeout = webhooks.WEBHOOK_TIMEOUT;
    const sender = new WebhookSender({ rule, timeout });
    const attempts = new WebhookAttempts({ sender, excerpts, clock, metrics, vendorWord: webhooks.VENDOR_WORD });
    this.aside = new SetAside({ readModels, vault, clock, log, metrics });
    const endpoints = (): EndpointDirectory => new EndpointDirectory({ events, following, readModels, secrets, clock, log });
    const directory = endpoints();
    const held = (name: string) => ({ isHolder: () => leases.isHeld(name) });
    this.queues = new WebhookQueues({ directory, deliveries, feed, attempts, schedule, clock, log, metrics, readModels, ...held(QUEUES) });
    this.replays = new WebhookReplays({ readModels, feed, directory, deliveries, queues: this.queues, clock, ...held(REPLAYS) });
    const leased = (name: string, work: Work): BackgroundComponent => new LeasedWork(name, directory.knownTo(work), { leases, log });
    const beginning = new FirstPosition({ events, readModels, feed, directory, clock, retention: settings.DELIVERIES_RETENTION });
    const shared = { readModels, leases, replica: replicas.id, beginning, directory, retention: settings.EVENTS_RETENTION };
    this.intake = new WebhookIntake({ ...shared, deliveries, queues: this.queues, aside: this.aside, attempts, schedule, clock, log, metrics, timeout });
    this.repeats = new WebhookRepeats({ events, aside: this.aside, endpoints, deliveries, queues: this.queues, clock });
    this.backgroundComponents = [
      directory,
      { name: 'webhook connections', stage: 'announcements', start: async () => {}, stop: () => sender.close() },
      this.intake,
      leased(QUEUES, (signal) => this.queues.run(signal)),
      leased(REPLAYS, (signal) => this.replays.run(signal)),
    ];
  }
}
