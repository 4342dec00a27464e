import { Injectable } from '@nestjs/common';
import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { Clock } from '#libs/platform/src/clock';
import { ExpiredExports } from './expired-exports.ts';

type Deleted = FactOf<OrganizationEvent, 'organization.deleted'>;

/** With an organization go the files of its exports. */
@Injectable()
export class EndedOrganizationReaction implements Reaction<Deleted> {
  readonly name = 'audit-logs.exports-of-organizations';
  readonly handles = ['organization.deleted'] as const;
  readonly from = 'head';

  constructor(
    private readonly exports: ExpiredExports,
    private readonly clock: Clock,
  ) {}

  react({ stream, meta: { environment } }: Recorded<Deleted>): Promise<void> {
    return this.exports.ofOrganization(environment, streamKeyOf(stream), this.clock.now());
  }
}
