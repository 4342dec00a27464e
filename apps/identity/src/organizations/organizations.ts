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
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { invalidField } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { createOrganization, deleteOrganization, organizationDecider, requireOrganization, updateOrganization } from '../domain/organization.decider.ts';
import { pageOfNamed, searchWords } from '#libs/read-models/src/name-search';
import { organizationsView } from '../views/organizations.view.ts';
import { requestedDomains } from './requested-domains.ts';
import { domainName } from '../domain/domain-name.ts';

@Injectable()
export class Organizations {
  private readonly rows: Table<Organization>;

  constructor(
    private readonly repository: Repository,
    private readonly settings: IdentitySettings,
    private readonly deletions: Deletions,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(organizationsView));
  }

  @Handles(CreateOrganization)
  async create(operation: CreateOrganization): Promise<Organization> {
    const id = `org_${derivedId(operation.context.commandId, 0)}`;
    const domains = requestedDomains(operation) ?? [];
    const decision = createOrganization({ ...operation, domains }, this.settings.DOMAINS_PER_ORGANIZATION);
    const { state } = await this.repository.transact(organizationDecider, operation.context, id, decision);
    return requireOrganization(state, id);
  }

  @Handles(GetOrganization)
  async get({ context, id }: GetOrganization): Promise<Serialised<Organization>> {
    return new Serialised((await this.rows.require(context, id)).text);
  }

  @Handles(GetOrganizationByExternalId)
  async getByExternalId({ context, external_id }: GetOrganizationByExternalId): Promise<Serialised<Organization>> {
    return new Serialised((await this.rows.requireBy(context, 'external_id', external_id)).text);
  }

  @Handles(ListOrganizations)
  async list(query: ListOrganizations): Promise<Serialised<List<Organization>>> {
    const { domains, search = '' } = query;
    // What is no domain name is no organization's domain.
    const names = domains && [...new Set(domains.map(domainName))].filter((name) => name !== null);
    return pageOfNamed(this.rows, query, { idPrefix: 'org', words: searchWords(search), where: names && { index: 'domain', values: names } });
  }

  @Handles(UpdateOrganization)
  async update(operation: UpdateOrganization): Promise<Organization> {
    const { context, id } = operation;
    const domains = requestedDomains(operation);
    const payment_customer_id = paymentCustomerId(operation);
    const decision = updateOrganization(id, { ...operation, domains, payment_customer_id }, this.settings.DOMAINS_PER_ORGANIZATION);
    const { state } = await this.repository.transact(organizationDecider, context, id, decision);
    return requireOrganization(state, id);
  }

  @Handles(DeleteOrganization)
  async delete({ context, id }: DeleteOrganization): Promise<void> {
    await this.deletions.once({ context, what: 'Organization', id }, async () => {
      await this.rows.require(context, id);
      return this.repository.transact(organizationDecider, context, id, deleteOrganization(id));
    });
  }
}

/** One identifier under two names. @throws DomainError where they are given with two values */
function paymentCustomerId({ payment_customer_id, stripe_customer_id }: UpdateOrganization): string | null | undefined {
  if (payment_customer_id === undefined || stripe_customer_id === undefined)
    return payment_customer_id === undefined ? stripe_customer_id : payment_customer_id;
  if (payment_customer_id === stripe_customer_id) return payment_customer_id;
  const message = '`payment_customer_id` and `stripe_customer_id` are the same: give one of them, or one value.';
  throw invalidField('given_twice', 'stripe_customer_id', message);
}
