import { ListOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, created, empty, listOf, ok, Operation, Query, type List } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { Permission } from '../permissions/permission.ts';
import { SLUG } from '../resource-types/resource-type.ts';
import { Role } from './role.ts';

@Operation({
  get: '/authorization/roles',
  owner: 'authorization',
  summary: 'List the roles of the environment',
  description: 'All of them, in the order of their priority.',
  answers: listOf(Role),
})
export class ListRoles extends Query<List<Role>> {}

@Operation({
  post: '/authorization/roles',
  owner: 'authorization',
  summary: 'Create a role',
  description: 'It goes to the bottom of the priority order, and is assigned on organizations unless `resource_type_slug` says otherwise.',
  answers: created(Role),
  refuses: ['entity_not_found', 'role_slug_conflict', 'authorization_model_limit_reached'],
  emits: ['role.created'],
})
export class CreateRole extends Command<Role> {
  @Picked(Role) slug!: string;
  @Picked(Role) name!: string;
  @Optional() @Picked(Role) description?: string | null;
  @Optional() @Picked(Role) resource_type_slug?: string;
}

@Operation({ get: '/authorization/roles/{slug}', owner: 'authorization', summary: 'Get a role', answers: ok(Role) })
export class GetRole extends Query<Role> {
  @Text({ doc: 'Slug of the role.', example: 'editor' }) slug!: string;
}

@Operation({
  patch: '/authorization/roles/{slug}',
  owner: 'authorization',
  summary: 'Update a role',
  description: 'What is absent stays.',
  answers: ok(Role),
  refuses: ['authorization_model_limit_reached'],
  emits: ['role.updated'],
})
export class UpdateRole extends Command<Role> {
  @Text({ doc: 'Slug of the role.', example: 'editor' }) slug!: string;
  @Optional() @Picked(Role) name?: string;
  @Optional() @Picked(Role) description?: string | null;
}

@Operation({
  put: '/authorization/roles/{role_slug}/permissions',
  owner: 'authorization',
  summary: 'Set the permissions of a role',
  answers: ok(Role),
  refuses: ['role_permission_limit_reached'],
  emits: ['role.updated'],
})
export class SetRolePermissions extends Command<Role> {
  @Text({ doc: 'Slug of the role.', example: 'editor' }) role_slug!: string;
  @Picked(Role) permissions!: readonly string[];
}

@Operation({
  post: '/authorization/roles/{role_slug}/permissions',
  owner: 'authorization',
  summary: 'Give a role a permission',
  description: 'Nothing happens where it has it already.',
  answers: ok(Role),
  refuses: ['role_permission_limit_reached'],
  emits: ['role.updated'],
})
export class AddRolePermission extends Command<Role> {
  @Text({ doc: 'Slug of the role.', example: 'editor' }) role_slug!: string;
  @Picked(Permission) slug!: string;
}

@Operation({
  put: '/admin/roles/priority',
  owner: 'authorization',
  summary: 'Set the priority order of the roles',
  description: 'The named roles come first, in this order; those that are not named follow in the order that they had. Answers all roles.',
  answers: listOf(Role),
  refuses: ['entity_not_found'],
  emits: ['role.updated'],
})
export class SetRolePriority extends Command<List<Role>> {
  @ListOf({ text: SLUG }, { doc: 'Slugs of roles, the one of highest priority first.', minItems: 1, unique: true, example: ['admin', 'member'] })
  role_slugs!: readonly string[];
}

@Operation({
  delete: '/admin/roles/{slug}',
  owner: 'authorization',
  summary: 'Delete a role',
  description: 'Whoever had it loses it at once; a membership that is left without a role has the default role `member`, which cannot be deleted.',
  answers: empty(204),
  emits: ['role.deleted', 'organization_membership.updated'],
})
export class DeleteRole extends Command<void> {
  @Text({ doc: 'Slug of the role.', example: 'editor' }) slug!: string;
}

