import { Injectable } from '@nestjs/common';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { passOver, Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { HolderErased } from '#libs/event-sourcing/src/sealing/key-store';
import { addressGroup } from '#libs/platform/src/address-group';
import { Clock } from '#libs/platform/src/clock';
import type { DomainError } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ShortLived } from '#libs/read-models/src/short-lived';
import {
  attemptDecider,
  recordFailure,
  recordRisk,
  type AttemptEvent,
  type AttemptState,
  type DetectedRisk,
  type FailedAttempt,
} from '../domain/attempt.decider.ts';
import type { Factor } from '../domain/session.decider.ts';
import { AddressHolders } from '../readers/address-holders.ts';

const COLLECTION = 'failed_attempts';
const MINUTE_MS = 60_000;
/** In a minute: beyond them strangers would fill the log. */
const RECORDED_PER_ACCOUNT = 10;
const RECORDED_PER_ADDRESS = 100;

/** Records that somebody could not show who they are: so many in a minute, and beyond that in a metric alone. */
@Injectable()
export class FailedAttempts {
  private readonly failures;

  constructor(
    private readonly repository: Repository,
    private readonly store: ShortLived,
    private readonly naming: Naming,
    private readonly addresses: AddressHolders,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.failures = metrics.counter({
      name: 'sign_in_failures_total',
      help: 'Factors that were not proven; `recorded` is `no` for those that are no event, since too many came for one account or from one address.',
      labels: ['factor', 'recorded'],
    });
  }

  async record(context: RequestContext, factor: Factor, { code, message }: DomainError, about: Omit<FailedAttempt, 'id' | 'error' | 'holder'>): Promise<void> {
    const isRecorded = await this.mayBeRecorded(context.environment, about);
    this.failures.inc({ factor, recorded: isRecorded ? 'yes' : 'no' });
    if (!isRecorded) return;
    const id = `attempt_${derivedId(context.commandId, 0)}`;
    const holder = about.user_id === null && about.email !== null && { holder: this.addresses.current(about.email) };
    await this.recorded(context, id, recordFailure(factor, { id, ...about, ...holder, error: { code, message } }));
  }

  /** What speaks against a sign-in, as often as failures. Takes one place among the aggregates that the command asks. */
  async recordRisk(context: RequestContext, risk: Omit<DetectedRisk, 'id'>): Promise<void> {
    if (!(await this.mayBeRecorded(context.environment, risk, 'risk '))) return passOver(context);
    const id = `radar_att_${derivedId(context.commandId, 0)}`;
    await this.recorded(context, id, recordRisk({ id, ...risk }));
  }

  private async recorded(context: RequestContext, id: string, decision: Decision<AttemptState, AttemptEvent>): Promise<void> {
    try {
      await this.repository.transact(attemptDecider, context, id, decision);
    } catch (error) {
      // Nobody is told of whoever was erased meanwhile.
      if (!(error instanceof HolderErased)) throw error;
    }
  }

  /** `kind`: counted apart. */
  private async mayBeRecorded(
    environment: string,
    { user_id, email, ip_address }: Pick<FailedAttempt, 'user_id' | 'email' | 'ip_address'>,
    kind = '',
  ): Promise<boolean> {
    const account = await this.count(environment, `${kind}account`, user_id ?? email ?? '');
    const address = ip_address === null ? 0 : await this.count(environment, `${kind}address`, addressGroup(ip_address) ?? ip_address);
    return account <= RECORDED_PER_ACCOUNT && address <= RECORDED_PER_ADDRESS;
  }

  private count(environment: string, kind: string, who: string): Promise<number> {
    const now = this.clock.now();
    const end = now - (now % MINUTE_MS) + MINUTE_MS;
    return this.store.add(COLLECTION, `${environment} ${this.naming.keyOf(kind, who)} ${end}`, 1, end);
  }
}
