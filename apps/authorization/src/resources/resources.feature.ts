import { feature } from '#libs/runtime/src/feature';
import { DeleteResourcesOfDeletedOrganization, DeleteResourcesUnderDeleted } from './delete-resources.reaction.ts';
import type { ResourceEvent } from '../domain/resource.events.ts';
import { ResourceRows } from '../repositories/resource-rows.ts';
import { RESOURCE_TREE, ResourceTrees } from '../repositories/resource-trees.ts';
import { Resources } from './resources.ts';
import { resourcesView } from '../views/resources.view.ts';

export const resources = feature({
  deciders: [RESOURCE_TREE],
  views: [resourcesView],
  providers: [ResourceRows, ResourceTrees, Resources],
  reactions: [DeleteResourcesUnderDeleted, DeleteResourcesOfDeletedOrganization],
  removals: ['resource.deleted' satisfies ResourceEvent['type']],
});
