import type { App } from '#libs/runtime/src/app';
import { auditLogs } from './audit-logs.module.ts';

export const auditLogsApp: App = { name: 'audit-logs', services: [auditLogs], settings: [] };
