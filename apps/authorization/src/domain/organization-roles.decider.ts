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
import { DomainError, notFound, refusedField } from '#libs/platform/src/domain-error';
import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import {
  BUILT_IN_TYPE,
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
  | ClosingEvent<'organization_role'>
  /** What groups of a directory give: here, so that no role is deleted that one of them gives. */
  | Fact<'role_mappings.changed', MappingsChanged>;

/** By a role's id: another one of the same slug is another one. Some may be dead, of the environment's: the model says which live. */
export interface StoredRoleMapping {
  readonly group_id: string;
  readonly role_id: string;
}

export interface MappingsChanged {
  readonly organization_id: string;
  readonly directory_id: string;
  readonly added: readonly StoredRoleMapping[];
  readonly removed: readonly StoredRoleMapping[];
}

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
  /** By directory, in the order in which they were made. Absent: none. */
  readonly mappings?: Readonly<Record<string, readonly StoredRoleMapping[]>>;
}

type State = OrganizationRolesState | null;

function evolve(state: State, event: OrganizationRolesEvent & { readonly at: string }): State {
  if (event.type === 'organization_role.created' || event.type === 'role_mappings.changed') {
    const before = state ?? { organization_id: event.data.organization_id, roles: [], ended_ids: [] };
    if (event.type === 'role_mappings.changed') return withMappings(before, event.data);
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

function withMappings(state: OrganizationRolesState, { directory_id, added, removed }: MappingsChanged): OrganizationRolesState {
  const { mappings: { [directory_id]: held = [], ...others } = {}, ...rest } = state;
  const gone = new Set(removed.map(keyOf));
  const left = [...held.filter((mapping) => !gone.has(keyOf(mapping))), ...added];
  const mappings = left.length === 0 ? others : { ...others, [directory_id]: left };
  return Object.keys(mappings).length === 0 ? rest : { ...rest, mappings };
}

function keyOf({ group_id, role_id }: StoredRoleMapping): string {
  return `${group_id} ${role_id}`;
}

function toPublicEvent(event: OrganizationRolesEvent, before: State, after: State): NewPublicEvent | null {
  if (event.type === 'organization_role.closing' || event.type === 'organization_role.reopened' || event.type === 'role_mappings.changed') return null;
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
    'role_mappings.changed': null,
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
    const role = byId(state?.roles ?? [], id);
    if (role === undefined) throw notFound('Role', id);
    refuseMapped(state, role);
    return closingOf('organization_role', state?.closings?.[id], intent);
  };
}

export function reopenOrganizationRole(id: string, intent: string): Decide {
  return (state) => reopeningOf('organization_role', state?.closings?.[id], id, intent);
}

/** Only while the intent is open: nobody has the role then, and nobody gets it; and while no group gives it. One that is gone stays so. */
export function deleteOrganizationRole(id: string, intent: string): Decide {
  return (state) => {
    const role = byId(state?.roles ?? [], id);
    if (role === undefined) return [];
    if (state?.closings?.[id]?.intent !== intent) throw roleHasAssignments(role.slug);
    refuseMapped(state, role);
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

/** A role of the environment that may be mapped, or may not. */
type SharedRole = Pick<StoredOrganizationRole, 'id' | 'slug' | 'resource_type_slug'>;

const MAX_MAPPINGS = 5_000;

interface RequestedMapping {
  readonly group_id: string;
  readonly role_slug: string;
}

/**
 * What groups of a directory give from now on. `shared`: the roles of the environment.
 * @throws DomainError `entity_not_found`, `sub_resource_scoped_role_not_allowed`, `role_mapping_limit_reached`
 */
export function setRoleMappings(
  { id: directory_id, organization_id }: { readonly id: string; readonly organization_id: string },
  requested: readonly RequestedMapping[],
  shared: readonly SharedRole[],
): Decide {
  return (state) => {
    const roles = new Map([...(state?.roles ?? []), ...shared].map((role) => [role.slug, role]));
    const wanted = new Map(
      requested.map(({ group_id, role_slug }, place) => {
        const role = roles.get(role_slug);
        if (role === undefined) throw notFound('Role', role_slug);
        refuseScoped(role, place);
        const mapping = { group_id, role_id: role.id };
        return [keyOf(mapping), mapping];
      }),
    );
    const held = new Map(mappingsOf(state, directory_id).map((mapping) => [keyOf(mapping), mapping]));
    const added = [...wanted].flatMap(([key, mapping]) => (held.has(key) ? [] : [mapping]));
    const removed = [...held].flatMap(([key, mapping]) => (wanted.has(key) ? [] : [mapping]));
    return mappingsChanged(state, { organization_id, directory_id, added, removed });
  };
}

/** What of a mapping is gone: its directory, its group, or its role, one of the environment. */
export type GoneOfMapping = { readonly directory_id: string } | { readonly group_id: string } | { readonly role_id: string };

/** Nothing gives what is gone, nor is given by it. */
export function dropRoleMappings(gone: GoneOfMapping): Decide {
  const isGone = (directory_id: string, { group_id, role_id }: StoredRoleMapping): boolean =>
    'directory_id' in gone ? directory_id === gone.directory_id : 'group_id' in gone ? group_id === gone.group_id : role_id === gone.role_id;
  return (state) =>
    Object.entries(state?.mappings ?? {}).flatMap(([directory_id, mappings]) =>
      mappingsChanged(state, {
        organization_id: state!.organization_id,
        directory_id,
        added: [],
        removed: mappings.filter((mapping) => isGone(directory_id, mapping)),
      }),
    );
}

function mappingsChanged(state: State, change: MappingsChanged): readonly OrganizationRolesEvent[] {
  const { added, removed } = change;
  if (added.length + removed.length === 0) return [];
  const count = Object.values(state?.mappings ?? {}).reduce((sum, mappings) => sum + mappings.length, 0);
  if (added.length > removed.length && count + added.length - removed.length > MAX_MAPPINGS)
    throw new DomainError('invalid', 'role_mapping_limit_reached', `The groups of an organization's directories give at most ${MAX_MAPPINGS} roles together.`);
  return [{ type: 'role_mappings.changed', data: change }];
}

/** The oldest first. */
export function mappingsOf(state: State, directoryId: string): readonly StoredRoleMapping[] {
  return state?.mappings?.[directoryId] ?? [];
}

/** @throws DomainError `role_has_group_role_mappings` */
function refuseMapped(state: State, { id, slug }: StoredOrganizationRole): void {
  if (!Object.values(state?.mappings ?? {}).some((mappings) => mappings.some(({ role_id }) => role_id === id))) return;
  throw new DomainError('conflict', 'role_has_group_role_mappings', `Groups of a directory give the role '${slug}': take it out of their mappings first.`);
}

function refuseScoped({ slug, resource_type_slug }: SharedRole, place: number): void {
  if (resource_type_slug === BUILT_IN_TYPE.slug) return;
  const message = `The role '${slug}' is scoped to the resource type '${resource_type_slug}'.`;
  throw refusedField('invalid', 'sub_resource_scoped_role_not_allowed', { field: `role_mappings.${place}.role_slug`, message, role_slug: slug });
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
