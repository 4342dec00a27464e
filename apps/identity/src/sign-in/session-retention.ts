import { Injectable, type OnModuleInit } from '@nestjs/common';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { EnvironmentSweeps } from '#libs/runtime/src/environment-sweeps';
import { daysOfEnd, sessionsView, type SessionRow } from '../views/sessions.view.ts';

/** Takes the rows of sessions that have been over for long enough, a day of them at a time. */
@Injectable()
export class SessionRetention implements OnModuleInit {
  private readonly rows: Table<SessionRow>;

  constructor(
    private readonly sweeps: EnvironmentSweeps,
    private readonly settings: IdentitySettings,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(sessionsView));
  }

  onModuleInit(): void {
    this.sweeps.add('sessions', (environment, now, limit) => this.sweep(environment, now - this.settings.SESSIONS_RETENTION, limit));
  }

  private async sweep(environment: string, before: number, limit: number): Promise<number> {
    // None ends before it began, so the oldest tells from which day on there can be any.
    const [oldest] = (await this.rows.page(environment, { order: 'asc', limit: 1 })).rows;
    const days = oldest === undefined ? [] : daysOfEnd(Date.parse(contentOf(oldest).created_at), before);
    if (days.length === 0) return 0;
    const { rows } = await this.rows.page(environment, { where: { index: 'day_of_end', values: days }, order: 'asc', limit });
    await this.rows.purge(
      environment,
      rows.map(({ id }) => id),
    );
    return rows.length;
  }
}
