import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { systemContext } from '#libs/platform/src/system-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { EnvironmentSweeps } from '#libs/runtime/src/environment-sweeps';
import { auditExportDecider, expireExport, failExport, goneAt, KEPT_MS, type StoredAuditExport } from '../domain/audit-export.decider.ts';
import { auditExportsView } from '../views/audit-exports.view.ts';
import { ExportFiles } from './export-files.ts';

const AT_ONCE = 100;

/** Takes the files of exports when their time is over, or with their organization. */
@Injectable()
export class ExpiredExports implements OnModuleInit {
  private readonly rows: Table<StoredAuditExport>;

  constructor(
    private readonly files: ExportFiles,
    private readonly repository: Repository,
    private readonly sweeps: EnvironmentSweeps,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(auditExportsView));
  }

  onModuleInit(): void {
    this.sweeps.add('audit_exports', (environment, now, limit) => this.sweep(environment, now, limit));
  }

  async ofOrganization(environment: string, organization: string, now: number): Promise<void> {
    for await (const made of this.each(environment, { index: 'organization', values: [organization] })) await this.end(environment, made, now);
  }

  /** At most so many of an environment; answers how many. */
  async sweep(environment: string, now: number, limit: number): Promise<number> {
    let swept = 0;
    let failure: { readonly error: unknown } | null = null;
    for await (const made of this.each(environment, { index: 'state', values: ['ready'] })) {
      // Those that were asked for later are ready later.
      if (swept === limit || Date.parse(made.created_at) + KEPT_MS > now) break;
      if (goneAt(made)! > now) continue;
      try {
        await this.end(environment, made, now);
        swept += 1;
      } catch (error) {
        // Files that cannot be removed keep nobody else's: the next round tries them again.
        failure ??= { error };
      }
    }
    if (failure !== null) throw failure.error;
    return swept;
  }

  /** First the files, also those of attempts that ended with their process: once it says that they are gone, nobody looks for them. Whoever makes it just now removes their own. */
  private async end(environment: string, { id, files }: StoredAuditExport, now: number): Promise<void> {
    await this.files.removeOthers(environment, { id, attempt: null });
    const end = files === null ? failExport('organization_deleted') : expireExport();
    const { state } = await this.repository.transact(auditExportDecider, systemContext(environment, now), id, end);
    // It was made meanwhile.
    if (state?.state === 'ready') await this.end(environment, state, now);
  }

  private async *each(environment: string, where: { readonly index: string; readonly values: readonly string[] }): AsyncGenerator<StoredAuditExport> {
    for (let after: string | undefined, more = true; more;) {
      const page = await this.rows.page(environment, { where, order: 'asc', limit: AT_ONCE, after });
      for (const row of page.rows) yield contentOf(row);
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }
}
