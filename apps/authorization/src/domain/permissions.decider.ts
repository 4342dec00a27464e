import { changes } from '#libs/event-sourcing/src/deciding/changes.decider';
import { DomainError } from '#libs/platform/src/domain-error';
import {
  byId,
  bySlug,
  isRepeated,
  permissionBySlug,
  refuseMoreThan,
  slugTaken,
  typeNamed,
  BUILT_IN_TYPE,
  type AuthorizationModelEvent,
  type ModelDecision,
} from './authorization-model.decider.ts';

const MAX_PERMISSIONS = 10_000;

interface GivenPermission {
  readonly slug: string;
  readonly name: string;
  readonly description?: string | null;
  readonly resource_type_slug?: string;
}

export function createPermission({ slug, name, description = null, resource_type_slug = BUILT_IN_TYPE.slug }: GivenPermission): ModelDecision {
  return (model, context) => {
    const id = context.id('perm');
    if (isRepeated(byId(model.permissions, id), model.ended_ids, 'Permission', id)) return [];
    const type = typeNamed(model, resource_type_slug);
    if (bySlug(model.permissions, slug) !== undefined) throw slugTaken('permission_slug_conflict', slug);
    refuseMoreThan(MAX_PERMISSIONS, model.permissions.length, 'permissions');
    const data = { id, slug, name, description, system: false, resource_type_id: type.id, resource_type_slug: type.slug };
    return [{ type: 'permission.created', data }];
  };
}

export function updatePermission(slug: string, given: Partial<Pick<GivenPermission, 'name' | 'description'>>): ModelDecision {
  return (model) => {
    const permission = permissionBySlug(model, slug);
    if (permission.system) throw systemPermission(slug, 'changed');
    const change = changes(permission, given, ['name', 'description']);
    return Object.keys(change).length === 0 ? [] : [{ type: 'permission.updated', data: { id: permission.id, ...change } }];
  };
}

/** Every role that held it is told of, some of them by the reaction where they are many; an organization's own follow, since they lie elsewhere. */
export function deletePermission(id: string): ModelDecision {
  return ({ permissions, roles }) => {
    const permission = byId(permissions, id);
    if (permission === undefined) return [];
    if (permission.system) throw systemPermission(permission.slug, 'deleted');
    const holders = roles.filter(({ permission_ids }) => permission_ids.includes(id));
    return [{ type: 'permission.deleted', data: { id } }, ...holders.map((role): AuthorizationModelEvent => ({ type: 'role.updated', data: { id: role.id } }))];
  };
}

function systemPermission(slug: string, what: 'changed' | 'deleted'): DomainError {
  return new DomainError('forbidden', 'forbidden', `'${slug}' is a system permission and cannot be ${what}.`);
}
