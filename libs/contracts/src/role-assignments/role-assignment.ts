import { AuthorizationResource } from '../authorization-resources/authorization-resource.ts';
import { Const, Id, Nested, OneOf, Optional, Picked, Ref, Text, Time } from '../fields.ts';
import { Group } from '../groups/group.ts';
import { OrganizationMembership } from '../organization-memberships/organization-membership.ts';

/** The role that an assignment gives. */
export class RoleAssignmentRole {
  @Text({ doc: 'Slug of the role.', example: 'editor' }) slug!: string;
}

/** The resource that an assignment gives a role on. */
export class RoleAssignmentResource {
  @Ref(() => AuthorizationResource, { doc: 'The resource.' }) id!: string;
  @Text({ doc: 'Your own identifier of it.', example: 'project-7' }) external_id!: string;
  @Text({ doc: 'Slug of its type.', example: 'project' }) resource_type_slug!: string;
}

/** A role that a group has on a resource: so have all of its members, on the resource and everything below it. */
export class GroupRoleAssignment {
  @Const('group_role_assignment') object!: 'group_role_assignment';
  @Id('gra', { doc: 'Identifies the assignment.' }) id!: string;
  @Ref(() => Group, { doc: 'The group.' }) group_id!: string;
  @Nested(() => RoleAssignmentRole, { doc: 'The role.' }) role!: RoleAssignmentRole;
  @Nested(() => RoleAssignmentResource, { doc: 'The resource.' }) resource!: RoleAssignmentResource;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'The same: an assignment never changes.' }) updated_at!: string;
}

/** The group through which a membership has a role. */
export class RoleAssignmentGroup {
  @Ref(() => Group, { doc: 'The group.' }) id!: string;
  @Text({ doc: 'Its name.', example: 'Engineering' }) name!: string;
}

/** Why a membership has a role. */
export class RoleAssignmentSource {
  @OneOf(['direct', 'group'], { doc: 'Whether the role was assigned to the membership itself or to a group that it is in.' }) type!: 'direct' | 'group';
  @Ref(() => GroupRoleAssignment, { doc: "The group's assignment; null for a direct one.", nullable: true }) group_role_assignment_id!: string | null;
  @Nested(() => RoleAssignmentGroup, { doc: 'The group that has it; null for a direct one.', nullable: true }) group!: RoleAssignmentGroup | null;
}

/** A role that a membership has on a resource: it holds the permissions of the role on the resource and everything below it. */
export class RoleAssignment {
  @Const('role_assignment') object!: 'role_assignment';
  @Id('role_assignment', { doc: 'Identifies the assignment.' }) id!: string;
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
  @Nested(() => RoleAssignmentRole, { doc: 'The role.' }) role!: RoleAssignmentRole;
  @Nested(() => RoleAssignmentResource, { doc: 'The resource.' }) resource!: RoleAssignmentResource;
  @Nested(() => RoleAssignmentSource, { doc: 'Why the membership has the role.' }) source!: RoleAssignmentSource;
  @Time({ doc: 'When it was created; one that comes through a group is as old as the assignment of the group.' }) created_at!: string;
  @Time({ doc: 'The same: an assignment never changes.' }) updated_at!: string;
}

/** How a request names a resource: by `resource_id`, or by `resource_external_id` and `resource_type_slug`. */
export class ResourceReference {
  @Optional()
  @Ref(() => AuthorizationResource, { doc: 'The resource, if it is not named by your own identifier.', sameOrganization: true })
  resource_id?: string;
  @Optional()
  @Text({ doc: 'Your own identifier of the resource, together with `resource_type_slug`.', min: 1, max: 128, ascii: true, example: 'project-7' })
  resource_external_id?: string;
  @Optional() @Text({ doc: 'Slug of the type of the resource.', min: 1, max: 128, example: 'project' }) resource_type_slug?: string;
}

/** A role to give a group, on a resource or, if none is named, on the organization. */
export class RequestedGroupRole {
  @Text({ doc: 'Slug of the role.', min: 1, max: 128, example: 'editor' }) role_slug!: string;
  @Optional() @Picked(ResourceReference) resource_id?: string;
  @Optional() @Picked(ResourceReference) resource_external_id?: string;
  @Optional() @Picked(ResourceReference) resource_type_slug?: string;
}
