import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { CreateResourceType, DeleteResourceType, GetResourceType, ListResourceTypes, UpdateResourceType } from '#libs/contracts/src/resource-types/operations';
import { ResourceType } from '#libs/contracts/src/resource-types/resource-type';
import { Deletions } from '#libs/event-sourcing/src/deletions';
import { derivedId } from '#libs/platform/src/ids';
import { ReadModels } from '#libs/read-models/src/read-models';
import { authorizationDeletionsView } from '../authorization-deletions.view.ts';
import { AuthorizationModels } from './authorization-models.ts';
import { byId, resourceTypeBySlug, shownResourceType } from './authorization-model.decider.ts';
import { listedBy, present } from './listed.ts';
import { createResourceType, deleteResourceType, updateResourceType } from './resource-types.decider.ts';
import { TypeUses } from './type-uses.ts';

@Injectable()
export class ResourceTypes {
  private readonly deletions: Deletions;

  constructor(
    private readonly models: AuthorizationModels,
    private readonly uses: TypeUses,
    readModels: ReadModels,
  ) {
    this.deletions = new Deletions(readModels, authorizationDeletionsView);
  }

  @Handles(CreateResourceType)
  async create(operation: CreateResourceType): Promise<ResourceType> {
    const { context } = operation;
    const id = `resource_type_${derivedId(context.commandId, 0)}`;
    const { resource_types } = await this.models.transact(context, createResourceType(operation));
    return shownResourceType(present(byId(resource_types, id), 'Resource type', id));
  }

  @Handles(ListResourceTypes)
  async list(query: ListResourceTypes): Promise<Serialised<List<ResourceType>>> {
    const { resource_types, ended_ids } = await this.models.of(query.context.environment);
    return listedBy(query, { idPrefix: 'resource_type', of: ResourceType, all: resource_types.map(shownResourceType), endedIds: ended_ids });
  }

  @Handles(GetResourceType)
  async get({ context, slug }: GetResourceType): Promise<ResourceType> {
    return this.models.found(context, (model) => shownResourceType(resourceTypeBySlug(model, slug)));
  }

  @Handles(UpdateResourceType)
  async update({ context, slug, name, description, parent_type_slugs }: UpdateResourceType): Promise<ResourceType> {
    const { id } = await this.models.found(context, (model) => resourceTypeBySlug(model, slug));
    const hasResources = parent_type_slugs !== undefined && (await this.uses.byResources(context, id));
    const model = await this.models.transact(context, updateResourceType(slug, { name, description, parent_type_slugs }, hasResources));
    return shownResourceType(resourceTypeBySlug(model, slug));
  }

  @Handles(DeleteResourceType)
  async delete({ context, slug }: DeleteResourceType): Promise<void> {
    await this.deletions.once(context, async () => {
      const { id } = await this.models.found(context, (model) => resourceTypeBySlug(model, slug));
      const isUsed = (await this.uses.byOrganizationRoles(context, id)) || (await this.uses.byResources(context, id));
      await this.models.transact(context, deleteResourceType(id, isUsed));
    });
  }
}
