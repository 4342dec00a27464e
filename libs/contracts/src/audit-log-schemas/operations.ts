import { Json, ListOf, Nested, Optional, Text } from '../fields.ts';
import { Command, created, listOf, Operation } from '../operation.ts';
import { PageQuery } from '../pages.ts';
import { ACTION_NAME, AuditLogAction, AuditLogSchema, MAX_TARGET_TYPES, NEW_METADATA, NewActorSchema, NewTargetSchema } from './audit-log-schema.ts';

@Operation({ get: '/audit_logs/actions', owner: 'audit-logs', summary: 'List actions that have a schema', answers: listOf(AuditLogAction) })
export class ListAuditLogActions extends PageQuery<AuditLogAction> {}

@Operation({
  get: '/audit_logs/actions/{action_name}/schemas',
  owner: 'audit-logs',
  summary: 'List the schemas of an action',
  answers: listOf(AuditLogSchema),
  refuses: ['entity_not_found'],
})
export class ListAuditLogSchemas extends PageQuery<AuditLogSchema> {
  @Text({ doc: 'Name of the action, percent-encoded.', ...ACTION_NAME }) action_name!: string;
}

@Operation({
  post: '/audit_logs/actions/{action_name}/schemas',
  owner: 'audit-logs',
  summary: 'Create a schema of an action',
  description:
    'The next version: events that name no version are held to it from now on, and those that name an earlier one to that. An action is there with its first schema. All of it has at most 32 KiB.',
  answers: created(AuditLogSchema),
  refuses: ['invalid_audit_log_schema'],
})
export class CreateAuditLogSchema extends Command<AuditLogSchema> {
  @Text({ doc: 'Name of the action, percent-encoded.', ...ACTION_NAME }) action_name!: string;
  @ListOf(() => NewTargetSchema, { doc: 'What it is done to: events have no other types of targets.', minItems: 1, maxItems: MAX_TARGET_TYPES })
  targets!: readonly NewTargetSchema[];
  @Optional() @Nested(() => NewActorSchema, { doc: 'Who does it.' }) actor?: NewActorSchema;
  @Optional() @Json(NEW_METADATA) metadata?: unknown;
}
