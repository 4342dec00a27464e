import type { ResourceReference } from '#libs/contracts/src/role-assignments/role-assignment';
import { type DomainError, invalidField, notFound } from '#libs/platform/src/domain-error';
import type { Node } from '../domain/resource-tree.ts';
import type { Role } from './environment-model.ts';
import type { OrganizationIndex } from './organization-index.ts';

interface Options {
  /** What is meant where no resource is named; absent: one has to be. */
  readonly unless?: 'organization';
  /** What the names of the fields begin with in an answer that refuses them. */
  readonly within?: string;
}

/**
 * The resource of an organization that a request names.
 * @throws DomainError `entity_not_found`, also for one of another organization; `invalid_request_parameters` where it is named twice, by halves or not at all
 */
export function namedResource({ tree, model }: OrganizationIndex, given: ResourceReference, { unless, within = '' }: Options = {}): Node {
  const { resource_id: id, resource_external_id: externalId, resource_type_slug: typeSlug } = given;
  if (id !== undefined) {
    if (externalId !== undefined)
      throw invalidField('not_together', `${within}resource_external_id`, 'Name the resource by `resource_id` or by `resource_external_id`, not by both.');
    const node = tree.nodeById(id);
    if (node === undefined || (typeSlug !== undefined && tree.typeSlugOf(node) !== typeSlug)) throw notFound('Resource', id);
    return node;
  }
  if (externalId === undefined && typeSlug === undefined) {
    if (unless === 'organization') return tree.root;
    throw invalidField('required', `${within}resource_id`, 'Name the resource by `resource_id`, or by `resource_external_id` and `resource_type_slug`.');
  }
  if (externalId === undefined) throw halfNamed(`${within}resource_external_id`);
  if (typeSlug === undefined) throw halfNamed(`${within}resource_type_slug`);
  const type = model.resourceTypeBySlug(typeSlug);
  if (type === null) throw notFound('Resource type', typeSlug);
  const node = tree.nodeByExternalId(type.id, externalId);
  if (node === undefined) throw notFound('Resource', externalId);
  return node;
}

/**
 * The role of that slug, for resources of the type of `node`.
 * @throws DomainError `entity_not_found`; `invalid_request_parameters` where the role is one for resources of another type
 */
export function roleFor(index: OrganizationIndex, slug: string, node: Node, { within = '' }: Options = {}): Role {
  const role = namedRole(index, slug);
  if (role.resource_type_id === index.tree.typeIdOf(node)) return role;
  const message = `The role '${slug}' is one for resources of the type '${role.resource_type_slug}', not '${index.tree.typeSlugOf(node)}'.`;
  throw invalidField('role_of_other_type', `${within}role_slug`, message);
}

/** @throws DomainError `entity_not_found` */
export function namedRole(index: OrganizationIndex, slug: string): Role {
  const role = index.roleBySlug(slug);
  if (role === null) throw notFound('Role', slug);
  return role;
}

function halfNamed(field: string): DomainError {
  return invalidField('required', field, '`resource_external_id` and `resource_type_slug` name a resource together.');
}
