import { Const, Flag, Id, Json, ListOf, Nested, OneOf, Ref, Text, Time } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';
import { User } from '../users/user.ts';

export const MEMBERSHIP_STATUSES = ['active', 'inactive', 'pending'] as const;
export type MembershipStatus = (typeof MEMBERSHIP_STATUSES)[number];

/** A user's place in an organization. */
export class OrganizationMembership {
  @Const('organization_membership') object!: 'organization_membership';
  @Id('om', { doc: 'Identifies the membership: another one when the user joins again after it was deleted.' }) id!: string;
  @Ref(() => User, { doc: 'The user.' }) user_id!: string;
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @OneOf(MEMBERSHIP_STATUSES, { doc: 'Only an active membership gives access to anything.' }) status!: MembershipStatus;
  @Flag({ doc: 'Whether a directory decides about it.' }) directory_managed!: boolean;
  @Text({ doc: 'Name of the organization.', example: 'Acme' }) organization_name!: string;
  @Json({ doc: 'Values that a directory or an identity provider gives, by name.', example: { department: 'Engineering' } })
  custom_attributes!: Readonly<Record<string, unknown>>;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** A role as a membership names it. */
export class MembershipRole {
  @Text({ doc: 'Slug of the role.', example: 'member' }) slug!: string;
}

/** A membership with its user: as those are listed who may do something. */
export class OrganizationMembershipWithUser extends OrganizationMembership {
  @Nested(() => User, { doc: 'The user.' }) user!: User;
}

/** A membership with everything about it. */
export class FullOrganizationMembership extends OrganizationMembership {
  @Nested(() => MembershipRole, { doc: 'The role with the highest priority.' }) role!: MembershipRole;
  @ListOf(() => MembershipRole, { doc: 'All of its roles, the one with the highest priority first.' }) roles!: readonly MembershipRole[];
  @Nested(() => User, { doc: 'The user.' }) user!: User;
}
