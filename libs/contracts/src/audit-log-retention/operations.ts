import { Picked, Ref } from '../fields.ts';
import { Command, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { AuditLogConfiguration, AuditLogsRetention, type RetentionDays } from './audit-log-retention.ts';

const TRAIL = { doc: 'The organization whose trail it is.' };

@Operation({
  get: '/organizations/{id}/audit_logs_retention',
  owner: 'audit-logs',
  summary: 'Get for how long audit events are kept',
  answers: ok(AuditLogsRetention),
})
export class GetAuditLogsRetention extends Query<AuditLogsRetention> {
  @Ref(() => Organization, TRAIL) id!: string;
}

@Operation({
  put: '/organizations/{id}/audit_logs_retention',
  owner: 'audit-logs',
  summary: 'Set for how long audit events are kept',
  description:
    'A shorter time holds at once: what is older is gone, and does not come back. A longer one holds for the events that are still there. What is gone is in no list, export or stream any more; its place in the trail stays, so that later events go on being proven.',
  answers: ok(AuditLogsRetention),
})
export class SetAuditLogsRetention extends Command<AuditLogsRetention> {
  @Ref(() => Organization, TRAIL) id!: string;
  @Picked(AuditLogsRetention) retention_period_in_days!: RetentionDays;
}

@Operation({
  get: '/organizations/{id}/audit_log_configuration',
  owner: 'audit-logs',
  summary: 'Get how the audit trail of an organization is kept',
  answers: ok(AuditLogConfiguration),
})
export class GetAuditLogConfiguration extends Query<AuditLogConfiguration> {
  @Ref(() => Organization, TRAIL) id!: string;
}
