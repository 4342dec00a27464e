import { primaryView } from '#libs/event-sourcing/src/views/view';
import { auditStreamDecider, type AuditStreamEvent, type AuditStreamState, type StoredStream } from '../domain/audit-stream.decider.ts';

/** Every stream that there is, its secret sealed. Private: answers are picked from it. */
export const auditStreamsView = primaryView<AuditStreamState, AuditStreamEvent, StoredStream>({
  name: 'audit_streams',
  version: 1,
  decider: auditStreamDecider,
  indexes: [],
  rowIdOf: ({ id }) => id,
  rowOf: (state) => (state?.object === 'audit_log_stream' ? state : null),
});
