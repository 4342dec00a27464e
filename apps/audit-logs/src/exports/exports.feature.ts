import { feature } from '#libs/runtime/src/feature';
import { auditExportDecider } from '../domain/audit-export.decider.ts';
import { auditExportsView } from '../views/audit-exports.view.ts';
import { AuditExports } from './audit-exports.ts';
import { DownloadFace } from './download-face.ts';
import { EndedOrganizationReaction } from './ended-organization.reaction.ts';
import { ExpiredExports } from './expired-exports.ts';
import { ExportAddresses } from './export-addresses.ts';
import { ExportBuilds } from './export-builds.ts';
import { ExportFiles } from './export-files.ts';
import { ExportWork } from './export-work.ts';
import { UnownedFiles } from './unowned-files.ts';

export const exports = feature({
  deciders: [auditExportDecider],
  views: [auditExportsView],
  providers: [AuditExports, ExportAddresses, ExportFiles, ExportBuilds, ExpiredExports, UnownedFiles, DownloadFace],
  reactions: [EndedOrganizationReaction],
  backgroundComponents: [ExportWork],
});
