import { type DomainError, invalidField, notFound } from '#libs/platform/src/domain-error';
import type { EnvironmentModel } from '../access/environment-model.ts';
import type { TypeOfResource } from '../domain/resource.decider.ts';

/** How a request names the parent of a resource. */
export interface GivenParent {
  readonly parent_resource_id?: string;
  readonly parent_resource_external_id?: string;
  readonly parent_resource_type_slug?: string;
}

/** The one form of the two that it was given in. */
export type NamedParent = { readonly id: string } | { readonly typeSlug: string; readonly externalId: string };

/**
 * Null where none is named. `externalIdField`: what the caller called it.
 * @throws DomainError `invalid_request_parameters` for both forms at once, or half of one
 */
export function parentNamed(given: GivenParent, externalIdField = 'parent_resource_external_id'): NamedParent | null {
  const { parent_resource_id: id, parent_resource_external_id: externalId, parent_resource_type_slug: typeSlug } = given;
  if (id !== undefined) {
    if (externalId !== undefined) throw notTogether(externalIdField);
    if (typeSlug !== undefined) throw notTogether('parent_resource_type_slug');
    return { id };
  }
  if (externalId === undefined && typeSlug === undefined) return null;
  if (externalId === undefined) throw required(externalIdField, externalIdField);
  if (typeSlug === undefined) throw required('parent_resource_type_slug', externalIdField);
  return { typeSlug, externalId };
}

/** @throws DomainError `entity_not_found` */
export function typeNamed(model: Pick<EnvironmentModel, 'resourceTypeBySlug'>, slug: string): TypeOfResource {
  const type = model.resourceTypeBySlug(slug);
  if (type === null) throw notFound('Resource type', slug);
  return type;
}

function notTogether(field: string): DomainError {
  return invalidField('not_together', field, `Name the parent by \`parent_resource_id\` or by \`${field}\`, not by both.`);
}

function required(field: string, externalIdField: string): DomainError {
  return invalidField('required', field, `\`${externalIdField}\` and \`parent_resource_type_slug\` name a parent together.`);
}
