import { Optional, Picked, Text } from '../fields.ts';
import { Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { PageQuery } from '../pages.ts';
import { ResourceType } from './resource-type.ts';

@Operation({
  post: '/admin/resource_types',
  owner: 'authorization',
  summary: 'Create a resource type',
  description: 'Types form a hierarchy under `organization` that is at most 5 types deep and has no cycles; a type may have several parent types.',
  answers: created(ResourceType),
  refuses: ['entity_not_found', 'resource_type_slug_conflict', 'authorization_model_limit_reached'],
})
export class CreateResourceType extends Command<ResourceType> {
  @Picked(ResourceType) slug!: string;
  @Picked(ResourceType) name!: string;
  @Optional() @Picked(ResourceType) description?: string | null;
  @Picked(ResourceType) parent_type_slugs!: readonly string[];
}

@Operation({
  get: '/admin/resource_types',
  owner: 'authorization',
  summary: 'List resource types',
  description: 'The built-in type `organization` is not among them.',
  answers: listOf(ResourceType),
})
export class ListResourceTypes extends PageQuery<ResourceType> {}

@Operation({ get: '/admin/resource_types/{slug}', owner: 'authorization', summary: 'Get a resource type', answers: ok(ResourceType) })
export class GetResourceType extends Query<ResourceType> {
  @Text({ doc: 'Slug of the type.', example: 'workspace' }) slug!: string;
}

@Operation({
  patch: '/admin/resource_types/{slug}',
  owner: 'authorization',
  summary: 'Update a resource type',
  description: 'What is absent stays. A parent type can be taken away only while there are no resources of this type.',
  answers: ok(ResourceType),
  refuses: ['resource_type_in_use', 'authorization_model_limit_reached'],
})
export class UpdateResourceType extends Command<ResourceType> {
  @Text({ doc: 'Slug of the type.', example: 'workspace' }) slug!: string;
  @Optional() @Picked(ResourceType) name?: string;
  @Optional() @Picked(ResourceType) description?: string | null;
  @Optional() @Picked(ResourceType) parent_type_slugs?: readonly string[];
}

@Operation({
  delete: '/admin/resource_types/{slug}',
  owner: 'authorization',
  summary: 'Delete a resource type',
  description: 'Only a type that nothing uses: no other type, permission, role or resource.',
  answers: empty(204),
  refuses: ['resource_type_in_use'],
})
export class DeleteResourceType extends Command<void> {
  @Text({ doc: 'Slug of the type.', example: 'workspace' }) slug!: string;
}
