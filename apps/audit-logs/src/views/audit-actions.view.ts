import { primaryView, type View } from '#libs/event-sourcing/src/views/view';
import { auditActionDecider, knownSchema, type AuditActionEvent, type KnownSchema, type StoredAction } from '../domain/audit-action.decider.ts';

/** Of the highest version that can be told from the next. */
const DIGITS = 16;

/** Every action that has a schema, with its newest one. */
export const auditActionsView = primaryView<StoredAction | null, AuditActionEvent, StoredAction>({
  name: 'audit_actions',
  version: 1,
  decider: auditActionDecider,
  indexes: [],
  rowIdOf: ({ id }) => id,
  rowOf: (state) => state,
});

/** Every version of every schema: none of them ever changes. */
export const auditSchemasView: View<KnownSchema, AuditActionEvent> = {
  name: 'audit_schemas',
  version: 1,
  handles: ['audit_log_action.schema_created'],
  indexes: [{ name: 'action', keys: ({ action_id }) => [action_id] }],
  sortKey: ({ version }) => String(version).padStart(DIGITS, '0'),
  idsOf: ({ data }) => [data.schema_id],
  evolve: (_, { data, meta: { at } }) => knownSchema(data, new Date(at).toISOString()),
};
