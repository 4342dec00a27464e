import { DomainError } from '#libs/platform/src/domain-error';
import {
  badRequest,
  BUILT_IN_TYPE,
  byId,
  bySlug,
  differences,
  isRepeated,
  refuseMoreThan,
  resourceTypeBySlug,
  sameMembers,
  slugTaken,
  typeNamed,
  type AuthorizationModel,
  type ModelDecision,
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

/** `hasResources`, as seen before: with another parent type gone, resources would lie where none may. */
export function updateResourceType(slug: string, { parent_type_slugs, ...given }: Partial<Omit<GivenType, 'slug'>>, hasResources: boolean): ModelDecision {
  return (model) => {
    const type = resourceTypeBySlug(model, slug);
    const { id } = type;
    const parents = parent_type_slugs === undefined ? type.parents : parentsNamed(model, parent_type_slugs);
    const areSame = sameMembers(parents.map(idOf), type.parents.map(idOf));
    if (!areSame) {
      const kept = new Set(parents.map(idOf));
      if (hasResources && type.parents.some((parent) => !kept.has(idOf(parent))))
        throw inUse(`There are resources of the type '${slug}', so no parent type can be taken from it.`);
      refuseDeeper({ ...parentsOf(model), [id]: parents });
    }
    const change = { ...differences(type, given), ...(!areSame && { parents }) };
    return Object.keys(change).length === 0 ? [] : [{ type: 'resource_type.updated', data: { id, ...change } }];
  };
}

/** `isUsedElsewhere`, as seen before: by resources, or by roles of organizations. */
export function deleteResourceType(id: string, isUsedElsewhere: boolean): ModelDecision {
  return (model) => {
    const type = byId(model.resource_types, id);
    if (type === undefined) return [];
    const refer = ({ resource_type_id }: { readonly resource_type_id: string | null }): boolean => resource_type_id === id;
    if (model.resource_types.some(({ parents }) => parents.some((parent) => parent.id === id))) throw inUse(`Other types lie under the type '${type.slug}'.`);
    if (isUsedElsewhere || model.permissions.some(refer) || model.roles.some(refer))
      throw inUse(`There are permissions, roles or resources of the type '${type.slug}'.`);
    return [{ type: 'resource_type.deleted', data: { id } }];
  };
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

function inUse(message: string): DomainError {
  return new DomainError('conflict', 'resource_type_in_use', message);
}
