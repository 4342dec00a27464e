import { primaryView } from '#libs/event-sourcing/src/views/view';
import { auditExportDecider, type AuditExportEvent, type AuditExportState, type StoredAuditExport } from '../domain/audit-export.decider.ts';

/** Every export that was ever asked for, the oldest first. What its filter says stays sealed. */
export const auditExportsView = primaryView<AuditExportState, AuditExportEvent, StoredAuditExport>({
  name: 'audit_exports',
  noun: 'Audit log export',
  version: 1,
  decider: auditExportDecider,
  indexes: [
    { name: 'state', keys: ({ state }) => [state] },
    { name: 'waiting', keys: ({ state, organization_id }) => (state === 'pending' ? [organization_id] : []) },
    { name: 'organization', keys: ({ state, organization_id }) => (state === 'pending' || state === 'ready' ? [organization_id] : []) },
  ],
  rowOf: (state) => state,
});
