import { ListOf, Nested, OneOf, without } from '../fields.ts';
import { MembershipRole, OrganizationMembership } from '../organization-memberships/organization-membership.ts';
import { Organization, OrganizationDomain } from '../organizations/organization.ts';

/** An organization as events show it: without the deprecated flag. */
export class EventOrganization extends without(Organization, 'allow_profiles_outside_organization') {}

/** Why ownership of a domain could not be proven. */
export class DomainVerificationFailure {
  @OneOf(['domain_verification_period_expired', 'domain_verified_by_other_organization'], { doc: 'Why the verification failed.' })
  reason!: 'domain_verification_period_expired' | 'domain_verified_by_other_organization';
  @Nested(() => OrganizationDomain, { doc: 'The domain, as it stands now.' }) organization_domain!: OrganizationDomain;
}

/** A membership as events show it: with its roles, without what belongs to the organization and the user. */
export class EventOrganizationMembership extends without(OrganizationMembership, 'organization_name') {
  @Nested(() => MembershipRole, { doc: 'The first of its roles.' }) role!: MembershipRole;
  @ListOf(() => MembershipRole, { doc: 'All of its roles.' }) roles!: readonly MembershipRole[];
}
