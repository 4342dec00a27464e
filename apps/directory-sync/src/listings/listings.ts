import { Injectable } from '@nestjs/common';
import type { DirectoryRun } from '#libs/contracts/src/directories/directory-run';
import { GetDirectoryRun, SendDirectoryListing } from '#libs/contracts/src/directories/operations';
import { Handles } from '#libs/contracts/src/handles';
import { operationOf } from '#libs/contracts/src/operation';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { derivedId, timeOfId } from '#libs/platform/src/ids';
import { DirectoryReader } from '../readers/directory-reader.ts';
import { DirectoryRuns, NO_GROUPS, NO_USERS, type StoredRun } from './directory-runs.ts';

export const LISTINGS_FOLDER = operationOf(SendDirectoryListing).options.upload!.folder;
const REMOVAL_LIMIT = 20;

/** Full listings, as applications send them and ask how far they are. */
@Injectable()
export class Listings {
  constructor(
    private readonly runs: DirectoryRuns,
    private readonly directories: DirectoryReader,
  ) {}

  @Handles(SendDirectoryListing)
  async send({ context, id: directoryId, dry_run = false, force = false, removal_limit = REMOVAL_LIMIT }: SendDirectoryListing): Promise<DirectoryRun> {
    const { environment, actor, requestId, commandId, deadline, upload } = context;
    if (upload === undefined) throw new Error('A listing came without its content.');
    const directory = await this.directories.require(context, directoryId);
    if (directory.is_unlinked)
      throw new DomainError('forbidden', 'directory_unlinked', 'The directory is unlinked: nothing is taken until it is linked again.');
    const created_at = new Date(timeOfId(commandId)).toISOString();
    const run: StoredRun = {
      id: `directory_run_${derivedId(commandId, 0)}`,
      environment,
      directory_id: directoryId,
      organization_id: directory.organization_id,
      actor,
      request_id: requestId,
      upload,
      phase: 'queued',
      dry_run,
      force,
      removal_limit,
      users: NO_USERS,
      groups: NO_GROUPS,
      lines: 0,
      errors: [],
      error_count: 0,
      created_at,
      updated_at: created_at,
      checkpoint: null,
      fence: 0,
    };
    return toPublicRun(await this.runs.begin(run, deadline));
  }

  @Handles(GetDirectoryRun)
  async get({ context, id, run_id }: GetDirectoryRun): Promise<DirectoryRun> {
    await this.directories.require(context, id);
    const run = await this.runs.find(context.environment, run_id);
    if (run === null || run.directory_id !== id) throw notFound('Directory run', run_id);
    return toPublicRun(run);
  }
}

function toPublicRun(run: StoredRun): DirectoryRun {
  const { id, directory_id, organization_id, phase, dry_run, users, groups, lines, errors, error_count, created_at, updated_at } = run;
  return { object: 'directory_run', id, directory_id, organization_id, phase, dry_run, users, groups, lines, errors, error_count, created_at, updated_at };
}
