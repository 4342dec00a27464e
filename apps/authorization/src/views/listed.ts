import type { Class, List, Serialised } from '#libs/contracts/src/operation';
import type { PageQuery } from '#libs/contracts/src/pages';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { notFound } from '#libs/platform/src/domain-error';
import { pageOfIds } from '#libs/read-models/src/pages';

interface Listed<T> {
  readonly idPrefix: string;
  readonly of: Class<T>;
  readonly all: readonly T[];
  /** What was deleted stays a valid cursor. */
  readonly endedIds: readonly string[];
}

/** A page of what one row holds. */
export async function listedBy<T extends { readonly id: string }>(
  query: PageQuery<T>,
  { idPrefix, of, all, endedIds }: Listed<T>,
): Promise<Serialised<List<T>>> {
  const textOf = serialiserOf(of);
  const found = new Map(all.map((one) => [one.id, one]));
  return pageOfIds(query, {
    idPrefix,
    // Ids of several replicas need not come in the order in which they were recorded.
    ids: [...found.keys()].sort(),
    isKnown: (id) => found.has(id) || endedIds.includes(id),
    textsOf: (ids) => ids.map((id) => textOf(found.get(id)!)),
  });
}

/** A list without pages. */
export function whole<T>(data: readonly T[]): List<T> {
  return { object: 'list', data, list_metadata: { before: null, after: null } };
}

/** @throws DomainError `entity_not_found` */
export function present<Found>(found: Found | undefined, resource: string, id: string): Found {
  if (found === undefined) throw notFound(resource, id);
  return found;
}
