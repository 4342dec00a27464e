import { changes } from '#libs/event-sourcing/src/deciding/changes.decider';
import { badRequest, DomainError } from '#libs/platform/src/domain-error';
import {
  BUILT_IN_TYPE,
  byId,
  bySlug,
  isRepeated,
  permissionSlugs,
  permissionsNamed,
  refuseMoreThan,
  roleBySlug,
  sameMembers,
  slugTaken,
  typeNamed,
  type AuthorizationModel,
  type AuthorizationModelEvent,
  type ModelDecision,
  type PermissionReference,
  type StoredRole,
} from './authorization-model.decider.ts';

const MAX_ROLES = 1_000;
/** A role's event shows its permissions and stays under 64 KB. */
const MAX_PERMISSIONS_OF_ROLE = 1_000;

interface GivenRole {
  readonly slug: string;
  readonly name: string;
  readonly description?: string | null;
  readonly resource_type_slug?: string;
}

/** At the bottom of the order of priority. */
export function createRole({ slug, name, description = null, resource_type_slug = BUILT_IN_TYPE.slug }: GivenRole, customPrefix: string): ModelDecision {
  return (model, context) => {
    const id = context.id('role');
    if (isRepeated(byId(model.roles, id), model.ended_ids, 'Role', id)) return [];
    if (slug.startsWith(customPrefix)) throw badRequest(`Only the roles of an organization begin with '${customPrefix}'.`);
    const type = typeNamed(model, resource_type_slug);
    if (bySlug(model.roles, slug) !== undefined) throw slugTaken('role_slug_conflict', slug);
    refuseMoreThan(MAX_ROLES, model.roles.length, 'roles');
    const data = { id, slug, name, description, resource_type_id: type.id, resource_type_slug: type.slug, permissions: [] };
    return [{ type: 'role.created', data }];
  };
}

export function updateRole(slug: string, given: Partial<Pick<GivenRole, 'name' | 'description'>>): ModelDecision {
  return (model) => {
    const role = roleBySlug(model, slug);
    const change = changes(role, given, ['name', 'description']);
    return Object.keys(change).length === 0 ? [] : [{ type: 'role.updated', data: { id: role.id, ...change } }];
  };
}

/** Replaces all. Any permission will do: what is about types below the role's own counts where such resources lie under it. */
export function setRolePermissions(slug: string, permissionSlugs: readonly string[]): ModelDecision {
  return (model) => withPermissions(roleBySlug(model, slug), permissionsNamed(model, permissionSlugs));
}

export function addRolePermission(slug: string, permissionSlug: string): ModelDecision {
  return (model) => {
    const role = roleBySlug(model, slug);
    return withPermissions(role, [...permissionsOf(model, role), ...permissionsNamed(model, [permissionSlug])]);
  };
}

function withPermissions({ id, permission_ids }: StoredRole, permissions: readonly PermissionReference[]): readonly AuthorizationModelEvent[] {
  const each = [...new Map(permissions.map((permission) => [permission.id, permission])).values()];
  if (
    sameMembers(
      each.map((permission) => permission.id),
      permission_ids,
    )
  )
    return [];
  refuseTooManyPermissions(each.length);
  return [{ type: 'role.updated', data: { id, permissions: each } }];
}

function permissionsOf(model: AuthorizationModel, { permission_ids }: StoredRole): readonly PermissionReference[] {
  const slugs = permissionSlugs(model);
  return permission_ids.map((id) => ({ id, slug: slugs.get(id)! }));
}

/** `defaultSlug` names the role that everybody falls back to. */
export function deleteRole(id: string, defaultSlug: string): ModelDecision {
  return ({ roles }) => {
    const role = byId(roles, id);
    if (role === undefined) return [];
    if (role.slug === defaultSlug) throw badRequest(`'${defaultSlug}' is the default role and cannot be deleted.`);
    return [{ type: 'role.deleted', data: { id } }];
  };
}

/** The named roles first, in this order; the others keep theirs behind them. Each role whose place changed is told of, where they are many some of them by the reaction. */
export function setRolePriority(slugs: readonly string[]): ModelDecision {
  return (model) => {
    refuseTwice(slugs);
    const named = slugs.map((slug) => roleBySlug(model, slug));
    const order = [...named, ...model.roles.filter((role) => !named.includes(role))];
    const moved = order.filter((role, place) => model.roles[place] !== role);
    if (moved.length === 0) return [];
    return [
      { type: 'roles.reordered', data: { role_ids: order.map(({ id }) => id) } },
      ...moved.map(({ id }): AuthorizationModelEvent => ({ type: 'role.updated', data: { id } })),
    ];
  };
}

/** @throws DomainError `bad_request` */
export function refuseTooManyPermissions(count: number): void {
  if (count > MAX_PERMISSIONS_OF_ROLE) throw badRequest(`A role has at most ${MAX_PERMISSIONS_OF_ROLE} permissions.`);
}

function refuseTwice(slugs: readonly string[]): void {
  const errors = slugs.flatMap((slug, place) =>
    slugs.indexOf(slug) === place ? [] : [{ code: 'duplicate', field: `role_slugs.${place}`, message: `'${slug}' is named twice.` }],
  );
  if (errors.length > 0) throw new DomainError('invalid', 'invalid_request_parameters', 'Each role has one place.', { errors });
}
