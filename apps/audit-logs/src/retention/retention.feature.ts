import { feature } from '#libs/runtime/src/feature';
import { auditRetentionDecider } from '../domain/audit-retention.decider.ts';
import { AuditRetentions } from './audit-retentions.ts';

export const retention = feature({ deciders: [auditRetentionDecider], providers: [AuditRetentions] });
