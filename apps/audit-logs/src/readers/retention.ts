import { Injectable } from '@nestjs/common';
import { CurrentStates, type CurrentStatesOf } from '#libs/event-sourcing/src/following/current-states';
import { Clock } from '#libs/platform/src/clock';
import { auditRetentionDecider, keptSince, type AuditRetention } from '../domain/audit-retention.decider.ts';
import type { TrailOwner } from '../sealing/trail-keys.ts';

/** Nobody sets it for what was done to an environment itself, so it is the longer one. */
const OF_ENVIRONMENTS: AuditRetention = { retention_period_in_days: 365, gone_before: 0 };

/** For how long the events of trails are kept: as it stands at the end of the log, so that a shorter time holds on every replica at once. */
@Injectable()
export class Retention {
  private readonly states: CurrentStatesOf<AuditRetention>;

  constructor(
    private readonly current: CurrentStates,
    private readonly clock: Clock,
  ) {
    this.states = current.of(auditRetentionDecider, (state) => state);
  }

  /**
   * Events that were received before are gone, for whatever is answered, exported or sent (milliseconds since the epoch).
   * @param now another time than that of the clock
   * @throws DomainError `service_unavailable` past the deadline, where one is given: then what was set before the call holds
   */
  async retainedSince(owner: TrailOwner, deadline?: number, now?: number): Promise<number> {
    if (deadline !== undefined) await this.current.headReached(deadline);
    return this.since(owner, now ?? this.clock.now());
  }

  /** The same at a time. */
  async since({ environment, organization }: TrailOwner, now: number): Promise<number> {
    return keptSince(organization === environment ? OF_ENVIRONMENTS : await this.states.get(environment, organization), now);
  }
}
