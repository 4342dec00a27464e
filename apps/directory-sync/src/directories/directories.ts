import { Injectable } from '@nestjs/common';
import { ConfiguredDirectory, Directory, type DirectoryAttribute } from '#libs/contracts/src/directories/directory';
import {
  CreateDirectory,
  DeleteDirectory,
  GetConfiguredDirectory,
  GetDirectory,
  ListDirectories,
  UpdateDirectory,
} from '#libs/contracts/src/directories/operations';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { refusedField } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { isNamed, rarestOf, searchWords } from '#libs/read-models/src/name-search';
import { filteredPage } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { canBePicked } from '../domain/custom-source.decider.ts';
import { DEFAULT_ATTRIBUTES } from '../domain/directory-user.decider.ts';
import {
  createDirectory,
  deleteDirectory,
  directoryDecider,
  externalKeyOf,
  requireDirectory,
  shownState,
  updateDirectory,
  type StoredDirectory,
} from '../domain/directory.decider.ts';
import { DirectoryReader } from '../readers/directory-reader.ts';
import { directoriesView } from '../views/directories.view.ts';
import { directoryCountsView, NOTHING_COUNTED, type DirectoryCounts } from '../views/directory-counts.view.ts';
import { organizationsView, type KnownOrganization } from '../views/organizations.view.ts';
import { DirectoryAddresses } from './directory-addresses.ts';

const serialise = serialiserOf(Directory);
/** Organizations that have a domain at a time: pending ones are not exclusive. */
const MOST_OWNERS = 100;

@Injectable()
export class Directories {
  private readonly rows: Table<StoredDirectory>;
  private readonly counts: Table<DirectoryCounts>;
  private readonly organizations: Table<KnownOrganization>;

  constructor(
    private readonly repository: Repository,
    private readonly reader: DirectoryReader,
    private readonly deletions: Deletions,
    private readonly addresses: DirectoryAddresses,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(directoriesView));
    this.counts = readModels.table(tableOf(directoryCountsView));
    this.organizations = readModels.table(tableOf(organizationsView));
  }

  @Handles(CreateDirectory)
  async create({ context, organization_id, type, name, attributes = DEFAULT_ATTRIBUTES, policy }: CreateDirectory): Promise<ConfiguredDirectory> {
    const { environment } = context;
    await this.organizations.require(context, organization_id);
    requirePickable(attributes);
    const id = `directory_${derivedId(context.commandId, 0)}`;
    await this.addresses.register(context, { id, environment_id: environment });
    const { state } = await this.repository.transact(directoryDecider, context, id, createDirectory({ organization_id, type, name, attributes, policy }));
    return this.configured(environment, requireDirectory(state, id));
  }

  @Handles(GetDirectory)
  async get({ context, id }: GetDirectory): Promise<Directory> {
    const directory = await this.reader.require(context, id);
    const [shown] = await this.shown(context.environment, [directory]);
    return shown!;
  }

  @Handles(ListDirectories)
  async list(query: ListDirectories): Promise<Serialised<List<Directory>>> {
    const { context, organization_id, domain, search = '' } = query;
    const { environment } = context;
    const words = searchWords(search);
    let organizations = organization_id === undefined ? null : [organization_id];
    if (domain !== undefined) {
      const where = { index: 'domain', values: [domain.toLowerCase()] };
      const owners = (await this.organizations.page(environment, { where, order: 'asc', limit: MOST_OWNERS })).rows.map(({ id }) => id);
      organizations = organizations === null ? owners : organizations.filter((id) => owners.includes(id));
    }
    const where =
      organizations !== null ? { index: 'organization', values: organizations } : words.length === 0 ? undefined : await rarestOf(this.rows, query, words);
    return filteredPage(this.rows, query, {
      idPrefix: 'directory',
      where,
      textsOf: async (rows) => {
        const directories = rows.map(contentOf);
        const shown = await this.shown(environment, directories);
        return shown.map((one, index) => (one !== null && isNamed(directories[index]!.name, words) ? serialise(one) : null));
      },
    });
  }

  @Handles(GetConfiguredDirectory)
  async getConfigured({ context, id }: GetConfiguredDirectory): Promise<ConfiguredDirectory> {
    return this.configured(context.environment, await this.reader.require(context, id));
  }

  @Handles(UpdateDirectory)
  async update(operation: UpdateDirectory): Promise<ConfiguredDirectory> {
    const { context, id, attributes } = operation;
    await this.reader.require(context, id);
    if (attributes !== undefined) requirePickable(attributes);
    const { state } = await this.repository.transact(directoryDecider, context, id, updateDirectory(id, operation));
    return this.configured(context.environment, requireDirectory(state, id));
  }

  @Handles(DeleteDirectory)
  async delete({ context, id }: DeleteDirectory): Promise<void> {
    await this.deletions.once({ context, what: 'Directory', id }, async () => {
      await this.reader.require(context, id);
      return this.repository.transact(directoryDecider, context, id, deleteDirectory(id));
    });
  }

  private async configured(environment: string, directory: StoredDirectory): Promise<ConfiguredDirectory> {
    const [shown] = await this.shown(environment, [directory]);
    return { ...(shown ?? withoutMore(directory)), policy: directory.policy, attributes: directory.attributes, scim_path: `/scim/v2/${directory.id}` };
  }

  /** In their order: null for one whose organization is gone. */
  private async shown(environment: string, directories: readonly StoredDirectory[]): Promise<readonly (Directory | null)[]> {
    const [organizations, rows] = await Promise.all([
      this.reader.organizationsOf(environment, directories),
      this.counts.getMany(
        environment,
        directories.map(({ id }) => id),
      ),
    ]);
    return directories.map((directory, index) => {
      const organization = organizations.get(directory.organization_id);
      if (organization === undefined) return null;
      const row = rows[index] ?? null;
      const { active, inactive, groups } = row === null ? NOTHING_COUNTED : contentOf(row);
      const [first] = organization.domains;
      return { ...withoutMore(directory), ...(first && { domain: first.domain }), metadata: { users: { active, inactive }, groups } };
    });
  }
}

function withoutMore(directory: StoredDirectory): Directory {
  const { object, id, organization_id, type, name, created_at, updated_at } = directory;
  return { object, id, organization_id, external_key: externalKeyOf(id), type, state: shownState(directory), name, created_at, updated_at };
}

/** @throws DomainError `invalid_request_parameters` */
function requirePickable(attributes: readonly DirectoryAttribute[]): void {
  const refuse = (field: string, message: string, reason: string): never => {
    throw refusedField('invalid', 'invalid_request_parameters', { field, message, reason });
  };
  const names = new Set<string>();
  for (const [index, { name, source }] of attributes.entries()) {
    if (names.has(name)) refuse(`attributes.${index}.name`, 'Each attribute has a name of its own.', 'given_twice');
    names.add(name);
    if (!canBePicked(source)) refuse(`attributes.${index}.source`, 'Nothing that SCIM sends of a person stands there.', 'unknown_path');
  }
}
