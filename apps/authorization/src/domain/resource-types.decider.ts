import { changes } from '#libs/event-sourcing/src/deciding/changes.decider';
import { closingOf, reopeningOf } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import { badRequest, DomainError, notFound } from '#libs/platform/src/domain-error';
import {
  BUILT_IN_TYPE,
  byId,
  bySlug,
  isRepeated,
  refuseMoreThan,
  resourceTypeBySlug,
  sameMembers,
  slugTaken,
  typeNamed,
  type AuthorizationModel,
  type ModelDecision,
  type StoredResourceType,
  type TypeReference,
} from './authorization-model.decider.ts';

/** How many types may lie one below the other under `organization`. */
const MAX_DEPTH = 5;
const MAX_TYPES = 1_000;

interface GivenType {
  readonly slug: string;
  readonly name: string;
  readonly description?: string | null;
  readonly parent_type_slugs: readonly string[];
}

export function createResourceType({ slug, name, description = null, parent_type_slugs }: GivenType): ModelDecision {
  return (model, context) => {
    const id = context.id('resource_type');
    if (isRepeated(byId(model.resource_types, id), model.ended_ids, 'Resource type', id)) return [];
    if (slug === BUILT_IN_TYPE.slug || bySlug(model.resource_types, slug) !== undefined) throw slugTaken('resource_type_slug_conflict', slug);
    refuseMoreThan(MAX_TYPES, model.resource_types.length, 'resource types');
    const parents = parentsNamed(model, parent_type_slugs);
    refuseDeeper({ ...parentsOf(model), [id]: parents });
    return [{ type: 'resource_type.created', data: { id, slug, name, description, parents } }];
  };
}

type Change = Partial<Omit<GivenType, 'slug'>>;

/** Whoever is about to narrow a type: its id, its intent and when it is. */
type Intent = Parameters<typeof closingOf>[2];

/**
 * The intent to take parent types away, which resources may hang under, or would by what is recorded meanwhile.
 * @throws StillClosing
 */
export function closeForUpdate(given: Change, intent: Intent): ModelDecision {
  return (model) => {
    const type = typeWithId(model, intent.id);
    parentsAfter(model, type, given);
    return closingOf('resource_type', model.closings?.[intent.id], intent);
  };
}

/**
 * The intent to delete a type.
 * @throws StillClosing
 */
export function closeForDeletion(intent: Intent): ModelDecision {
  return (model) => {
    refuseUsedInModel(model, typeWithId(model, intent.id));
    return closingOf('resource_type', model.closings?.[intent.id], intent);
  };
}

export function reopenResourceType(id: string, intent: string): ModelDecision {
  return ({ closings }) => reopeningOf('resource_type', closings?.[id], id, intent);
}

/** What of its parent types an update would take from a type. With one of them gone, resources would lie where none may. */
export function takesParentsAway(model: AuthorizationModel, slug: string, { parent_type_slugs }: Change): boolean {
  if (parent_type_slugs === undefined) return false;
  return hasLess(resourceTypeBySlug(model, slug).parents, parentsNamed(model, parent_type_slugs));
}

/** `intent`: of whoever takes parent types away, which is over with the update; null: nothing is taken away. */
export function updateResourceType(slug: string, given: Change, intent: string | null): ModelDecision {
  return (model) => {
    const type = resourceTypeBySlug(model, slug);
    const { id } = type;
    const parents = parentsAfter(model, type, given);
    const open = model.closings?.[id];
    if (hasLess(type.parents, parents) && open?.intent !== intent) throw closedNoLonger(type);
    const { parent_type_slugs: _, ...texts } = given;
    const change = { ...changes(type, texts, ['name', 'description']), ...(parents !== type.parents && { parents }) };
    return [
      ...(Object.keys(change).length === 0 ? [] : [{ type: 'resource_type.updated', data: { id, ...change } } as const]),
      ...(intent === null ? [] : reopeningOf('resource_type', open, id, intent)),
    ];
  };
}

/** Only while the intent is open: nothing uses it then, and nobody begins to. */
export function deleteResourceType(id: string, intent: string): ModelDecision {
  return (model) => {
    const type = byId(model.resource_types, id);
    if (type === undefined) return [];
    refuseUsedInModel(model, type);
    if (model.closings?.[id]?.intent !== intent) throw closedNoLonger(type);
    return [{ type: 'resource_type.deleted', data: { id } }];
  };
}

export function typeInUse(message: string): DomainError {
  return new DomainError('conflict', 'resource_type_in_use', message);
}

/** @throws DomainError `entity_not_found` */
function typeWithId({ resource_types }: AuthorizationModel, id: string): StoredResourceType {
  const type = byId(resource_types, id);
  if (type === undefined) throw notFound('Resource type', id);
  return type;
}

/** @throws DomainError `resource_type_in_use` */
function refuseUsedInModel({ resource_types, permissions, roles }: AuthorizationModel, { id, slug }: StoredResourceType): void {
  const refer = ({ resource_type_id }: { readonly resource_type_id: string | null }): boolean => resource_type_id === id;
  if (resource_types.some(({ parents }) => parents.some((parent) => parent.id === id))) throw typeInUse(`Other types lie under the type '${slug}'.`);
  if (permissions.some(refer) || roles.some(refer)) throw typeInUse(`There are permissions or roles of the type '${slug}'.`);
}

/** The same list where nothing changes. @throws DomainError `bad_request`, `entity_not_found` */
function parentsAfter(model: AuthorizationModel, type: StoredResourceType, { parent_type_slugs }: Change): readonly TypeReference[] {
  const parents = parent_type_slugs === undefined ? type.parents : parentsNamed(model, parent_type_slugs);
  if (sameMembers(parents.map(idOf), type.parents.map(idOf))) return type.parents;
  refuseDeeper({ ...parentsOf(model), [type.id]: parents });
  return parents;
}

function hasLess(before: readonly TypeReference[], after: readonly TypeReference[]): boolean {
  const kept = new Set(after.map(idOf));
  return before.some((parent) => !kept.has(idOf(parent)));
}

function closedNoLonger({ slug }: StoredResourceType): DomainError {
  return typeInUse(`The type '${slug}' was changed or used meanwhile; nothing happened, try again.`);
}

function parentsOf({ resource_types }: AuthorizationModel): Readonly<Record<string, readonly TypeReference[]>> {
  return Object.fromEntries(resource_types.map(({ id, parents }) => [id, parents]));
}

function parentsNamed(model: AuthorizationModel, slugs: readonly string[]): readonly TypeReference[] {
  return [...new Set(slugs)].map((slug) => typeNamed(model, slug));
}

/** Takes away the topmost types again and again: of a cycle, which is a hierarchy without end, something always stays. @throws DomainError `bad_request` */
function refuseDeeper(parents: Readonly<Record<string, readonly TypeReference[]>>): void {
  let left = new Set<string | null>(Object.keys(parents));
  for (let depth = 1; depth <= MAX_DEPTH && left.size > 0; depth++) {
    const before = left;
    left = new Set(Object.keys(parents).filter((id) => parents[id]!.some((parent) => before.has(parent.id))));
  }
  if (left.size > 0) throw badRequest(`Resource types cannot be more than ${MAX_DEPTH} deep under '${BUILT_IN_TYPE.slug}', nor lie under themselves.`);
}

/** What tells a type from others: the built-in one has no id. */
function idOf({ id }: TypeReference): string {
  return id ?? '';
}
