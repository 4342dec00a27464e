import { Injectable } from '@nestjs/common';
import type { OrganizationDomain } from '#libs/contracts/src/organizations/organization';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import {
  expireVerification,
  failVerification,
  findDomain,
  organizationDecider,
  verifyDomain,
  type OrganizationEvent,
  type OrganizationState,
} from '../domain/organization.decider.ts';
import { DomainVerifier } from './domain-verifier.ts';

/** Where a domain is found. */
export interface DomainAddress {
  readonly environment: string;
  readonly organization: string;
  readonly domain: string;
}

/** What follows from looking for a proof, whoever looked. Every method answers the domain as it is then; null where it is no more. */
@Injectable()
export class DomainVerification {
  constructor(
    private readonly repository: Repository,
    private readonly verifier: DomainVerifier,
  ) {}

  async find({ environment, organization, domain }: DomainAddress): Promise<OrganizationDomain | null> {
    return findDomain(await this.repository.load(organizationDecider, environment, organization), domain);
  }

  /** Looks now. Without a proof, a domain whose 30 days are over has failed. */
  async lookUp(context: RequestContext, address: DomainAddress): Promise<OrganizationDomain | null> {
    const domain = await this.find(address);
    if (domain === null || domain.state === 'verified') return domain;
    if (await this.verifier.isProven(domain)) return this.verify(context, address);
    return this.decide(context, address, expireVerification(domain.id));
  }

  /** A verified domain has one organization: where another has it, this verification has failed. */
  async verify(context: RequestContext, address: DomainAddress): Promise<OrganizationDomain | null> {
    try {
      return await this.decide(context, address, verifyDomain(address.domain));
    } catch (error) {
      if (!(error instanceof DomainError && error.code === 'domain_already_exists')) throw error;
      return this.decide(context, address, failVerification(address.domain, 'domain_verified_by_other_organization'));
    }
  }

  async fail(context: RequestContext, address: DomainAddress): Promise<OrganizationDomain | null> {
    return this.decide(context, address, failVerification(address.domain, 'domain_verification_period_expired'));
  }

  private async decide(
    context: RequestContext,
    { organization, domain }: DomainAddress,
    decision: Decision<OrganizationState, OrganizationEvent>,
  ): Promise<OrganizationDomain | null> {
    const { state } = await this.repository.transact(organizationDecider, context, organization, decision);
    return findDomain(state, domain);
  }
}
