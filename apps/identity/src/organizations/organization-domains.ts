import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import {
  CheckOrganizationDomain,
  CreateOrganizationDomain,
  DecideOrganizationDomain,
  DeleteOrganizationDomain,
  GetOrganizationDomain,
  VerifyOrganizationDomain,
} from '#libs/contracts/src/organizations/operations';
import type { Organization, OrganizationDomain } from '#libs/contracts/src/organizations/organization';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { IdentitySettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  addDomain,
  domainAlreadyVerified,
  organizationDecider,
  removeDomain,
  requireDomain,
  requireOrganization,
  restartVerification,
} from '../domain/organization.decider.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { DomainVerification, type DomainAddress } from './domain-verification.ts';
import { requestedDomain } from './requested-domains.ts';

/** Domains live in their organization; an index on its row finds it by the domain's id. */
@Injectable()
export class OrganizationDomains {
  private readonly rows: Table<Organization>;

  constructor(
    private readonly repository: Repository,
    private readonly verification: DomainVerification,
    private readonly settings: IdentitySettings,
    private readonly platform: PlatformSettings,
    private readonly deletions: Deletions,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(organizationsView));
  }

  @Handles(CreateOrganizationDomain)
  async create({ context, domain, organization_id }: CreateOrganizationDomain): Promise<OrganizationDomain> {
    const requested = requestedDomain(domain);
    const decision = addDomain(organization_id, requested, this.settings.DOMAINS_PER_ORGANIZATION);
    const { state } = await this.repository.transact(organizationDecider, context, organization_id, decision);
    const created = requireOrganization(state, organization_id).domains.find((candidate) => candidate.domain === requested.domain);
    // One that was removed since, of a command that comes again.
    if (created === undefined) throw noDomain(requested.domain);
    return created;
  }

  @Handles(GetOrganizationDomain)
  async get({ context, id }: GetOrganizationDomain): Promise<OrganizationDomain> {
    return (await this.found(context, id)).domain;
  }

  /** The look-ups follow from what is recorded here; nobody waits for DNS. */
  @Handles(VerifyOrganizationDomain)
  async verify({ context, id }: VerifyOrganizationDomain): Promise<OrganizationDomain> {
    const { address } = await this.found(context, id);
    const { state } = await this.repository.transact(organizationDecider, context, address.organization, restartVerification(id));
    return requireDomain(state, id);
  }

  @Handles(DeleteOrganizationDomain)
  async delete({ context, id }: DeleteOrganizationDomain): Promise<void> {
    await this.deletions.once({ context, what: 'Organization domain', id }, async () => {
      const { address } = await this.found(context, id);
      return this.repository.transact(organizationDecider, context, address.organization, removeDomain(id));
    });
  }

  @Handles(CheckOrganizationDomain)
  async check({ context, id }: CheckOrganizationDomain): Promise<OrganizationDomain> {
    const { address } = await this.found(context, id);
    return present(await this.verification.lookUp(context, address), id);
  }

  /** Stands in for DNS, which tests cannot own. */
  @Handles(DecideOrganizationDomain)
  async decide({ context, id, state }: DecideOrganizationDomain): Promise<OrganizationDomain> {
    if (this.platform.GATEHOUSE_MODE !== 'development')
      throw new DomainError('forbidden', 'forbidden', 'Domains are decided by hand in development mode only.');
    const { address, domain } = await this.found(context, id);
    if (state === 'verified') return present(await this.verification.verify(context, address), id);
    if (domain.state === 'verified') throw domainAlreadyVerified(domain.domain);
    return present(await this.verification.fail(context, address), id);
  }

  private async found(context: RequestContext, id: string): Promise<{ readonly address: DomainAddress; readonly domain: OrganizationDomain }> {
    const row = await this.rows.findBy(context, { index: 'domain_id', values: [id] });
    const domain = requireDomain(row === null ? null : contentOf(row), id);
    return { address: { environment: context.environment, organization: domain.organization_id, domain: id }, domain };
  }
}

/** What is left of a domain that somebody removed meanwhile. @throws DomainError `entity_not_found` */
function present(domain: OrganizationDomain | null, id: string): OrganizationDomain {
  if (domain === null) throw noDomain(id);
  return domain;
}

function noDomain(name: string): DomainError {
  return notFound('Organization domain', name);
}
