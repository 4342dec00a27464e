import { Integer, Optional, Ref, Text } from '../fields.ts';
import { Command, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { AuditLogEvent } from '../audit-logs/audit-log-event.ts';
import { AuditLogCheckpoint, AuditLogConsistency, AuditLogInclusion, AuditLogKey, AuditLogKeySet } from './audit-log-proofs.ts';

const TRAIL = {
  doc: 'The organization whose trail it is; the id of the environment for that of the environment itself, as its events have it.',
  orEnvironment: true,
} as const;

@Operation({
  get: '/audit_logs/organizations/{organization_id}/checkpoint',
  owner: 'audit-logs',
  summary: 'Get the latest checkpoint of an audit trail',
  description: 'One is signed within seconds of new events, and at most every minute. There is none before the first event.',
  answers: ok(AuditLogCheckpoint),
})
export class GetAuditLogCheckpoint extends Query<AuditLogCheckpoint> {
  @Ref(() => Organization, TRAIL) organization_id!: string;
}

@Operation({
  get: '/audit_logs/organizations/{organization_id}/inclusion',
  owner: 'audit-logs',
  summary: 'Prove that an event is in an audit trail',
  answers: ok(AuditLogInclusion),
  refuses: ['entity_not_found'],
})
export class ProveAuditLogInclusion extends Query<AuditLogInclusion> {
  @Ref(() => Organization, TRAIL) organization_id!: string;
  @Ref(() => AuditLogEvent, { doc: 'The event.' }) event_id!: string;
  @Optional() @Integer({ doc: 'Size of the tree, as a checkpoint has it; absent: that of the latest.', minimum: 1 }) size?: number;
}

@Operation({
  get: '/audit_logs/organizations/{organization_id}/consistency',
  owner: 'audit-logs',
  summary: 'Prove that an audit trail has only grown',
  answers: ok(AuditLogConsistency),
})
export class ProveAuditLogConsistency extends Query<AuditLogConsistency> {
  @Ref(() => Organization, TRAIL) organization_id!: string;
  @Integer({ doc: 'Size of the older tree, as a checkpoint has it.', minimum: 1 }) from!: number;
  @Optional() @Integer({ doc: 'Size of the newer tree; absent: that of the latest checkpoint.', minimum: 1 }) to?: number;
}

@Operation({
  get: '/audit_logs/keys',
  owner: 'audit-logs',
  environmentFrom: 'client_id',
  cachedFor: 300,
  summary: 'Get the keys that verify checkpoints',
  description: 'Save the answer: with it, an export of an audit trail can be verified without this server.',
  answers: ok(AuditLogKeySet),
  refuses: ['invalid_client'],
})
export class GetAuditLogKeys extends Query<AuditLogKeySet> {
  @Text({ doc: 'The client id of the environment.', example: 'client_01JG8K3M0Q5R7T9V1X3Z5B7D9F' }) client_id!: string;
}

@Operation({
  internal: true,
  owner: 'audit-logs',
  summary: 'Have another key sign checkpoints',
  description: 'From now on; what others have signed goes on being verified by them.',
  answers: ok(AuditLogKey),
})
export class RotateAuditLogKeys extends Command<AuditLogKey> {}
