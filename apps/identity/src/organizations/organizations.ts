import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import {
  CreateOrganization,
  DeleteOrganization,
  GetOrganization,
  GetOrganizationByExternalId,
  ListOrganizations,
  UpdateOrganization,
} from '#libs/contracts/src/organizations/operations';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import { Deletions } from '#libs/event-sourcing/src/deletions';
import { Repository } from '#libs/event-sourcing/src/repository';
import { tableOf } from '#libs/event-sourcing/src/view';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { pageOf } from '#libs/read-models/src/pages';
import { ReadModels, type PageRequest, type Table } from '#libs/read-models/src/read-models';
import { identityDeletionsView } from '../identity-deletions.view.ts';
import { requestedDomains } from './requested-domains.ts';
import { domainName } from './domain-name.ts';
import { searchKey } from './name-search.ts';
import { createOrganization, deleteOrganization, living, organizationDecider, updateOrganization } from './organization.decider.ts';
import { organizationsView } from './organizations.view.ts';

@Injectable()
export class Organizations {
  private readonly rows: Table<Organization>;
  private readonly deletions: Deletions;

  constructor(
    private readonly repository: Repository,
    private readonly settings: IdentitySettings,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(organizationsView));
    this.deletions = new Deletions(readModels, identityDeletionsView);
  }

  @Handles(CreateOrganization)
  async create(operation: CreateOrganization): Promise<Organization> {
    const id = `org_${derivedId(operation.context.commandId, 0)}`;
    const domains = requestedDomains(operation) ?? [];
    const decision = createOrganization({ ...operation, domains }, this.settings.DOMAINS_PER_ORGANIZATION);
    const { state } = await this.repository.transact(organizationDecider, operation.context, id, decision);
    return living(state, id);
  }

  @Handles(GetOrganization)
  async get({ context, id }: GetOrganization): Promise<Serialised<Organization>> {
    const row = await this.rows.find(context, id);
    if (row === null) throw notFound('Organization', id);
    return new Serialised(row.text);
  }

  @Handles(GetOrganizationByExternalId)
  async getByExternalId({ context, external_id }: GetOrganizationByExternalId): Promise<Serialised<Organization>> {
    const row = await this.rows.findBy(context, { index: 'external_id', values: [external_id] });
    if (row === null) throw notFound('Organization', external_id);
    return new Serialised(row.text);
  }

  @Handles(ListOrganizations)
  async list(query: ListOrganizations): Promise<Serialised<List<Organization>>> {
    return pageOf(this.rows, query, { idPrefix: 'org', where: filterOf(query) });
  }

  @Handles(UpdateOrganization)
  async update(operation: UpdateOrganization): Promise<Organization> {
    const { context, id } = operation;
    const domains = requestedDomains(operation);
    const decision = updateOrganization(id, { ...operation, domains }, this.settings.DOMAINS_PER_ORGANIZATION);
    const { state } = await this.repository.transact(organizationDecider, context, id, decision);
    return living(state, id);
  }

  @Handles(DeleteOrganization)
  async delete({ context, id }: DeleteOrganization): Promise<void> {
    await this.deletions.once(context, async () => {
      if ((await this.rows.find(context, id)) === null) throw notFound('Organization', id);
      await this.repository.transact(organizationDecider, context, id, deleteOrganization(id));
    });
  }
}

function filterOf({ domains, search }: ListOrganizations): PageRequest['where'] {
  if (domains !== undefined && search !== undefined) throw notTogether();
  // What is no domain name is no organization's domain.
  if (domains !== undefined) return { index: 'domain', values: [...new Set(domains.map(domainName))].filter((name) => name !== null) };
  if (search !== undefined) return { index: 'search', values: [searchKey(search)] };
  return undefined;
}

function notTogether(): DomainError {
  const message = 'Give `domains` or `search`, not both.';
  return new DomainError('invalid', 'invalid_request_parameters', message, { errors: [{ code: 'not_together', field: 'search', message }] });
}
