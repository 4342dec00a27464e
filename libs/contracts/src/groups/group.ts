import { Const, Id, Ref, Text, Time } from '../fields.ts';
import { OrganizationMembership } from '../organization-memberships/organization-membership.ts';
import { Organization } from '../organizations/organization.ts';

/** Memberships of an organization that are given roles together. */
export class Group {
  @Const('group') object!: 'group';
  @Id('group', { doc: 'Identifies the group.' }) id!: string;
  @Ref(() => Organization, { doc: 'The organization that it belongs to.' }) organization_id!: string;
  @Text({ doc: 'Shown to people; not unique.', min: 1, max: 256, example: 'Engineering' }) name!: string;
  @Text({ doc: 'What it is for.', max: 150, nullable: true, example: 'Everybody who builds the product' }) description!: string | null;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When its name or description changed last.' }) updated_at!: string;
}

/** A membership that joined a group, or left it. */
export class GroupMember {
  @Ref(() => Group, { doc: 'The group.' }) group_id!: string;
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
}
