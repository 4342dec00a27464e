import { AuthorizationResource } from '../authorization-resources/authorization-resource.ts';
import { ListOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { Group } from '../groups/group.ts';
import { Command, created, empty, listOf, ok, Operation, Query, type List } from '../operation.ts';
import { OrganizationMembership } from '../organization-memberships/organization-membership.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { GroupRoleAssignment, RequestedGroupRole, ResourceReference, RoleAssignment } from './role-assignment.ts';

const OF_ALL_SOURCES =
  'Direct assignments, and one entry for each role that a member has through a group; `source` tells which. An entry that comes through a group has an id of its own, which stays the same, but it is removed with the assignment of the group or by leaving the group.';

/** A role, and the resource that it is given on or taken away from. */
abstract class RoleOnResource<T> extends Command<T> {
  @Picked(RequestedGroupRole) role_slug!: string;
  @Optional() @Picked(ResourceReference) resource_id?: string;
  @Optional() @Picked(ResourceReference) resource_external_id?: string;
  @Optional() @Picked(ResourceReference) resource_type_slug?: string;
}

@Operation({
  get: '/authorization/organization_memberships/{organization_membership_id}/role_assignments',
  owner: 'authorization',
  summary: 'List the role assignments of a membership',
  description: `${OF_ALL_SOURCES} The filters may be combined.`,
  answers: listOf(RoleAssignment),
})
export class ListRoleAssignments extends PageQuery<RoleAssignment> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
  @Optional() @Ref(() => AuthorizationResource, { doc: 'Those on this resource.' }) resource_id?: string;
  @Optional() @Text({ doc: 'Those on resources with this identifier of yours.', min: 1, max: 128, ascii: true }) resource_external_id?: string;
  @Optional() @Text({ doc: 'Those on resources of this type.', min: 1, max: 128 }) resource_type_slug?: string;
}

@Operation({
  post: '/authorization/organization_memberships/{organization_membership_id}/role_assignments',
  owner: 'authorization',
  summary: 'Give a membership a role on a resource',
  description:
    'The role is one of the environment or of the organization, for resources of this type. A role that the membership has there already is answered as it is. An inactive membership keeps what it is given, and holds nothing until it is active.',
  answers: created(RoleAssignment),
})
export class CreateRoleAssignment extends RoleOnResource<RoleAssignment> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
}

@Operation({
  delete: '/authorization/organization_memberships/{organization_membership_id}/role_assignments',
  body: true,
  owner: 'authorization',
  summary: 'Take a role on a resource from a membership',
  description: 'What the membership holds for other reasons stays.',
  answers: empty(204),
})
export class DeleteRoleAssignment extends RoleOnResource<void> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
}

@Operation({
  delete: '/authorization/organization_memberships/{organization_membership_id}/role_assignments/{role_assignment_id}',
  owner: 'authorization',
  summary: 'Delete a role assignment of a membership',
  answers: empty(204),
  refuses: ['role_assignment_from_group'],
})
export class DeleteRoleAssignmentById extends Command<void> {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
  @Ref(() => RoleAssignment, { doc: 'The assignment.' }) role_assignment_id!: string;
}

@Operation({
  get: '/authorization/resources/{resource_id}/role_assignments',
  owner: 'authorization',
  summary: 'List the role assignments on a resource',
  description: `${OF_ALL_SOURCES} Roles on resources above it are not listed here.`,
  answers: listOf(RoleAssignment),
})
export class ListResourceRoleAssignments extends PageQuery<RoleAssignment> {
  @Ref(() => AuthorizationResource, { doc: 'The resource.' }) resource_id!: string;
  @Optional() @Text({ doc: 'Those that give this role.', min: 1, max: 128 }) role_slug?: string;
}

@Operation({
  get: '/authorization/organizations/{organization_id}/resources/{resource_type_slug}/{external_id}/role_assignments',
  owner: 'authorization',
  summary: 'List the role assignments on a resource, by your own identifier',
  description: `${OF_ALL_SOURCES} Roles on resources above it are not listed here.`,
  answers: listOf(RoleAssignment),
})
export class ListResourceRoleAssignmentsByExternalId extends PageQuery<RoleAssignment> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Text({ doc: 'Slug of the type of the resource.', example: 'project' }) resource_type_slug!: string;
  @Text({ doc: 'Your own identifier of the resource, percent-encoded.', example: 'project-42' }) external_id!: string;
  @Optional() @Text({ doc: 'Those that give this role.', min: 1, max: 128 }) role_slug?: string;
}

