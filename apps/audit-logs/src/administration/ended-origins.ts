import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Origins } from '#libs/event-sourcing/src/sealing/origins';
import { ReadModels } from '#libs/read-models/src/read-models';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { EnvironmentSweeps } from '#libs/runtime/src/environment-sweeps';
import { Retention } from '../readers/retention.ts';
import { DoubtedClock } from '../retention/believed-time.ts';

const AGAIN = 3_600_000;

/** Ends what is known of where facts of administration came from with the trail that tells of it: their keys go, month by month. */
@Injectable()
export class EndedOrigins implements OnModuleInit {
  private readonly clock: DoubtedClock;
  private readonly lookedAt = new Map<string, number>();

  constructor(
    private readonly origins: Origins,
    private readonly retention: Retention,
    private readonly sweeps: EnvironmentSweeps,
    readModels: ReadModels,
  ) {
    this.clock = DoubtedClock.of(readModels);
  }

  onModuleInit(): void {
    this.sweeps.add('administration_origins', async (environment, now) => (await this.sweep(SYSTEM_ENVIRONMENT, now)) + (await this.sweep(environment, now)));
  }

  /** Answers how many months of it have ended. */
  private async sweep(environment: string, now: number): Promise<number> {
    const before = this.lookedAt.get(environment);
    if (before !== undefined && Math.abs(now - before) < AGAIN) return 0;
    this.lookedAt.set(environment, now);
    const believed = await this.clock.believed(now);
    const ended = await this.origins.endBefore(environment, await this.retention.since({ environment, organization: environment }, believed));
    return ended;
  }
}
