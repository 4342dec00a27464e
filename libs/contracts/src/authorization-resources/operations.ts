import { Flag, Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { AuthorizationResource } from './authorization-resource.ts';

const NAME = { doc: 'Shown to people; not unique.', min: 1, max: 48, example: 'Website relaunch' } as const;
const PARENT = {
  id: { doc: 'What it is to hang under.', sameOrganization: true },
  externalId: { doc: 'Instead of `parent_resource_id`: your own identifier of the parent.', min: 1, max: 128, ascii: true, example: 'workspace-7' },
  type: { doc: 'The type that `parent_resource_external_id` is of.', min: 1, max: 48, example: 'workspace' },
} as const;
const CASCADE = { doc: 'Whether to delete what hangs under it, and the role assignments on all of that, as well.', default: false } as const;

const MOVES =
  'What is absent stays. A new parent is named by `parent_resource_id`, or by `parent_resource_external_id` and `parent_resource_type_slug`: it belongs to the same organization and is of a type that may be the parent of this one. Everything that hangs under the resource moves with it, and inherits from its new ancestors at once.';
const DELETES = 'Refused while anything hangs under the resource, or roles are assigned on it, unless `cascade_delete` is `true`.';

/** What may be changed of a resource, by whichever name it is found. */
abstract class ResourceChange extends Command<AuthorizationResource> {
  @Optional() @Text(NAME) name?: string;
  @Optional() @Picked(AuthorizationResource) description?: string | null;
  @Optional() @Ref(() => AuthorizationResource, PARENT.id) parent_resource_id?: string;
  @Optional() @Text(PARENT.externalId) parent_resource_external_id?: string;
  @Optional() @Text(PARENT.type) parent_resource_type_slug?: string;
}

@Operation({
  post: '/authorization/resources',
  owner: 'authorization',
  summary: 'Create a resource',
  description:
    'The parent is named by `parent_resource_id`, or by `parent_resource_external_id` and `parent_resource_type_slug`; without any of them the resource hangs under the organization. Over 5,000 resources of one type in an organization are carried out all the same, and answered with the header `Gatehouse-Warning`.',
  answers: created(AuthorizationResource),
  refuses: ['bad_request', 'lock_timeout', 'authorization_resource_external_id_conflict', 'resource_type_update_in_progress'],
  warns: true,
})
export class CreateAuthorizationResource extends Command<AuthorizationResource> {
  @Ref(() => Organization, { doc: 'The organization that it belongs to.', sameOrganization: true }) organization_id!: string;
  @Picked(AuthorizationResource) resource_type_slug!: string;
  @Picked(AuthorizationResource) external_id!: string;
  @Text(NAME) name!: string;
  @Optional() @Picked(AuthorizationResource) description?: string | null;
  @Optional() @Ref(() => AuthorizationResource, PARENT.id) parent_resource_id?: string;
  @Optional() @Text(PARENT.externalId) parent_resource_external_id?: string;
  @Optional() @Text(PARENT.type) parent_resource_type_slug?: string;
}

@Operation({
  get: '/authorization/resources',
  owner: 'authorization',
  summary: 'List resources',
  description:
    'Give `organization_id`, `resource_type_slug`, or both, and narrow that by an external id or a parent. The organization resource is one of the resources of its organization.',
  answers: listOf(AuthorizationResource),
  refuses: ['missing_organization_id_or_resource_type_slug'],
})
export class ListAuthorizationResources extends PageQuery<AuthorizationResource> {
  @Optional() @Ref(() => Organization, { doc: 'Resources of this organization.' }) organization_id?: string;
  @Optional() @Text({ doc: 'Resources of this type.', min: 1, max: 48, example: 'project' }) resource_type_slug?: string;
  @Optional() @Text({ doc: 'Resources that you call so.', min: 1, max: 128, ascii: true, example: 'project-42' }) resource_external_id?: string;
  @Optional() @Ref(() => AuthorizationResource, { doc: 'Resources right under this one.' }) parent_resource_id?: string;
  @Optional()
  @Text({ doc: 'With `parent_external_id` and `organization_id`: resources right under the one of this type.', min: 1, max: 48, example: 'workspace' })
  parent_resource_type_slug?: string;
  @Optional()
  @Text({ doc: 'With `parent_resource_type_slug`: your own identifier of the parent.', min: 1, max: 128, ascii: true, example: 'workspace-7' })
  parent_external_id?: string;
  @Optional() @Text({ doc: 'The same as `parent_external_id`.', min: 1, max: 128, ascii: true, example: 'workspace-7' }) parent_resource_external_id?: string;
}

@Operation({ get: '/authorization/resources/{resource_id}', owner: 'authorization', summary: 'Get a resource', answers: ok(AuthorizationResource) })
export class GetAuthorizationResource extends Query<AuthorizationResource> {
  @Ref(() => AuthorizationResource, { doc: 'The resource.' }) resource_id!: string;
}

@Operation({
  patch: '/authorization/resources/{resource_id}',
  owner: 'authorization',
  summary: 'Update or move a resource',
  description: MOVES,
  answers: ok(AuthorizationResource),
  refuses: ['bad_request', 'lock_timeout', 'resource_type_update_in_progress'],
})
export class UpdateAuthorizationResource extends ResourceChange {
  @Ref(() => AuthorizationResource, { doc: 'The resource.', sameOrganization: true }) resource_id!: string;
}

@Operation({
  delete: '/authorization/resources/{resource_id}',
  owner: 'authorization',
  summary: 'Delete a resource',
  description: DELETES,
  answers: empty(204),
  refuses: ['bad_request', 'lock_timeout', 'resource_has_dependents', 'resource_type_update_in_progress'],
})
export class DeleteAuthorizationResource extends Command<void> {
  @Ref(() => AuthorizationResource, { doc: 'The resource.' }) resource_id!: string;
  @Flag(CASCADE) cascade_delete!: boolean;
}

@Operation({
  get: '/authorization/organizations/{organization_id}/resources/{resource_type_slug}/{external_id}',
  owner: 'authorization',
  summary: 'Get a resource by your own identifier',
  answers: ok(AuthorizationResource),
})
export class GetAuthorizationResourceByExternalId extends Query<AuthorizationResource> {
  @Ref(() => Organization, { doc: 'The organization that it belongs to.' }) organization_id!: string;
  @Picked(AuthorizationResource) resource_type_slug!: string;
  @Text({ doc: 'Your own identifier, percent-encoded.', example: 'project-42' }) external_id!: string;
}

@Operation({
  patch: '/authorization/organizations/{organization_id}/resources/{resource_type_slug}/{external_id}',
  owner: 'authorization',
  summary: 'Update or move a resource by your own identifier',
  description: MOVES,
  answers: ok(AuthorizationResource),
  refuses: ['bad_request', 'lock_timeout', 'resource_type_update_in_progress'],
})
export class UpdateAuthorizationResourceByExternalId extends ResourceChange {
  @Ref(() => Organization, { doc: 'The organization that it belongs to.', sameOrganization: true }) organization_id!: string;
  @Picked(AuthorizationResource) resource_type_slug!: string;
  @Text({ doc: 'Your own identifier, percent-encoded.', example: 'project-42' }) external_id!: string;
}

@Operation({
  delete: '/authorization/organizations/{organization_id}/resources/{resource_type_slug}/{external_id}',
  owner: 'authorization',
  summary: 'Delete a resource by your own identifier',
  description: DELETES,
  answers: empty(204),
  refuses: ['bad_request', 'lock_timeout', 'resource_has_dependents', 'resource_type_update_in_progress'],
})
export class DeleteAuthorizationResourceByExternalId extends Command<void> {
  @Ref(() => Organization, { doc: 'The organization that it belongs to.' }) organization_id!: string;
  @Picked(AuthorizationResource) resource_type_slug!: string;
  @Text({ doc: 'Your own identifier, percent-encoded.', example: 'project-42' }) external_id!: string;
  @Flag(CASCADE) cascade_delete!: boolean;
}
