import { Injectable } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import type { AuditStreamEvent } from '../domain/audit-stream.decider.ts';
import { StreamProgress } from '../readers/stream-progress.ts';

type Ended = FactOf<AuditStreamEvent, 'audit_log_stream.deleted'>;

/** With a stream goes what is kept of its deliveries. */
@Injectable()
export class ForgetEndedStreams implements Reaction<Ended> {
  readonly name = 'forget-ended-audit-streams';
  readonly handles = ['audit_log_stream.deleted'] as const;

  constructor(private readonly progress: StreamProgress) {}

  react({ data, meta }: Recorded<Ended>): Promise<void> {
    return this.progress.end(meta.environment, data.id);
  }
}
