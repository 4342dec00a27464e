import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { closingOf, reopeningOf, type Closing } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import { badRequest, DomainError, notFound } from '#libs/platform/src/domain-error';
import type { ResourceEvent } from './resource.events.ts';
import type { Node, ResourceTree } from './resource-tree.ts';

/** How many levels may hang under the organization resource. */
const MAX_DEPTH = 5;

/** A resource type, as it was known when the decision was asked for. */
export interface TypeOfResource {
  /** Null for the built-in type `organization`. */
  readonly id: string | null;
  readonly slug: string;
  readonly parents: readonly { readonly id: string | null; readonly slug: string }[];
}

/** A resource named by its id, or by its type and the caller's own identifier. */
export type ResourceReference = { readonly id: string } | { readonly type: TypeOfResource; readonly externalId: string };

interface NewResource {
  readonly type: TypeOfResource;
  readonly external_id: string;
  readonly name: string;
  readonly description?: string | null;
  /** Null: the organization resource. */
  readonly parent: ResourceReference | null;
}

interface ResourceChange {
  readonly name?: string;
  readonly description?: string | null;
  /** Null: it stays where it is. */
  readonly parent: ResourceReference | null;
}

/** What the tree does not keep: the texts of a resource, as they are now. */
interface ResourceTexts {
  readonly name: string;
  readonly description: string | null;
}

/** Decides on the tree as it stands, and leaves it alone. */
type Decide = Decision<ResourceTree, ResourceEvent>;

export function createResource({ type, external_id, name, description = null, parent }: NewResource): Decide {
  return (tree, context) => {
    const id = context.id('authz_resource');
    if (tree.nodeById(id) !== undefined) return [];
    if (type.id === null) throw badRequest('An organization resource comes with its organization, and no other way.');
    const above = parent === null ? tree.root : nodeOf(tree, parent);
    refuseParent(tree, type, above, 0);
    if (tree.nodeByExternalId(type.id, external_id) !== undefined)
      throw new DomainError(
        'conflict',
        'authorization_resource_external_id_conflict',
        `The organization has another resource of the type '${type.slug}' with the external id '${external_id}'.`,
      );
    return [
      {
        type: 'resource.created',
        data: {
          id,
          organization_id: tree.organizationId,
          external_id,
          resource_type_id: type.id,
          resource_type_slug: type.slug,
          parent_resource_id: tree.idOf(above),
          name,
          description,
        },
      },
    ];
  };
}

/** `type` is that of the resource; null where it was deleted meanwhile. */
export function updateResource(reference: ResourceReference, change: ResourceChange, type: TypeOfResource | null, texts: ResourceTexts): Decide {
  return (tree) => {
    const node = editable(tree, reference);
    const id = tree.idOf(node);
    const facts: ResourceEvent[] = [];
    const changed = changedTexts(texts, change);
    if (Object.keys(changed).length > 0) facts.push({ type: 'resource.updated', data: { id, ...changed } });
    const above = change.parent === null ? tree.parentOf(node) : nodeOf(tree, change.parent);
    if (above !== tree.parentOf(node)) {
      if (tree.isWithin(above, node)) throw badRequest('A resource cannot hang under itself.');
      if (type === null) throw notFound('Resource type', tree.typeSlugOf(node));
      refuseParent(tree, type, above, tree.heightOf(node));
      facts.push({ type: 'resource.moved', data: { id, parent_resource_id: tree.idOf(above) } });
    }
    return facts;
  };
}

/** Everything that hangs under it goes with it: dead at the position of this one event. */
export function deleteResource(reference: ResourceReference): Decide {
  return (tree) => [{ type: 'resource.deleted', data: { id: tree.idOf(editable(tree, reference)) } }];
}

/** Whoever is about to delete a resource unless something hangs on it, and the intent that is open. */
interface ClosingResource {
  readonly intent: string;
  readonly open: Closing | null;
}

/**
 * The intent to delete a resource unless something hangs on it.
 * @throws StillClosing
 */
export function closeResource(reference: ResourceReference, { intent, open }: ClosingResource, now: number): Decide {
  return (tree) => {
    const node = editable(tree, reference);
    if (tree.hasChildren(node)) throw hasDependents();
    return closingOf('resource', open ?? undefined, { id: tree.idOf(node), intent, now });
  };
}

export function reopenResource(id: string, { intent, open }: ClosingResource): Decide {
  return () => reopeningOf('resource', open ?? undefined, id, intent);
}

/** Only while the intent is open: nothing is assigned on it then, and nobody begins to. One that is gone stays so. */
export function deleteUnusedResource(id: string, { intent, open }: ClosingResource): Decide {
  return (tree) => {
    const node = tree.nodeById(id);
    if (node === undefined) return [];
    if (tree.hasChildren(node) || open?.intent !== intent) throw hasDependents();
    return [{ type: 'resource.deleted', data: { id } }];
  };
}

export function hasDependents(): DomainError {
  return new DomainError(
    'conflict',
    'resource_has_dependents',
    'Resources hang under this one, or roles are assigned on it: `cascade_delete` takes them along.',
  );
}

/** @throws DomainError `entity_not_found` */
export function nodeOf(tree: ResourceTree, reference: ResourceReference): Node {
  const node = 'id' in reference ? tree.nodeById(reference.id) : tree.nodeByExternalId(reference.type.id, reference.externalId);
  if (node === undefined) throw notFound('Resource', 'id' in reference ? reference.id : reference.externalId);
  return node;
}

function editable(tree: ResourceTree, reference: ResourceReference): Node {
  const node = nodeOf(tree, reference);
  if (node === tree.root) throw badRequest('An organization resource is neither edited nor deleted.');
  return node;
}

/** Whether a resource that is there may be put under another. */
export function mayMoveUnder(tree: ResourceTree, node: Node, type: TypeOfResource, above: Node): boolean {
  const { parents } = type;
  const typeId = tree.typeIdOf(above);
  return !tree.isWithin(above, node) && parents.some(({ id }) => id === typeId) && tree.depthOf(above) + 1 + tree.heightOf(node) <= MAX_DEPTH;
}

function refuseParent(tree: ResourceTree, { slug, parents }: TypeOfResource, above: Node, height: number): void {
  const typeId = tree.typeIdOf(above);
  if (!parents.some(({ id }) => id === typeId))
    throw badRequest(`A resource of the type '${slug}' cannot hang under one of the type '${tree.typeSlugOf(above)}'.`);
  if (tree.depthOf(above) + 1 + height > MAX_DEPTH) throw badRequest(`Resources cannot be more than ${MAX_DEPTH} deep under their organization.`);
}

function changedTexts(texts: ResourceTexts, { name, description }: ResourceChange): Partial<ResourceTexts> {
  return {
    ...(name !== undefined && name !== texts.name && { name }),
    ...(description !== undefined && description !== texts.description && { description }),
  };
}
