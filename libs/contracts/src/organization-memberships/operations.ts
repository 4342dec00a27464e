import { ListOf, Optional, Ref, Text } from '../fields.ts';
import { Group } from '../groups/group.ts';
import { arrayOf, Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { User } from '../users/user.ts';
import {
  FullOrganizationMembership,
  MEMBERSHIP_STATUSES,
  OrganizationMembership,
  OrganizationMembershipWithUser,
  type MembershipStatus,
} from './organization-membership.ts';

const ROLE_SLUG = { text: { min: 1, max: 48 } } as const;

@Operation({
  post: '/user_management/organization_memberships',
  owner: 'identity',
  summary: 'Make a user a member of an organization',
  description:
    'Give `role_slug` or `role_slugs`, not both; without them the membership has the default role. An inactive membership is reactivated, with these roles, and keeps its id.',
  answers: created(FullOrganizationMembership),
  refuses: [
    'user_already_organization_member',
    'cannot_reactivate_pending_organization_membership',
    'invalid_role',
    'multiple_roles_not_enabled',
    'sub_resource_scoped_role_not_allowed',
  ],
  emits: ['organization_membership.created', 'organization_membership.updated'],
})
export class CreateOrganizationMembership extends Command<FullOrganizationMembership> {
  @Ref(() => User, { doc: 'The user.' }) user_id!: string;
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Optional() @Text({ doc: 'Its role: one of the environment or of this organization.', min: 1, max: 48, example: 'admin' }) role_slug?: string;
  @Optional()
  @ListOf(ROLE_SLUG, { doc: 'Its roles, where it has several.', minItems: 1, maxItems: 100, example: ['admin'] })
  role_slugs?: readonly string[];
}

@Operation({
  get: '/user_management/organization_memberships',
  owner: 'identity',
  summary: 'List memberships of an organization or of a user',
  description: 'Give `user_id`, `organization_id`, or both. Without `statuses`, only active memberships are listed.',
  answers: listOf(FullOrganizationMembership),
  refuses: ['missing_user_id_or_organization_id', 'entity_not_found'],
})
export class ListOrganizationMemberships extends PageQuery<FullOrganizationMembership> {
  @Optional() @Ref(() => User, { doc: 'Memberships of this user.' }) user_id?: string;
  @Optional() @Ref(() => Organization, { doc: 'Memberships in this organization.' }) organization_id?: string;
  @Optional() @ListOf({ oneOf: MEMBERSHIP_STATUSES }, { doc: 'Memberships that have any of these.' }) statuses?: readonly MembershipStatus[];
}

@Operation({
  get: '/user_management/organization_memberships/{id}',
  owner: 'identity',
  summary: 'Get a membership',
  answers: ok(FullOrganizationMembership),
})
export class GetOrganizationMembership extends Query<FullOrganizationMembership> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) id!: string;
}

@Operation({
  put: '/user_management/organization_memberships/{id}',
  owner: 'identity',
  summary: 'Change the roles of a membership',
  description: 'Give `role_slug` or `role_slugs`, not both: they replace the roles that it has. Without them, nothing changes.',
  answers: ok(FullOrganizationMembership),
  refuses: ['invalid_role', 'multiple_roles_not_enabled', 'sub_resource_scoped_role_not_allowed'],
  emits: ['organization_membership.updated'],
})
export class UpdateOrganizationMembership extends Command<FullOrganizationMembership> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) id!: string;
  @Optional() @Text({ doc: 'Its only role from now on.', min: 1, max: 48, example: 'admin' }) role_slug?: string;
  @Optional()
  @ListOf(ROLE_SLUG, { doc: 'Its roles from now on.', minItems: 1, maxItems: 100, example: ['admin'] })
  role_slugs?: readonly string[];
}

@Operation({
  delete: '/user_management/organization_memberships/{id}',
  owner: 'identity',
  summary: 'Delete a membership',
  description: 'Its role assignments are gone with it, and it is in no group any more; events for the groups follow.',
  answers: empty(200),
  emits: ['organization_membership.deleted', 'group.member_removed'],
})
export class DeleteOrganizationMembership extends Command<void> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) id!: string;
}

@Operation({
  put: '/user_management/organization_memberships/{id}/deactivate',
  owner: 'identity',
  summary: 'Suspend a membership',
  description: 'It gives access to nothing until it is reactivated; its roles, role assignments and groups stay as they are. An inactive one stays inactive.',
  answers: ok(FullOrganizationMembership),
  refuses: ['cannot_deactivate_pending_organization_membership'],
  emits: ['organization_membership.updated'],
})
export class DeactivateOrganizationMembership extends Command<FullOrganizationMembership> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) id!: string;
}

@Operation({
  put: '/user_management/organization_memberships/{id}/reactivate',
  owner: 'identity',
  summary: 'Reactivate a membership',
  description: 'It comes back as it was. An active one stays active.',
  answers: ok(FullOrganizationMembership),
  refuses: ['cannot_reactivate_pending_organization_membership'],
  emits: ['organization_membership.updated'],
})
export class ReactivateOrganizationMembership extends Command<FullOrganizationMembership> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) id!: string;
}

@Operation({
  get: '/user_management/organization_memberships/{id}/groups',
  owner: 'identity',
  summary: 'List the groups that a membership is in',
  answers: listOf(Group),
})
export class ListOrganizationMembershipGroups extends PageQuery<Group> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) id!: string;
}

/** Services that know memberships by their ids ask for what people are shown of them. */
@Operation({
  internal: true,
  owner: 'identity',
  summary: 'Find memberships by their ids',
  description: 'Answers in the order of the ids; those that are gone are left out.',
  answers: arrayOf(OrganizationMembershipWithUser),
})
export class FindOrganizationMemberships extends Query<readonly OrganizationMembershipWithUser[]> {
  @ListOf({ text: { max: 128 } }, { doc: 'The memberships.', maxItems: 100 }) ids!: readonly string[];
}
