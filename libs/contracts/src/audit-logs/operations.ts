import { ListOf, Nested, OneOf, Optional, Ref, Text } from '../fields.ts';
import { Command, listOf, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { AuditLogEvent, AuditLogEventAccepted, NewAuditLogEvent } from './audit-log-event.ts';

@Operation({
  post: '/audit_logs/events',
  owner: 'audit-logs',
  summary: 'Record an event',
  description:
    'Answered once it is durable. Where its action has a schema, the event has to conform to it. A request with the `Idempotency-Key` of one of the last 24 hours counts as that one, whatever its body. Without a key the content decides: what equals an event of the last 24 hours that came without a key is that event, also where the repeat has a key.',
  answers: ok(AuditLogEventAccepted),
  refuses: ['invalid_audit_log_event'],
  idempotency: 'own',
  maxBody: 32 * 1024,
})
export class CreateAuditLogEvent extends Command<AuditLogEventAccepted> {
  @Ref(() => Organization, { doc: 'The organization in which it happened.' }) organization_id!: string;
  @Nested(() => NewAuditLogEvent, { doc: 'What happened.' }) event!: NewAuditLogEvent;
}

/** Of a filter: your texts, which may hold commas. */
const VALUES = { maxItems: 20, commas: 'kept in brackets' } as const;

@Operation({
  get: '/audit_logs/events',
  owner: 'audit-logs',
  summary: 'List events of an audit trail',
  description:
    'In the order of `occurred_at`; events of one time in the order of their arrival. Give `organization_id`, or `scope=environment` for what was done to the environment itself (who changed its settings, keys, roles, directories and the like, from where, and what was before), and at most one of the filters. A value that has a comma in it stands in brackets: `actor_names[]=Lovelace, Ada`.',
  answers: listOf(AuditLogEvent),
  refuses: ['entity_not_found'],
})
export class ListAuditLogEvents extends PageQuery<AuditLogEvent> {
  @Optional() @Ref(() => Organization, { doc: 'The organization whose trail is read.' }) organization_id?: string;
  @Optional() @OneOf(['environment'], { doc: 'The trail of the environment itself, instead of that of an organization.' }) scope?: 'environment';
  @Optional()
  @Text({
    doc: 'Begin with the first event of this time; a day alone is its first instant in UTC.',
    format: 'date-or-time',
    example: '2026-01-15T12:00:00.000Z',
  })
  range_start?: string;
  @Optional()
  @Text({ doc: 'End with the last event of this time.', format: 'date-or-time', example: '2026-01-16T12:00:00.000Z' })
  range_end?: string;
  @Optional()
  @ListOf({ text: { min: 1, max: 255 } }, { doc: 'Only events of these actions.', ...VALUES, example: ['document.shared'] })
  actions?: readonly string[];
  @Optional() @ListOf({ text: { min: 1, max: 255 } }, { doc: 'Only events of actors with these ids.', ...VALUES }) actor_ids?: readonly string[];
  @Optional() @ListOf({ text: { min: 1, max: 500 } }, { doc: 'Only events of actors with exactly these names.', ...VALUES }) actor_names?: readonly string[];
  @Optional() @ListOf({ text: { min: 1, max: 255 } }, { doc: 'Only events with targets of these types.', ...VALUES }) target_types?: readonly string[];
  @Optional() @ListOf({ text: { min: 1, max: 255 } }, { doc: 'Only events with targets of these ids.', ...VALUES }) target_ids?: readonly string[];
}

@Operation({ get: '/audit_logs/events/{id}', owner: 'audit-logs', summary: 'Get an event of an audit trail', answers: ok(AuditLogEvent) })
export class GetAuditLogEvent extends Query<AuditLogEvent> {
  @Ref(() => AuditLogEvent, { doc: 'The event.' }) id!: string;
}
