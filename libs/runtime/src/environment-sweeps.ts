import { Injectable } from '@nestjs/common';
import { ListEnvironments } from '#libs/contracts/src/environments/operations';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import type { SweptData } from '#libs/platform/src/retention';
import { systemContext } from '#libs/platform/src/system-context';
import { Sweepers } from '#libs/read-models/src/sweepers';

/** Removes at most `limit` things of an environment that are out of date at `now`; answers how many it removed. */
type EnvironmentSweep = (environment: string, now: number, limit: number) => Promise<number>;

/** Sweeps what lies in environments, one after the other, until the limit of a sweep is reached. */
@Injectable()
export class EnvironmentSweeps {
  constructor(
    private readonly sweepers: Sweepers,
    private readonly operations: OperationTransport,
    private readonly clock: Clock,
  ) {}

  add(data: SweptData, sweep: EnvironmentSweep): void {
    this.sweepers.add(data, async (now, limit) => {
      const context = systemContext(SYSTEM_ENVIRONMENT, this.clock.now());
      const environments = await this.operations.call(Object.assign(new ListEnvironments(), { context }));
      let swept = 0;
      for (const { id } of environments) if (swept < limit) swept += await sweep(id, now, limit - swept);
      return swept;
    });
  }
}