@Operation({
  get: '/authorization/groups/{group_id}/role_assignments',
  owner: 'authorization',
  summary: 'List the role assignments of a group',
  answers: listOf(GroupRoleAssignment),
})
export class ListGroupRoleAssignments extends PageQuery<GroupRoleAssignment> {
  @Ref(() => Group, { doc: 'The group.' }) group_id!: string;
}

@Operation({
  post: '/authorization/groups/{group_id}/role_assignments',
  owner: 'authorization',
  summary: 'Give a group a role on a resource',
  description: 'Without a resource, the role is given on the organization.',
  answers: created(GroupRoleAssignment),
  refuses: ['duplicate_group_role_assignment'],
})
export class CreateGroupRoleAssignment extends RoleOnResource<GroupRoleAssignment> {
  @Ref(() => Group, { doc: 'The group.' }) group_id!: string;
}

@Operation({
  put: '/authorization/groups/{group_id}/role_assignments',
  owner: 'authorization',
  summary: 'Replace the role assignments of a group',
  description:
    'Those that are named and there already stay as they are; the rest is removed. If the answer does not come, send the request again: it goes on where it was interrupted.',
  answers: listOf(GroupRoleAssignment),
})
export class ReplaceGroupRoleAssignments extends Command<List<GroupRoleAssignment>> {
  @Ref(() => Group, { doc: 'The group.' }) group_id!: string;
  @ListOf(() => RequestedGroupRole, { doc: 'The roles that it has from now on.', maxItems: 100 }) role_assignments!: readonly RequestedGroupRole[];
}

@Operation({
  patch: '/authorization/groups/{group_id}/role_assignments',
  owner: 'authorization',
  summary: 'Give a group roles and take others from it',
  maxBody: 128 * 1024,
  description:
    'At most 100 together. Nothing happens unless every role and resource is there. A role to add that the group has already stays as it is, and one to remove that it has not stays away. If the answer does not come, send the request again: it goes on where it was interrupted. Answers what the group has then, the newest first, at most 100.',
  answers: listOf(GroupRoleAssignment),
})
export class UpdateGroupRoleAssignments extends Command<List<GroupRoleAssignment>> {
  @Ref(() => Group, { doc: 'The group.' }) group_id!: string;
  @Optional() @ListOf(() => RequestedGroupRole, { doc: 'The roles to give it.', maxItems: 100 }) add?: readonly RequestedGroupRole[];
  @Optional() @ListOf(() => RequestedGroupRole, { doc: 'The roles to take from it.', maxItems: 100 }) remove?: readonly RequestedGroupRole[];
}

@Operation({
  delete: '/authorization/groups/{group_id}/role_assignments',
  body: true,
  owner: 'authorization',
  summary: 'Take a role on a resource from a group',
  description: 'Without a resource, the role on the organization.',
  answers: empty(204),
})
export class DeleteGroupRoleAssignment extends RoleOnResource<void> {
  @Ref(() => Group, { doc: 'The group.' }) group_id!: string;
}

@Operation({
  get: '/authorization/groups/{group_id}/role_assignments/{role_assignment_id}',
  owner: 'authorization',
  summary: 'Get a role assignment of a group',
  answers: ok(GroupRoleAssignment),
})
export class GetGroupRoleAssignment extends Query<GroupRoleAssignment> {
  @Ref(() => Group, { doc: 'The group.' }) group_id!: string;
  @Ref(() => GroupRoleAssignment, { doc: 'The assignment.' }) role_assignment_id!: string;
}

@Operation({
  delete: '/authorization/groups/{group_id}/role_assignments/{role_assignment_id}',
  owner: 'authorization',
  summary: 'Delete a role assignment of a group',
  answers: empty(204),
})
export class DeleteGroupRoleAssignmentById extends Command<void> {
  @Ref(() => Group, { doc: 'The group.' }) group_id!: string;
  @Ref(() => GroupRoleAssignment, { doc: 'The assignment.' }) role_assignment_id!: string;
}
