import type { OrganizationRole, Role } from '#libs/contracts/src/roles/role';
import { changes } from '#libs/event-sourcing/src/deciding/changes.decider';
import type { NewPublicEvent, Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import {
  afterClosing,
  closingOf,
  reopeningOf,
  withoutClosing,
  type ClosingEvent,
  type WithClosings,
} from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import {
  byId,
  bySlug,
  isRepeated,
  refuseMoreThan,
  refuseTooManyPairs,
  sameMembers,
  slugTaken,
  withEnded,
  type PermissionReference,
  type TypeReference,
} from './authorization-model.decider.ts';
import { refuseTooManyPermissions } from './roles.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type OrganizationRolesEvent =
  | Fact<'organization_role.created', NewOrganizationRole>
  | Fact<'organization_role.updated', { readonly id: string } & Partial<Pick<NewOrganizationRole, 'name' | 'description' | 'permissions'>>>
  | Fact<'organization_role.deleted', { readonly id: string }>
  /** Somebody is about to delete the role unless it is assigned. */
  | ClosingEvent<'organization_role'>;

interface NewOrganizationRole extends Pick<OrganizationRole, 'id' | 'organization_id' | 'slug' | 'name' | 'description' | 'resource_type_slug'> {
  readonly resource_type_id: string | null;
  /** Some may be dead: the model says which live. */
  readonly permissions: readonly PermissionReference[];
}

export type StoredOrganizationRole = NewOrganizationRole & { readonly created_at: string; readonly updated_at: string };

/** The roles of one organization, the oldest first. Some may be about to be deleted. */
export interface OrganizationRolesState extends WithClosings {
  readonly organization_id: string;
  readonly roles: readonly StoredOrganizationRole[];
  readonly ended_ids: readonly string[];
}

type State = OrganizationRolesState | null;

function evolve(state: State, event: OrganizationRolesEvent & { readonly at: string }): State {
  if (event.type === 'organization_role.created') {
    const before = state ?? { organization_id: event.data.organization_id, roles: [], ended_ids: [] };
    return { ...before, roles: [...before.roles, { ...event.data, created_at: event.at, updated_at: event.at }] };
  }
  if (state === null) return null;
  const { id } = event.data;
  switch (event.type) {
    case 'organization_role.updated':
      return { ...state, roles: state.roles.map((role) => (role.id === id ? { ...role, ...event.data, updated_at: event.at } : role)) };
    case 'organization_role.deleted':
      return withoutClosing({ ...state, roles: state.roles.filter((role) => role.id !== id), ended_ids: withEnded(state.ended_ids, id) }, id);
    case 'organization_role.closing':
    case 'organization_role.reopened':
      return afterClosing(state, event);
  }
}

function toPublicEvent(event: OrganizationRolesEvent, before: State, after: State): NewPublicEvent | null {
  if (event.type === 'organization_role.closing' || event.type === 'organization_role.reopened') return null;
  const { roles } = (event.type === 'organization_role.deleted' ? before : after)!;
  return { payload: asAnnounced(byId(roles, event.data.id)!), names: [event.type] };
}

function asAnnounced({ permissions, resource_type_id: _, ...role }: StoredOrganizationRole): OrganizationRole {
  return { object: 'organization_role', ...role, permissions: permissions.map(({ slug }) => slug) };
}

/** One aggregate per organization, so that a slug is unique in it. */
export const organizationRolesDecider: Decider<State, OrganizationRolesEvent> = {
  category: 'organization_roles',
  foldVersion: 3,
  initial: null,
  sealed: {
    'organization_role.created': null,
    'organization_role.updated': null,
    'organization_role.deleted': null,
    'organization_role.closing': null,
    'organization_role.reopened': null,
  },
  evolve,
  organization: (state) => state?.organization_id,
  toPublicEvent,
  // What follows from the end of a permission, or of the organization, is decided by what is left.
  mayFollow: ['organization_role.updated', 'organization_role.deleted'],
  hangsOn: {
    reaction: 'delete-roles-when-organization-deleted',
    parents: [{ ends: 'organization.deleted' satisfies OrganizationEvent['type'] }],
    end: recordRoleDeletions,
  },
};

type Decide = Decision<State, OrganizationRolesEvent>;

/** Whether a permission isLive, as the model says. */
type IsLivePermission = (permissionId: string) => boolean;

const MAX_ROLES = 1_000;

interface GivenRole {
  readonly slug: string;
  readonly name: string;
  readonly description?: string | null;
  readonly type: TypeReference;
}

export function createOrganizationRole(organizationId: string, { slug, name, description = null, type }: GivenRole): Decide {
  return (state, context) => {
    const id = context.id('role');
    const roles = state?.roles ?? [];
    if (isRepeated(byId(roles, id), state?.ended_ids ?? [], 'Role', id)) return [];
    if (bySlug(roles, slug) !== undefined) throw slugTaken('organization_role_slug_conflict', slug);
    refuseMoreThan(MAX_ROLES, roles.length, 'roles in the organization');
    const scope = { resource_type_id: type.id, resource_type_slug: type.slug };
    return [{ type: 'organization_role.created', data: { id, organization_id: organizationId, slug, name, description, ...scope, permissions: [] } }];
  };
}

/** Whatever changes leaves out the permissions that died meanwhile. */
export function updateOrganizationRole(slug: string, given: Partial<Pick<GivenRole, 'name' | 'description'>>, isLive: IsLivePermission): Decide {
  return (state) => {
    const role = organizationRoleBySlug(state, slug);
    return changesOf(role, changes(role, given, ['name', 'description']), livePermissions(role, isLive));
  };
}

export function setOrganizationRolePermissions(slug: string, permissions: readonly PermissionReference[]): Decide {
  return (state) => withinPairs(state, changesOf(organizationRoleBySlug(state, slug), {}, permissions));
}

export function addOrganizationRolePermission(slug: string, permission: PermissionReference, isLive: IsLivePermission): Decide {
  return (state) => {
    const role = organizationRoleBySlug(state, slug);
    return withinPairs(state, changesOf(role, {}, [...livePermissions(role, isLive).filter(({ id }) => id !== permission.id), permission]));
  };
}

export function removeOrganizationRolePermission(slug: string, permissionId: string, isLive: IsLivePermission): Decide {
  return (state) => {
    const role = organizationRoleBySlug(state, slug);
    if (!role.permissions.some(({ id }) => id === permissionId)) return [];
    return changesOf(
      role,
      {},
      livePermissions(role, isLive).filter(({ id }) => id !== permissionId),
    );
  };
}

/**
 * The intent to delete a role unless it is assigned.
 * @throws StillClosing
 */
export function closeOrganizationRole(intent: Parameters<typeof closingOf>[2]): Decide {
  return (state) => {
    const { id } = intent;
    if (byId(state?.roles ?? [], id) === undefined) throw notFound('Role', id);
    return closingOf('organization_role', state?.closings?.[id], intent);
  };
}

export function reopenOrganizationRole(id: string, intent: string): Decide {
  return (state) => reopeningOf('organization_role', state?.closings?.[id], id, intent);
}

/** Only while the intent is open: nobody has the role then, and nobody gets it. One that is gone stays so. */
export function deleteOrganizationRole(id: string, intent: string): Decide {
  return (state) => {
    const role = byId(state?.roles ?? [], id);
    if (role === undefined) return [];
    if (state?.closings?.[id]?.intent !== intent) throw roleHasAssignments(role.slug);
    return [{ type: 'organization_role.deleted', data: { id } }];
  };
}

/** What is recorded of a role that was made although its type was being taken away. */
export function undoOrganizationRole(id: string): Decide {
  return (state) => (byId(state?.roles ?? [], id) === undefined ? [] : [{ type: 'organization_role.deleted', data: { id } }]);
}

export function roleHasAssignments(slug: string): DomainError {
  return new DomainError('conflict', 'role_has_assignments', `The role '${slug}' is assigned: take it away first.`);
}

/** What follows from the deletion of a permission: each role that still holds it is told of. */
export function dropPermission(permissionId: string): Decide {
  return (state) =>
    (state?.roles ?? []).flatMap((role) =>
      changesOf(
        role,
        {},
        role.permissions.filter(({ id }) => id !== permissionId),
      ),
    );
}

/** What follows from the deletion of the organization. */
export function recordRoleDeletions(): Decide {
  return (state) => (state?.roles ?? []).map(({ id }) => ({ type: 'organization_role.deleted', data: { id } }));
}

/** @throws DomainError `entity_not_found` */
export function organizationRoleBySlug(state: State, slug: string): StoredOrganizationRole {
  const role = bySlug(state?.roles ?? [], slug);
  if (role === undefined) throw notFound('Role', slug);
  return role;
}

/** As the API shows it: `slugs` are those of the live permissions by their ids. */
export function toPublicOrganizationRole(
  { organization_id: _, resource_type_id: _type, permissions, ...role }: StoredOrganizationRole,
  slugs: ReadonlyMap<string, string>,
): Role {
  return { object: 'role', ...role, type: 'OrganizationRole', permissions: permissions.flatMap(({ id }) => slugs.get(id) ?? []) };
}

/** @throws DomainError `role_permission_limit_reached` */
function withinPairs(state: State, events: readonly OrganizationRolesEvent[]): readonly OrganizationRolesEvent[] {
  const after = events.reduce<State>((before, event) => evolve(before, { ...event, at: '' }), state);
  refuseTooManyPairs(pairsOf(state), pairsOf(after));
  return events;
}

function pairsOf(state: State): number {
  return (state?.roles ?? []).reduce((sum, { permissions }) => sum + permissions.length, 0);
}

function livePermissions({ permissions }: StoredOrganizationRole, isLive: IsLivePermission): readonly PermissionReference[] {
  return permissions.filter(({ id }) => isLive(id));
}

function changesOf(
  role: StoredOrganizationRole,
  fields: Partial<Pick<StoredOrganizationRole, 'name' | 'description'>>,
  permissions: readonly PermissionReference[],
): readonly OrganizationRolesEvent[] {
  const areSame = sameMembers(
    permissions.map(({ id }) => id),
    role.permissions.map(({ id }) => id),
  );
  if (!areSame) refuseTooManyPermissions(permissions.length);
  const change = { ...fields, ...(!areSame && { permissions }) };
  return Object.keys(change).length === 0 ? [] : [{ type: 'organization_role.updated', data: { id: role.id, ...change } }];
}
