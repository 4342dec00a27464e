import type { StoredDirectoryGroup } from '../domain/directory-group.decider.ts';
import type { StoredDirectoryUser } from '../domain/directory-user.decider.ts';
import { CUSTOM_ATTRIBUTES, isObject, OWN_SCHEMA, ownName, stepsOf, type Attributes } from '../domain/scim-values.decider.ts';

/** What of a resource is asked for: names and paths, null where nothing is said. */
export interface Projection {
  readonly attributes: readonly string[] | null;
  readonly excluded: readonly string[];
}

export const EVERYTHING: Projection = { attributes: null, excluded: [] };

/** What is answered whatever is asked for. */
const ALWAYS: ReadonlySet<string> = new Set(['id', 'schemas']);

export interface GroupOfUser {
  readonly id: string;
  readonly name: string;
}

/** `base`: the address of the directory. `groups`: where they are asked for. */
export function userResource(user: StoredDirectoryUser, base: string, groups: readonly GroupOfUser[] | null): Attributes {
  const { schemas, ...attributes } = user.attributes ?? {};
  return {
    schemas,
    id: user.id,
    ...attributes,
    ...(groups !== null && { groups: groups.map(({ id, name }) => ({ value: id, $ref: `${base}/Groups/${id}`, display: name })) }),
    meta: metaOf('User', user, user.updated_at, base),
  };
}

/** With what the application is shown of a person, by the settings of the directory. */
export function withOwn(user: Attributes, customAttributes: Attributes): Attributes {
  return { ...user, schemas: [...new Set([...(user['schemas'] as readonly string[]), OWN_SCHEMA])], [OWN_SCHEMA]: { [CUSTOM_ATTRIBUTES]: customAttributes } };
}

/** `members`: where they are asked for. */
export function groupResource(group: StoredDirectoryGroup, base: string, members: readonly string[] | null): Attributes {
  const { schemas, ...attributes } = group.attributes;
  return {
    schemas,
    id: group.id,
    ...attributes,
    ...(members !== null && { members: members.map((id) => ({ value: id, $ref: `${base}/Users/${id}`, type: 'User' })) }),
    meta: metaOf('Group', group, group.modified_at, base),
  };
}

function metaOf(resourceType: 'User' | 'Group', { id, version, created_at }: StoredDirectoryUser | StoredDirectoryGroup, lastModified: string, base: string) {
  return { resourceType, created: created_at, lastModified, version: etagOf(version), location: `${base}/${resourceType}s/${id}` };
}

export function etagOf(version: number): string {
  return `W/"${version}"`;
}

/** Whether an attribute is to be answered; `isRequested`: of one that is not, unless it is asked for by its name. */
export function isAskedFor({ attributes, excluded }: Projection, name: string, isRequested = false): boolean {
  const named = (paths: readonly string[]): boolean => paths.some((path) => stepsOf(path)[0]!.toLowerCase() === name.toLowerCase());
  if (attributes !== null) return named(attributes);
  return !isRequested && !excluded.some((path) => stepsOf(path).length === 1 && named([path]));
}

/** What is asked for of a resource. */
export function projected(resource: Attributes, { attributes, excluded }: Projection): Attributes {
  if (attributes !== null) return picked(resource, attributes.map(stepsOf));
  return excluded.length === 0 ? resource : left(resource, excluded.map(stepsOf), true);
}

function picked(resource: Attributes, paths: readonly (readonly string[])[]): Attributes {
  const answer: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(resource)) {
    if (ALWAYS.has(name)) {
      answer[name] = value;
      continue;
    }
    const named = paths.filter(([first]) => first!.toLowerCase() === name.toLowerCase());
    if (named.length === 0) continue;
    const below = named.map(([, ...rest]) => rest);
    answer[name] = below.some((rest) => rest.length === 0) ? value : partsOf(value, below);
  }
  return answer;
}

function partsOf(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (Array.isArray(value)) return value.map((item) => partsOf(item, paths));
  if (!isObject(value)) return value;
  const entries = paths.flatMap(([first, ...rest]) => {
    const own = ownName(value, first!);
    return own === undefined ? [] : [[own, rest.length === 0 ? value[own] : partsOf(value[own], [rest])] as const];
  });
  return Object.fromEntries(entries);
}

function left(value: unknown, paths: readonly (readonly string[])[], isTop: boolean): Attributes {
  const answer: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(value as Attributes)) {
    const named = isTop && ALWAYS.has(name) ? [] : paths.filter(([first]) => first!.toLowerCase() === name.toLowerCase()).map(([, ...rest]) => rest);
    if (named.some((rest) => rest.length === 0)) continue;
    if (named.length === 0) answer[name] = each;
    else
      answer[name] = Array.isArray(each)
        ? each.map((item: unknown) => (isObject(item) ? left(item, named, false) : item))
        : isObject(each)
          ? left(each, named, false)
          : each;
  }
  return answer;
}
