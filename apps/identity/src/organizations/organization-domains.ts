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
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { identityDeletionsView } from '../identity-deletions.view.ts';
import { DomainVerification, type DomainAddress } from './domain-verification.ts';
import { addDomain, domainAlreadyVerified, living, livingDomain, organizationDecider, removeDomain, restartVerification } from './organization.decider.ts';
import { organizationsView } from './organizations.view.ts';
import { requestedDomain } from './requested-domains.ts';

/** Domains live in their organization; an index on its row finds it by the domain's id. */
@Injectable()
export class OrganizationDomains {
  private readonly rows: Table<Organization>;
  private readonly deletions: Deletions;

  constructor(
    private readonly repository: Repository,
    private readonly verification: DomainVerification,
    private readonly settings: IdentitySettings,
    private readonly platform: PlatformSettings,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(organizationsView));
    this.deletions = new Deletions(readModels, identityDeletionsView);
  }

  @Handles(CreateOrganizationDomain)
  async create({ context, domain, organization_id }: CreateOrganizationDomain): Promise<OrganizationDomain> {
    const requested = requestedDomain(domain);
    const decision = addDomain(organization_id, requested, this.settings.DOMAINS_PER_ORGANIZATION);
    const { state } = await this.repository.transact(organizationDecider, context, organization_id, decision);
    // One that was removed since, of a command that comes again.
    return present(living(state, organization_id).domains.find((candidate) => candidate.domain === requested.domain) ?? null, requested.domain);
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
    return present(livingDomain(state, id) ?? null, id);
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
    const { environment } = context;
    const row = await this.rows.findBy(context, { index: 'domain_id', values: [id] });
    const organization = row === null ? null : (JSON.parse(row.text) as Organization);
    const domain = present(livingDomain(organization, id) ?? null, id);
    return { address: { environment, organization: domain.organization_id, domain: id }, domain };
  }
}

function present(domain: OrganizationDomain | null, id: string): OrganizationDomain {
  if (domain === null) throw notFound('Organization domain', id);
  return domain;
}
