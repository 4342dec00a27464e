import type { ListAuthorizationResources } from '#libs/contracts/src/authorization-resources/operations';
import { DomainError, invalidField } from '#libs/platform/src/domain-error';
import type { PageRequest } from '#libs/read-models/src/read-models';
import type { EnvironmentModel } from '../access/environment-model.ts';
import { organizationResourceId } from '../domain/resource-tree.ts';
import type { ResourceRows } from '../repositories/resource-rows.ts';
import { together, typeKey, type ResourceRow } from '../views/resources.view.ts';
import { parentNamed, type NamedParent } from './parent-reference.ts';

interface Filter {
  readonly where: NonNullable<PageRequest['where']>;
  /** What the index does not answer: of the few rows that it finds, which are meant. */
  readonly isMeant: (row: ResourceRow) => boolean;
}

const NOTHING: Filter = { where: { index: 'organization', values: [] }, isMeant: () => true };

/**
 * Each combination of what a list may be asked for has an index. What does not exist has no resources.
 * @throws DomainError `missing_organization_id_or_resource_type_slug`; `invalid_request_parameters` where a parent is named twice or by halves
 */
export async function filterOf(query: ListAuthorizationResources, model: EnvironmentModel, rows: ResourceRows): Promise<Filter> {
  const { organization_id: organization, resource_type_slug: typeSlug, resource_external_id: externalId } = query;
  if (organization === undefined && typeSlug === undefined)
    throw new DomainError('invalid', 'missing_organization_id_or_resource_type_slug', 'Give `organization_id`, `resource_type_slug`, or both.');
  const named = namedIn(query);
  const type = typeSlug === undefined ? undefined : model.resourceTypeBySlug(typeSlug);
  if (type === null) return NOTHING;
  const typeOf = type === undefined ? null : typeKey(type.id);
  // Theirs follow the log of another service.
  if (organization !== undefined || type?.id === null) await rows.showOrganizations(query.context, organization ?? null);
  const isMeant = ({ resource_type_id }: ResourceRow): boolean => typeOf === null || typeKey(resource_type_id) === typeOf;
  const by = (index: string, ...parts: readonly string[]): Filter => ({ where: { index, values: [together(...parts)] }, isMeant });

  if (named !== null) {
    const parent = await parentOf(query, named, model, rows);
    if (parent === null) return NOTHING;
    if (externalId !== undefined) return by('parent_external_id', parent, externalId);
    return typeOf === null ? by('parent', parent) : by('parent_type', parent, typeOf);
  }
  if (organization === undefined) return externalId === undefined ? by('type', typeOf!) : by('type_external_id', typeOf!, externalId);
  if (typeOf === null) return externalId === undefined ? by('organization', organization) : by('organization_external_id', organization, externalId);
  return externalId === undefined ? by('organization_type', organization, typeOf) : by('organization_type_external_id', organization, typeOf, externalId);
}

/** Both spellings of the parent's external id count. */
function namedIn(query: ListAuthorizationResources): NamedParent | null {
  const { parent_external_id: short, parent_resource_external_id: long, organization_id } = query;
  if (short !== undefined && long !== undefined)
    throw invalidField('not_together', 'parent_resource_external_id', 'Give `parent_external_id` or `parent_resource_external_id`: they mean the same.');
  const named = parentNamed({ ...query, parent_resource_external_id: short ?? long }, long === undefined ? 'parent_external_id' : undefined);
  // External ids are unique in an organization; others have parents of the same name.
  if (named !== null && !('id' in named) && organization_id === undefined)
    throw invalidField('required', 'organization_id', 'A parent that is named by its external id needs its organization.');
  return named;
}

/** The id of a live parent, of the organization that is asked for if one is. */
async function parentOf(
  { context, organization_id }: ListAuthorizationResources,
  named: NamedParent,
  model: EnvironmentModel,
  rows: ResourceRows,
): Promise<string | null> {
  if ('id' in named) {
    const row = await rows.byId(context, named.id);
    return row === null || (organization_id !== undefined && row.organization_id !== organization_id) ? null : row.id;
  }
  const type = model.resourceTypeBySlug(named.typeSlug);
  if (type === null) return null;
  if (type.id === null) return named.externalId === organization_id ? organizationResourceId(organization_id) : null;
  return (await rows.byExternalId(context, organization_id!, type.id, named.externalId))?.id ?? null;
}
