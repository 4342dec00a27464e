import { AuthorizationResource } from '../authorization-resources/authorization-resource.ts';
import { ListOf, OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { arrayOf, listOf, ok, Operation, Query } from '../operation.ts';
import { OrganizationMembership, OrganizationMembershipWithUser } from '../organization-memberships/organization-membership.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { Permission } from '../permissions/permission.ts';
import { ResourceReference } from '../role-assignments/role-assignment.ts';
import { AccessCheck, AccessCheckBatch, AccessExplanation, MappedRoles, OrganizationAccess, RequestedAccess } from './access-check.ts';

const COUNTS =
  'Everything counts that gives a role with the permission: the roles of the membership in the organization, its role assignments, those of its groups, on the resource and on everything above it. A membership that is not active has no permissions.';
const TYPE = { doc: 'Slug of the type of the resource.', example: 'project' } as const;
const EXTERNAL_ID = { doc: 'Your own identifier of the resource, percent-encoded.', example: 'project-42' } as const;
const ASSIGNMENT = {
  doc: '`direct`: by a role on the resource itself. `indirect`: by a role on a resource above it, which does not include `direct`; a membership that has both is on either list. Absent: by whatever gives it, rather than `direct` alone.',
} as const;
const WAYS = ['direct', 'indirect'] as const;

/** Whether a membership has a permission on a resource. */
abstract class AccessQuestion<T> extends Query<T> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
  @Picked(RequestedAccess) permission_slug!: string;
  @Optional() @Picked(ResourceReference) resource_id?: string;
  @Optional() @Picked(ResourceReference) resource_external_id?: string;
  @Optional() @Picked(ResourceReference) resource_type_slug?: string;
}

@Operation({
  post: '/authorization/organization_memberships/{organization_membership_id}/check',
  owner: 'authorization',
  summary: 'Check whether a membership has a permission on a resource',
  description: `${COUNTS} The answer knows everything that was answered before it was asked for.`,
  answers: ok(AccessCheck),
})
export class CheckAccess extends AccessQuestion<AccessCheck> {}

@Operation({
  post: '/authorization/organization_memberships/{organization_membership_id}/check_batch',
  owner: 'authorization',
  summary: 'Check several permissions of a membership at once',
  description:
    'The answers come in the order of the questions and are all as of the same moment. A permission or resource that does not exist refuses all of them.',
  answers: ok(AccessCheckBatch),
})
export class CheckAccessBatch extends Query<AccessCheckBatch> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
  @ListOf(() => RequestedAccess, { doc: 'The questions.', minItems: 1, maxItems: 100 }) checks!: readonly RequestedAccess[];
}

@Operation({
  post: '/authorization/organization_memberships/{organization_membership_id}/check/explain',
  owner: 'authorization',
  summary: 'Explain why a membership has a permission on a resource, or why not',
  description:
    'Answers every role that gives the permission: how the membership comes by it, and where it was given. Where nothing does, it answers what nearly does: roles that apply once the membership is active, roles on the resource or above it that lack the permission, and roles elsewhere that have it.',
  answers: ok(AccessExplanation),
})
export class ExplainAccess extends AccessQuestion<AccessExplanation> {}

@Operation({
  get: '/authorization/organization_memberships/{organization_membership_id}/resources',
  owner: 'authorization',
  summary: 'List the resources under another one on which a membership has a permission',
  description: `Name the parent by \`parent_resource_id\`, or by \`parent_resource_external_id\` and \`parent_resource_type_slug\`. Only what hangs right under it is listed. ${COUNTS}`,
  answers: listOf(AuthorizationResource),
})
export class ListAccessibleResources extends PageQuery<AuthorizationResource> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
  @Picked(RequestedAccess) permission_slug!: string;
  @Optional() @Ref(() => AuthorizationResource, { doc: 'What the resources hang under.', sameOrganization: true }) parent_resource_id?: string;
  @Optional()
  @Text({ doc: 'Instead of `parent_resource_id`: your own identifier of the parent.', min: 1, max: 128, ascii: true, example: 'workspace-7' })
  parent_resource_external_id?: string;
  @Optional() @Text({ doc: 'The type that `parent_resource_external_id` is of.', min: 1, max: 128, example: 'workspace' }) parent_resource_type_slug?: string;
}

@Operation({
  get: '/authorization/resources/{resource_id}/organization_memberships',
  owner: 'authorization',
  summary: 'List the memberships that have a permission on a resource',
  description: COUNTS,
  answers: listOf(OrganizationMembershipWithUser),
})
export class ListMembershipsWithAccess extends PageQuery<OrganizationMembershipWithUser> {
  @Ref(() => AuthorizationResource, { doc: 'The resource.' }) resource_id!: string;
  @Picked(RequestedAccess) permission_slug!: string;
  @Optional() @OneOf(WAYS, ASSIGNMENT) assignment?: 'direct' | 'indirect';
}

@Operation({
  get: '/authorization/organizations/{organization_id}/resources/{resource_type_slug}/{external_id}/organization_memberships',
  owner: 'authorization',
  summary: 'List the memberships that have a permission on a resource, by your own identifier of it',
  description: COUNTS,
  answers: listOf(OrganizationMembershipWithUser),
})
export class ListMembershipsWithAccessByExternalId extends PageQuery<OrganizationMembershipWithUser> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Text(TYPE) resource_type_slug!: string;
  @Text(EXTERNAL_ID) external_id!: string;
  @Picked(RequestedAccess) permission_slug!: string;
  @Optional() @OneOf(WAYS, ASSIGNMENT) assignment?: 'direct' | 'indirect';
}

@Operation({
  get: '/authorization/organization_memberships/{organization_membership_id}/resources/{resource_id}/permissions',
  owner: 'authorization',
  summary: 'List the permissions that a membership has on a resource',
  description: COUNTS,
  answers: listOf(Permission),
})
export class ListEffectivePermissions extends PageQuery<Permission> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
  @Ref(() => AuthorizationResource, { doc: 'The resource.', sameOrganization: true }) resource_id!: string;
}

@Operation({
  get: '/authorization/organization_memberships/{organization_membership_id}/resources/{resource_type_slug}/{external_id}/permissions',
  owner: 'authorization',
  summary: 'List the permissions that a membership has on a resource, by your own identifier of it',
  description: COUNTS,
  answers: listOf(Permission),
})
export class ListEffectivePermissionsByExternalId extends PageQuery<Permission> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
  @Text(TYPE) resource_type_slug!: string;
  @Text(EXTERNAL_ID) external_id!: string;
}

/** Access tokens say what somebody may do in the whole organization. */
@Operation({
  internal: true,
  owner: 'authorization',
  summary: 'Tell which roles a membership has in its organization, and what they permit there',
  description: 'As the end of the log says when it is asked. Roles on resources do not count.',
  answers: ok(OrganizationAccess),
})
export class GetOrganizationAccess extends Query<OrganizationAccess> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
}

/** What is shown and announced of memberships follows what their directories give. */
@Operation({
  internal: true,
  owner: 'authorization',
  summary: 'Tell which roles groups of directories give memberships of an organization',
  description: 'As the end of the log says when it is asked. Those that are gone are left out.',
  answers: arrayOf(MappedRoles),
})
export class FindMappedRoles extends Query<readonly MappedRoles[]> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @ListOf({ text: { max: 128 } }, { doc: 'The memberships.', maxItems: 100 }) organization_membership_ids!: readonly string[];
}
