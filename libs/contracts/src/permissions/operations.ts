import { Optional, Picked, Text } from '../fields.ts';
import { Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { PageQuery } from '../pages.ts';
import { Permission } from './permission.ts';

@Operation({ get: '/authorization/permissions', owner: 'authorization', summary: 'List permissions', answers: listOf(Permission) })
export class ListPermissions extends PageQuery<Permission> {}

@Operation({
  post: '/authorization/permissions',
  owner: 'authorization',
  summary: 'Create a permission',
  description: 'It is about resources of type `organization` unless `resource_type_slug` says otherwise.',
  answers: created(Permission),
  refuses: ['entity_not_found', 'permission_slug_conflict', 'authorization_model_limit_reached'],
  emits: ['permission.created'],
})
export class CreatePermission extends Command<Permission> {
  @Picked(Permission) slug!: string;
  @Picked(Permission) name!: string;
  @Optional() @Picked(Permission) description?: string | null;
  @Optional() @Picked(Permission) resource_type_slug?: string;
}

@Operation({ get: '/authorization/permissions/{slug}', owner: 'authorization', summary: 'Get a permission', answers: ok(Permission) })
export class GetPermission extends Query<Permission> {
  @Text({ doc: 'Slug of the permission, percent-encoded.', example: 'documents:read' }) slug!: string;
}

@Operation({
  patch: '/authorization/permissions/{slug}',
  owner: 'authorization',
  summary: 'Update a permission',
  description: 'What is absent stays. System permissions cannot be changed.',
  answers: ok(Permission),
  refuses: ['forbidden', 'authorization_model_limit_reached'],
  emits: ['permission.updated'],
})
export class UpdatePermission extends Command<Permission> {
  @Text({ doc: 'Slug of the permission, percent-encoded.', example: 'documents:read' }) slug!: string;
  @Optional() @Picked(Permission) name?: string;
  @Optional() @Picked(Permission) description?: string | null;
}

@Operation({
  delete: '/authorization/permissions/{slug}',
  owner: 'authorization',
  summary: 'Delete a permission',
  description: 'Every role that held it loses it at once. System permissions cannot be deleted.',
  answers: empty(204),
  refuses: ['forbidden'],
  emits: ['permission.deleted', 'role.updated', 'organization_role.updated'],
})
export class DeletePermission extends Command<void> {
  @Text({ doc: 'Slug of the permission, percent-encoded.', example: 'documents:read' }) slug!: string;
}
