import { OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, empty, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { AuditLogStream, AuditLogStreamDeliveries, type AuditLogStreamType } from './audit-log-stream.ts';

const OF = { doc: 'The organization.' };
const SECRET_EXAMPLE = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=';

@Operation({
  put: '/admin/organizations/{id}/audit_log_stream',
  owner: 'audit-logs',
  summary: 'Send the audit trail of an organization to a receiver',
  description:
    'Creates the stream, or puts other settings in the place of those that it has; where it was up to, it goes on. The secret is never shown, and may be left out where type and address stay. Each event is sent at least once and in its place, in batches of up to 500, with the checkpoints of the trail among them; what fails is sent again until it is taken.',
  answers: ok(AuditLogStream),
  example: { type: 'GenericHttps', url: 'https://siem.example.com/gatehouse', secret: SECRET_EXAMPLE },
})
export class ConfigureAuditLogStream extends Command<AuditLogStream> {
  @Ref(() => Organization, OF) id!: string;
  @Picked(AuditLogStream) type!: AuditLogStreamType;
  @Picked(AuditLogStream) url!: string;
  @Optional()
  @Text({
    doc: 'Signs what is sent, as webhooks are signed. Only with `GenericHttps`, which needs it.',
    min: 16,
    max: 255,
    ascii: true,
    visible: true,
    secret: true,
    example: SECRET_EXAMPLE,
  })
  secret?: string;
  @Optional()
  @Text({
    doc: 'Token of the HTTP Event Collector. Only with `Splunk`, which needs it.',
    min: 8,
    max: 255,
    pattern: /^[A-Za-z0-9._~+/=-]+$/,
    secret: true,
    example: '5f8b2c1e-0000-4000-8000-a1b2c3d4e5f6',
  })
  token?: string;
  @Optional() @Picked(AuditLogStream) index?: string | null;
  @Optional() @Picked(AuditLogStream) source?: string | null;
  @Optional() @Picked(AuditLogStream) sourcetype?: string | null;
  @Optional()
  @OneOf(['now', 'beginning'], {
    doc: 'What a stream that is created begins with: what is recorded from now on (this where it is absent), or all that is retained. Says nothing where there is a stream.',
  })
  from?: 'now' | 'beginning';
}

@Operation({
  get: '/admin/organizations/{id}/audit_log_stream',
  owner: 'audit-logs',
  summary: 'Get the audit log stream of an organization',
  answers: ok(AuditLogStream),
})
export class GetAuditLogStream extends Query<AuditLogStream> {
  @Ref(() => Organization, OF) id!: string;
}

@Operation({
  delete: '/admin/organizations/{id}/audit_log_stream',
  owner: 'audit-logs',
  summary: 'Delete the audit log stream of an organization',
  description: 'Nothing is sent any more once this is answered. A stream that is created later is another one.',
  answers: empty(204),
})
export class DeleteAuditLogStream extends Command<void> {
  @Ref(() => Organization, OF) id!: string;
}

@Operation({
  post: '/admin/organizations/{id}/audit_log_stream/pause',
  owner: 'audit-logs',
  summary: 'Pause the audit log stream of an organization',
  description: 'Nothing is sent until it is resumed; what is recorded meanwhile waits, for as long as it is retained.',
  answers: ok(AuditLogStream),
})
export class PauseAuditLogStream extends Command<AuditLogStream> {
  @Ref(() => Organization, OF) id!: string;
}

@Operation({
  post: '/admin/organizations/{id}/audit_log_stream/resume',
  owner: 'audit-logs',
  summary: 'Resume the audit log stream of an organization',
  description: 'Goes on from where it was paused. Where it failed, it is sent again at once.',
  answers: ok(AuditLogStream),
})
export class ResumeAuditLogStream extends Command<AuditLogStream> {
  @Ref(() => Organization, OF) id!: string;
}

@Operation({
  get: '/admin/organizations/{id}/audit_log_stream/deliveries',
  owner: 'audit-logs',
  summary: 'List the last requests of an audit log stream',
  answers: ok(AuditLogStreamDeliveries),
})
export class ListAuditLogStreamDeliveries extends Query<AuditLogStreamDeliveries> {
  @Ref(() => Organization, OF) id!: string;
}
