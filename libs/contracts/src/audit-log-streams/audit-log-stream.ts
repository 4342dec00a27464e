import { Const, Id, Integer, ListOf, OneOf, Picked, Ref, Text, Time } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';

export type AuditLogStreamType = 'GenericHttps' | 'Splunk';
const AUDIT_LOG_STREAM_TYPES: readonly AuditLogStreamType[] = ['GenericHttps', 'Splunk'];

export type AuditLogStreamState = 'active' | 'inactive' | 'error' | 'invalid';

/** Where an audit trail is sent to as it grows. */
export class AuditLogStream {
  @Const('audit_log_stream') object!: 'audit_log_stream';
  @Id('als', { doc: 'Identifies the stream.' }) id!: string;
  @Ref(() => Organization, { doc: 'The organization whose trail it is.' }) organization_id!: string;
  @OneOf(AUDIT_LOG_STREAM_TYPES, { doc: 'What receives it: any server, by signed requests over HTTPS, or the HTTP Event Collector of Splunk.' })
  type!: AuditLogStreamType;
  @OneOf(['active', 'inactive', 'error', 'invalid'], {
    doc: '`inactive`: paused by hand. `error`: the receiver did not take the last request, which is sent again. `invalid`: it refuses the secret, the index or the address, and is asked once an hour until that is corrected.',
  })
  state!: AuditLogStreamState;
  @Text({
    doc: 'Where it is sent to, https. For Splunk the address of the collector; `/services/collector/event` is added where it is not there.',
    min: 1,
    max: 2_048,
    ascii: true,
    example: 'https://siem.example.com/gatehouse',
  })
  url!: string;
  @Text({ doc: 'Index of Splunk; null: that of the token.', min: 1, max: 255, pattern: /^[a-z0-9_][a-z0-9_-]*$/, nullable: true, example: 'audit' })
  index!: string | null;
  @Text({ doc: 'What Splunk is told as the source.', min: 1, max: 255, ascii: true, visible: true, nullable: true, example: 'gatehouse' })
  source!: string | null;
  @Text({ doc: 'What Splunk is told as the type of source.', min: 1, max: 255, ascii: true, visible: true, nullable: true, example: 'gatehouse:audit' })
  sourcetype!: string | null;
  @Integer({ doc: 'How many events of the trail are still to be sent.', minimum: 0, example: 0 }) waiting_events!: number;
  @Integer({ doc: 'How many were never sent: their retention was over first.', minimum: 0, example: 0 }) skipped_events!: number;
  @Text({ doc: 'Why the last request failed; null where it was taken.', nullable: true, example: 'timeout' }) error!: string | null;
  @Time({ doc: 'When it is sent again after a failure; null where none is waited for.', nullable: true }) next_attempt_at!: string | null;
  @Time({ doc: 'When the receiver took something last; null: never yet.', nullable: true }) last_synced_at!: string | null;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When its settings changed last, or it was paused or resumed.' }) updated_at!: string;
}

/** A stream, as what is said of a trail names it. */
export class ShownAuditLogStream {
  @Picked(AuditLogStream) id!: string;
  @Picked(AuditLogStream) type!: AuditLogStreamType;
  @Picked(AuditLogStream) state!: AuditLogStreamState;
  @Picked(AuditLogStream) last_synced_at!: string | null;
  @Picked(AuditLogStream) created_at!: string;
}

/** One request to the receiver of a stream. */
export class AuditLogStreamDelivery {
  @Const('audit_log_stream_delivery') object!: 'audit_log_stream_delivery';
  @Text({ doc: 'Names the batch, as the `webhook-id` header does. Sent again, a batch has the same.', example: 'als_batch_6c1f0a2b9d3e4f58' })
  batch_id!: string;
  @OneOf(['delivered', 'failed'], { doc: 'Whether the receiver took it.' }) status!: 'delivered' | 'failed';
  @Integer({ doc: 'How many events were in it.', minimum: 0, example: 500 }) events!: number;
  @Integer({ doc: 'How many checkpoints were in it.', minimum: 0, example: 1 }) checkpoints!: number;
  @Integer({ doc: 'Place of its first event in the trail; null where it had none.', nullable: true, minimum: 0, example: 1500 }) first_leaf_index!:
    number | null;
  @Time({ doc: 'When it began.' }) at!: string;
  @Integer({ doc: 'Status of the answer; null when there was none.', nullable: true, minimum: 100, maximum: 999 }) status_code!: number | null;
  @Integer({ doc: 'How long it took, in milliseconds.', minimum: 0 }) latency_ms!: number;
  @Text({ doc: 'Why it failed.', nullable: true, example: 'timeout' }) error!: string | null;
  @Text({ doc: 'How the answer began: at most 1 KiB, without the token.', nullable: true }) response_excerpt!: string | null;
}

export class AuditLogStreamDeliveries {
  @Const('list') object!: 'list';
  @ListOf(() => AuditLogStreamDelivery, { doc: 'The newest first: the last 20 that were taken, and the last 20 that failed.' })
  data!: readonly AuditLogStreamDelivery[];
}
