import { feature } from '#libs/runtime/src/feature';
import { auditActionDecider } from '../domain/audit-action.decider.ts';
import { ActionSchemas } from '../readers/action-schemas.ts';
import { auditActionsView, auditSchemasView } from '../views/audit-actions.view.ts';
import { AuditSchemas } from './audit-schemas.ts';

export const schemas = feature({ deciders: [auditActionDecider], views: [auditActionsView, auditSchemasView], providers: [ActionSchemas, AuditSchemas] });
