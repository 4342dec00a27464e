import { EmailVerification } from '../email-verification/email-verification.ts';
import { ListOf, Nested, OneOf, Picked, Text, without } from '../fields.ts';
import { MagicAuth } from '../magic-auth/magic-auth.ts';
import { MembershipRole, OrganizationMembership } from '../organization-memberships/organization-membership.ts';
import { Organization, OrganizationDomain } from '../organizations/organization.ts';
import { PasswordReset } from '../password-reset/password-reset.ts';
import { User } from '../users/user.ts';

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

/** A user as events show it. Once the person was erased, also events from before show nothing personal: texts that may be null are, the address and the metadata are empty. */
export class EventUser extends without(User, 'email') {
  @Text({ doc: 'The address; empty once the person was erased.', max: 254, personal: true, example: 'ada@acme.test' }) email!: string;
}

/** A magic auth as events show it, as are the two below: once the person was erased, its address is empty. */
export class EventMagicAuth extends without(MagicAuth, 'email') {
  @Picked(EventUser) email!: string;
}

export class EventEmailVerification extends without(EmailVerification, 'email') {
  @Picked(EventUser) email!: string;
}

export class EventPasswordReset extends without(PasswordReset, 'email') {
  @Picked(EventUser) email!: string;
}
