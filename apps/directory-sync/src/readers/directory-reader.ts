import { Injectable } from '@nestjs/common';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { notFound } from '#libs/platform/src/domain-error';
import { contentOf, ReadModels, type Seeker, type Table } from '#libs/read-models/src/read-models';
import type { StoredDirectory } from '../domain/directory.decider.ts';
import { directoriesView } from '../views/directories.view.ts';
import { organizationsView, type KnownOrganization } from '../views/organizations.view.ts';

/** Directories together with what they hang on. */
@Injectable()
export class DirectoryReader {
  private readonly rows: Table<StoredDirectory>;
  private readonly organizations: Table<KnownOrganization>;

  constructor(readModels: ReadModels) {
    this.rows = readModels.table(tableOf(directoriesView));
    this.organizations = readModels.table(tableOf(organizationsView));
  }

  /** @throws DomainError `entity_not_found`, also where its organization was deleted and its own deletion is still to be recorded */
  async require(seeker: Seeker, id: string): Promise<StoredDirectory> {
    const directory = contentOf(await this.rows.require(seeker, id));
    if ((await this.organizations.find(seeker, directory.organization_id)) === null) throw notFound('Directory', id);
    return directory;
  }

  /** Those of several ids that are there, by their ids. */
  async living(environment: string, ids: readonly string[]): Promise<ReadonlyMap<string, StoredDirectory>> {
    const rows = await this.rows.getMany(environment, [...new Set(ids)]);
    const directories = rows.flatMap((row) => (row === null ? [] : [contentOf(row)]));
    const organizations = await this.organizationsOf(environment, directories);
    return new Map(directories.flatMap((directory) => (organizations.has(directory.organization_id) ? [[directory.id, directory] as const] : [])));
  }

  /** The organizations of directories that are there, by their ids. */
  async organizationsOf(environment: string, directories: readonly StoredDirectory[]): Promise<ReadonlyMap<string, KnownOrganization>> {
    const ids = [...new Set(directories.map(({ organization_id }) => organization_id))];
    const rows = await this.organizations.getMany(environment, ids);
    return new Map(rows.flatMap((row) => (row === null ? [] : [[row.id, contentOf(row)] as const])));
  }
}
