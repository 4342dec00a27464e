import { Const, Id, Nested, OneOf, Ref, Text, Time } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';

export const EXPORT_STATES = ['pending', 'ready', 'error', 'expired'] as const;
export const EXPORT_FORMATS = ['csv', 'ndjson'] as const;

/** Why an export failed. */
export class AuditLogExportError {
  @Text({ doc: 'What kind of fault it is.', example: 'storage_full' }) code!: string;
  @Text({ doc: 'The fault in words.', example: 'The store of files was full, also when it was tried again.' }) message!: string;
}

/** A file of the events of an audit trail. */
export class AuditLogExport {
  @Const('audit_log_export') object!: 'audit_log_export';
  @Id('audit_log_export', { doc: 'Identifies the export.' }) id!: string;
  @Ref(() => Organization, { doc: 'The organization whose trail it is of; the id of the environment for that of the environment itself.', orEnvironment: true })
  organization_id!: string;
  @OneOf(EXPORT_FORMATS, { doc: 'What the file is written in.' }) format!: (typeof EXPORT_FORMATS)[number];
  @OneOf(EXPORT_STATES, {
    doc: '`pending` while the file is made; `ready` for seven days; then the file is gone and it is `expired`. `error`: no file will come of it, and `error` tells why.',
  })
  state!: (typeof EXPORT_STATES)[number];
  @Text({
    doc: 'Where the file can be downloaded, without an API key, for ten minutes: each answer has a new address. Null unless it is ready.',
    nullable: true,
    example: 'https://api.example.com/audit_log_exports/…?signature=…',
  })
  url!: string | null;
  @Text({
    doc: 'The same for the file that proves it; store it beside the other, under the same name with `.proof` behind it.',
    nullable: true,
    example: 'https://api.example.com/audit_log_exports/…?signature=…',
  })
  proof_url!: string | null;
  @Nested(() => AuditLogExportError, { doc: 'Why there will be no file; null otherwise.', nullable: true }) error!: AuditLogExportError | null;
  @Time({ doc: 'When the file goes; null until it is ready.', nullable: true }) expires_at!: string | null;
  @Time({ doc: 'When it was asked for: what was recorded before is in it.' }) created_at!: string;
  @Time({ doc: 'When its state changed last.' }) updated_at!: string;
}
