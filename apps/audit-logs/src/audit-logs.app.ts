import { BlobSettings, PublicAddressSettings, WebhookSettings } from '#libs/platform/src/config/settings';
import type { App } from '#libs/runtime/src/app';
import { auditLogs } from './audit-logs.module.ts';
import { DownloadFace } from './exports/download-face.ts';

export const auditLogsApp: App = {
  name: 'audit-logs',
  services: [auditLogs],
  settings: [BlobSettings, PublicAddressSettings, WebhookSettings],
  // In a process of its own there are no files, but a store that hands them out by itself.
  faces: [{ of: DownloadFace, address: null }],
};