@Operation({
  get: '/authorization/organizations/{organization_id}/roles',
  owner: 'authorization',
  summary: 'List the roles that an organization has',
  description: 'All of them: those of the environment in the order of their priority, then its own, the oldest first.',
  answers: listOf(Role),
})
export class ListOrganizationRoles extends Query<List<Role>> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
}

@Operation({
  post: '/authorization/organizations/{organization_id}/roles',
  owner: 'authorization',
  summary: 'Create a custom role',
  description: 'A role of one organization. Without a slug it gets one made of its name.',
  answers: created(Role),
  refuses: ['organization_role_slug_conflict', 'resource_type_update_in_progress'],
  emits: ['organization_role.created'],
})
export class CreateOrganizationRole extends Command<Role> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Optional()
  @Text({ doc: 'Names the role in requests: unique in the organization, and for good.', max: 48, pattern: /^org-[a-z0-9_-]+$/, example: 'org-auditor' })
  slug?: string;
  @Picked(Role) name!: string;
  @Optional() @Picked(Role) description?: string | null;
  @Optional() @Picked(Role) resource_type_slug?: string;
}

@Operation({
  get: '/authorization/organizations/{organization_id}/roles/{slug}',
  owner: 'authorization',
  summary: 'Get a role that an organization has',
  description: "One of the environment's or one of its own.",
  answers: ok(Role),
})
export class GetOrganizationRole extends Query<Role> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Text({ doc: 'Slug of the role.', example: 'org-auditor' }) slug!: string;
}

@Operation({
  patch: '/authorization/organizations/{organization_id}/roles/{slug}',
  owner: 'authorization',
  summary: 'Update a custom role',
  description: 'What is absent stays.',
  answers: ok(Role),
  emits: ['organization_role.updated'],
})
export class UpdateOrganizationRole extends Command<Role> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Text({ doc: 'Slug of the role.', example: 'org-auditor' }) slug!: string;
  @Optional() @Picked(Role) name?: string;
  @Optional() @Picked(Role) description?: string | null;
}

@Operation({
  delete: '/authorization/organizations/{organization_id}/roles/{slug}',
  owner: 'authorization',
  summary: 'Delete a custom role',
  description: 'Only one that nobody has.',
  answers: empty(204),
  refuses: ['role_has_assignments', 'role_has_group_role_mappings'],
  emits: ['organization_role.deleted'],
})
export class DeleteOrganizationRole extends Command<void> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Text({ doc: 'Slug of the role.', example: 'org-auditor' }) slug!: string;
}

@Operation({
  put: '/authorization/organizations/{organization_id}/roles/{role_slug}/permissions',
  owner: 'authorization',
  summary: 'Set the permissions of a custom role',
  answers: ok(Role),
  refuses: ['role_permission_limit_reached'],
  emits: ['organization_role.updated'],
})
export class SetOrganizationRolePermissions extends Command<Role> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Text({ doc: 'Slug of the role.', example: 'org-auditor' }) role_slug!: string;
  @Picked(Role) permissions!: readonly string[];
}

@Operation({
  post: '/authorization/organizations/{organization_id}/roles/{role_slug}/permissions',
  owner: 'authorization',
  summary: 'Give a custom role a permission',
  description: 'Nothing happens where it has it already.',
  answers: ok(Role),
  refuses: ['role_permission_limit_reached'],
  emits: ['organization_role.updated'],
})
export class AddOrganizationRolePermission extends Command<Role> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Text({ doc: 'Slug of the role.', example: 'org-auditor' }) role_slug!: string;
  @Picked(Permission) slug!: string;
}

@Operation({
  delete: '/authorization/organizations/{organization_id}/roles/{role_slug}/permissions/{permission_slug}',
  owner: 'authorization',
  summary: 'Take a permission from a custom role',
  answers: ok(Role),
  emits: ['organization_role.updated'],
})
export class RemoveOrganizationRolePermission extends Command<Role> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Text({ doc: 'Slug of the role.', example: 'org-auditor' }) role_slug!: string;
  @Text({ doc: 'Slug of the permission, percent-encoded.', example: 'documents:read' }) permission_slug!: string;
}
