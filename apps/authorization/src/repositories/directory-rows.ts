import { Injectable } from '@nestjs/common';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { notFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { directoriesView, directoryGroupsView, type KnownDirectory, type KnownDirectoryGroup } from '../views/directories.views.ts';

/** Directories and their groups, as far as roles are concerned with them. */
@Injectable()
export class DirectoryRows {
  private readonly directories: Table<KnownDirectory>;
  private readonly groups: Table<KnownDirectoryGroup>;

  constructor(
    private readonly views: ReadYourWrites,
    readModels: ReadModels,
  ) {
    this.directories = readModels.table(tableOf(directoriesView));
    this.groups = readModels.table(tableOf(directoryGroupsView));
  }

  /** By everything that was recorded before the call. @throws DomainError `entity_not_found`, `service_unavailable` */
  async require({ environment, deadline }: RequestContext, id: string): Promise<KnownDirectory> {
    await this.views.waitForHead(deadline, this.directories.definition.name);
    const row = await this.directories.get(environment, id);
    if (row === null) throw notFound('Directory', id);
    return contentOf(row);
  }

  /** Which of these groups the directory has, by everything that was recorded before the call. @throws DomainError `service_unavailable` */
  async groupsIn({ environment, deadline }: RequestContext, directoryId: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    await this.views.waitForHead(deadline, this.groups.definition.name);
    return this.knownGroupsIn(environment, directoryId, ids);
  }

  /** As `groupsIn`, as the rows are: for reactions, which have waited for them. */
  async knownGroupsIn(environment: string, directoryId: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.groups.getMany(environment, [...new Set(ids)]);
    return new Set(rows.flatMap((row) => (row !== null && contentOf(row).directory_id === directoryId ? [row.id] : [])));
  }

  /** As the rows are. */
  async isKnown(environment: string, directoryId: string): Promise<boolean> {
    return (await this.directories.get(environment, directoryId)) !== null;
  }
}
