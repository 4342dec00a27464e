import type { ParentStatus } from '#libs/event-sourcing/src/deciding/guards/parent-status';
import type { OrganizationIndex } from '../access/organization-index.ts';
import { typeStatus } from '../guards/statuses.ts';

/** A resource that was put under another. */
export interface Placed {
  readonly id: string;
  readonly resource_type_id: string;
  readonly parent_resource_id: string;
}

/** How that stands on which the place of a resource depends: its type, which says under what it may hang. */
export function placeStatuses(index: OrganizationIndex, { resource_type_id, parent_resource_id }: Placed): readonly ParentStatus[] {
  const { tree, model } = index;
  const above = tree.nodeById(parent_resource_id);
  const type = model.resourceTypeById(resource_type_id);
  // What hangs under something that is gone is dead with it.
  const allows = type !== null && (above === undefined || type.parents.some(({ id }) => id === tree.typeIdOf(above)));
  return [typeStatus(index, resource_type_id, allows)];
}
