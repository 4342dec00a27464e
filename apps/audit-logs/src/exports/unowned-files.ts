import { Injectable } from '@nestjs/common';
import { Blobs } from '#libs/blobs/src/blobs';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Clock } from '#libs/platform/src/clock';
import { Log } from '#libs/platform/src/log';
import { auditExportDecider } from '../domain/audit-export.decider.ts';
import { EXPORTS_FOLDER } from './export-files.ts';

/** What was stored later may be of an attempt that is under way. */
const UNOWNED_MS = 24 * 3_600_000;

/** Files of attempts that ended with their process, or whose export went while the store was away. */
@Injectable()
export class UnownedFiles {
  constructor(
    private readonly blobs: Blobs,
    private readonly repository: Repository,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  async remove(): Promise<void> {
    for await (const { name, storedAt } of this.blobs.list(EXPORTS_FOLDER)) {
      if (storedAt > this.clock.now() - UNOWNED_MS || (await this.isOwned(name))) continue;
      try {
        await this.blobs.remove(name);
        this.log.info('A file of an export that nobody owns was removed.', { blob: name });
      } catch (error) {
        this.log.warn('A file of an export that nobody owns cannot be removed.', { blob: name, error });
      }
    }
  }

  private async isOwned(name: string): Promise<boolean> {
    const [environment = '', id = '', file = ''] = name.slice(EXPORTS_FOLDER.length + 1).split('/');
    const made = await this.repository.load(auditExportDecider, environment, id);
    return made?.state === 'ready' && file.startsWith(`${made.files!.attempt}.`);
  }
}
