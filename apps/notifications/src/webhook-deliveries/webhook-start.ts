import { Injectable, type OnModuleInit } from '@nestjs/common';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { NotificationsSettings } from '#libs/platform/src/config/settings';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { EnvironmentSweeps } from '#libs/runtime/src/environment-sweeps';
import { DeliveryLog } from './delivery-log.ts';
import { WebhookWork } from './webhook-work.ts';

/** Starts what sends webhooks beside requests, and takes deliveries away when their retention is over. */
@Injectable()
export class WebhookStart implements OnModuleInit {
  constructor(
    private readonly work: WebhookWork,
    private readonly deliveries: DeliveryLog,
    private readonly lifecycle: Lifecycle,
    private readonly followers: LeasedFollowers,
    private readonly sweeps: EnvironmentSweeps,
    private readonly settings: NotificationsSettings,
  ) {}

  onModuleInit(): void {
    for (const component of this.work.backgroundComponents) this.lifecycle.add(component);
    this.work.intake.follow(this.followers, this.lifecycle);
    this.sweeps.add('webhook_deliveries', (environment, now, limit) => this.sweep(environment, now - this.settings.DELIVERIES_RETENTION, limit));
  }

  private async sweep(environment: string, before: number, limit: number): Promise<number> {
    const swept = await this.deliveries.sweep(environment, before, limit);
    return swept + (await this.work.aside.sweep(environment, before, limit));
  }
}
