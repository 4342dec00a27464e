import { ListOf, OneOf, Optional, Ref, Text } from '../fields.ts';
import { Command, created, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { AuditLogExport, EXPORT_FORMATS } from './audit-log-export.ts';

const MANY = { maxItems: 100 } as const;
const NAMES = { text: { min: 1, max: 500 } } as const;
const WORDS = { text: { min: 1, max: 255 } } as const;

@Operation({
  post: '/audit_logs/exports',
  owner: 'audit-logs',
  summary: 'Export an audit trail',
  description:
    'Has a file made of the events whose `occurred_at` lies in the range, in the order of their arrival, and a second one that proves that they are as they were recorded. It holds what was recorded before it was asked for. An event has to match all filters that are given, and one value of each. Ask for the export until it is `ready`.',
  answers: created(AuditLogExport),
  refuses: ['invalid_audit_log_export_range_date', 'audit_log_trail_diverged', 'blob_store_not_configured'],
})
export class CreateAuditLogExport extends Command<AuditLogExport> {
  @Ref(() => Organization, {
    doc: 'The organization whose trail is exported; the id of the environment for that of the environment itself.',
    orEnvironment: true,
  })
  organization_id!: string;
  @Text({
    doc: 'Begin with what happened at this time; a day alone is its first instant in UTC.',
    format: 'date-or-time',
    example: '2026-01-01T00:00:00.000Z',
  })
  range_start!: string;
  @Text({ doc: 'End with what happened at this time, at most 366 days later.', format: 'date-or-time', example: '2026-02-01T00:00:00.000Z' })
  range_end!: string;
  @Optional() @ListOf(WORDS, { doc: 'Only events of these actions.', ...MANY, example: ['document.shared'] }) actions?: readonly string[];
  @Optional() @ListOf(NAMES, { doc: 'Only events of actors with exactly these names.', ...MANY }) actor_names?: readonly string[];
  @Optional() @ListOf(WORDS, { doc: 'Only events of actors with these ids.', ...MANY }) actor_ids?: readonly string[];
  @Optional() @ListOf(WORDS, { doc: 'Only events with targets of these types.', ...MANY }) targets?: readonly string[];
  @Optional() @ListOf(NAMES, { doc: 'Earlier name of `actor_names`: names of both are looked for.', ...MANY }) actors?: readonly string[];
  @Optional() @OneOf(EXPORT_FORMATS, { doc: 'What the file is written in; absent: `csv`.' }) format?: (typeof EXPORT_FORMATS)[number];
}

@Operation({
  get: '/audit_logs/exports/{id}',
  owner: 'audit-logs',
  summary: 'Get an export of an audit trail',
  answers: ok(AuditLogExport),
})
export class GetAuditLogExport extends Query<AuditLogExport> {
  @Ref(() => AuditLogExport, { doc: 'The export.' }) id!: string;
}
