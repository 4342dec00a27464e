import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { OrganizationIndex } from '../access/organization-index.ts';
import type { Node } from '../domain/resource-tree.ts';
import { mayMoveUnder } from '../domain/resource.decider.ts';
import type { ResourceEvent } from '../domain/resource.events.ts';
import { rowAfter, type Amendment } from '../repositories/resource-trees.ts';
import type { ResourceRow } from '../views/resources.view.ts';

/**
 * Takes back what a command recorded of a resource that may not be where it was put. One that it made is deleted, with whatever was hung under it meanwhile. One
 * that it moved goes back, or under the organization where it cannot go back; what others did to it since stays.
 */
export function undo(commandId: string): Amendment {
  return (organization, told) => {
    const own = told.filter(({ meta }) => meta.commandId === commandId);
    const now = rowAfter(told);
    if (now === null || own.length === 0) return [];
    const { id } = now;
    if (own.some(isOf('resource.created'))) return [{ type: 'resource.deleted', data: { id } }];
    const later = told.filter(({ version }) => version > own.at(-1)!.version);
    if (!own.some(isOf('resource.moved')) || later.some(isOf('resource.moved'))) return [];
    const before = rowAfter(told.filter(({ version }) => version < own[0]!.version))!;
    // What was undone, and could not stay there either, is where nothing forbids it.
    const isUndone = own[0]!.meta.actor.source === 'system';
    const isRenamed = !isUndone && own.some(isOf('resource.updated')) && !later.some(isOf('resource.updated'));
    const parent = isUndone ? organization.tree.root : placeOf(organization, now, before);
    const parent_resource_id = organization.tree.idOf(parent);
    const { name, description } = before;
    return [
      ...(isRenamed ? [{ type: 'resource.updated', data: { id, name, description } } as const] : []),
      ...(parent_resource_id === now.parent_resource_id ? [] : [{ type: 'resource.moved', data: { id, parent_resource_id } } as const]),
    ];
  };
}

/** Where a resource was, or its organization. */
function placeOf({ tree, model }: OrganizationIndex, { id }: ResourceRow, { parent_resource_id, resource_type_id }: ResourceRow): Node {
  const [node, above, type] = [tree.nodeById(id), tree.nodeById(parent_resource_id!), model.resourceTypeById(resource_type_id)];
  return node !== undefined && above !== undefined && type !== null && mayMoveUnder(tree, node, type, above) ? above : tree.root;
}

function isOf(wanted: ResourceEvent['type']): (record: RecordedEvent) => boolean {
  return ({ type }) => type === wanted;
}
