import { ShownAuditLogStream } from '../audit-log-streams/audit-log-stream.ts';
import { Integer, Nested, OneOf, Optional, Picked, Ref } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';

const DAYS = [30, 365] as const;

/** For how long events of audit trails are kept. */
export type RetentionDays = (typeof DAYS)[number];

/** For how long the events of a trail are kept. */
export class AuditLogsRetention {
  @Integer({ doc: 'For how many days an event is kept, counted from when it was received: 30 where nothing was set.', values: DAYS, example: 365 })
  retention_period_in_days!: RetentionDays;
}

/** How the audit trail of an organization is kept. */
export class AuditLogConfiguration {
  @Ref(() => Organization, { doc: 'The organization whose trail it is.' }) organization_id!: string;
  @Picked(AuditLogsRetention) retention_period_in_days!: RetentionDays;
  @OneOf(['active', 'inactive', 'disabled'], {
    doc: '`active` from the first event on, `inactive` before it. No trail is `disabled`: events of every organization are recorded.',
  })
  state!: 'active' | 'inactive' | 'disabled';
  @Optional() @Nested(() => ShownAuditLogStream, { doc: 'Where it is sent to; absent where it is sent nowhere.' }) log_stream?: ShownAuditLogStream;
}
