import type { Permission } from '#libs/contracts/src/permissions/permission';
import type { ResourceType } from '#libs/contracts/src/resource-types/resource-type';
import type { Role } from '#libs/contracts/src/roles/role';
import type { Seeds } from '#libs/contracts/src/roles/seeds';
import type { NewPublicEvent, Decider, Decision, DecisionContext, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { afterClosing, withoutClosing, type ClosingEvent, type WithClosings } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import { badRequest, DomainError, notFound, refusedField } from '#libs/platform/src/domain-error';

// These types are the storage format: a stored name or shape is never edited.

export type AuthorizationModelEvent =
  /** What the environment began with; always the first fact. */
  | Fact<'authorization_model.seeded', Seeds>
  | Fact<'resource_type.created', NewResourceType>
  | Fact<'resource_type.updated', { readonly id: string } & Partial<Pick<NewResourceType, 'name' | 'description' | 'parents'>>>
  | Fact<'resource_type.deleted', { readonly id: string }>
  /** Somebody is about to delete the type, or to take parent types from it, unless it is used. */
  | ClosingEvent<'resource_type'>
  | Fact<'permission.created', NewPermission>
  | Fact<'permission.updated', { readonly id: string } & Partial<Pick<NewPermission, 'name' | 'description'>>>
  /** Every role loses it with this. */
  | Fact<'permission.deleted', { readonly id: string }>
  | Fact<'role.created', NewRole>
  /** What changed. With an id alone it tells of what another fact of the same append did to the role. */
  | Fact<'role.updated', { readonly id: string } & Partial<Pick<NewRole, 'name' | 'description' | 'permissions'>>>
  | Fact<'role.deleted', { readonly id: string }>
  | Fact<'roles.reordered', { readonly role_ids: readonly string[] }>;

/** A type by what holds and what is said: the built-in `organization` has no id. */
export interface TypeReference {
  readonly id: string | null;
  readonly slug: string;
}

/** References hold the id; the slug, which never changes, is there to be read. */
export interface PermissionReference {
  readonly id: string;
  readonly slug: string;
}

interface NewResourceType extends Pick<ResourceType, 'id' | 'slug' | 'name' | 'description'> {
  readonly parents: readonly TypeReference[];
}

interface NewPermission extends Pick<Permission, 'id' | 'slug' | 'name' | 'description' | 'system' | 'resource_type_slug'> {
  readonly resource_type_id: string | null;
}

interface NewRole extends Pick<Role, 'id' | 'slug' | 'name' | 'description' | 'resource_type_slug'> {
  readonly resource_type_id: string | null;
  readonly permissions: readonly PermissionReference[];
}

interface Times {
  readonly created_at: string;
  readonly updated_at: string;
}

export type StoredResourceType = NewResourceType & Times;
export type StoredPermission = NewPermission & Times;
/** Holds the ids of its permissions, each of which is live: their slugs are those of the model's permissions. */
export type StoredRole = Omit<NewRole, 'permissions'> & Times & { readonly permission_ids: readonly string[] };

/** All that an environment's roles are made of. Its resource types may be about to be closed. */
export interface AuthorizationModel extends WithClosings {
  /** In the order of their creation, as are the permissions. */
  readonly resource_types: readonly StoredResourceType[];
  readonly permissions: readonly StoredPermission[];
  /** In the order of their priority. */
  readonly roles: readonly StoredRole[];
  /** Ids of what was deleted last: a repeated creation does not revive it, and it stays a valid cursor. */
  readonly ended_ids: readonly string[];
  /** Ids of roles that changed with a permission or with the order, which nothing was recorded of so far. Absent: none. */
  readonly untold?: readonly string[];
}

/** Null until it is seeded. */
export type AuthorizationModelState = AuthorizationModel | null;

const EMPTY: AuthorizationModel = { resource_types: [], permissions: [], roles: [], ended_ids: [] };

function evolve(state: AuthorizationModelState, event: AuthorizationModelEvent & { readonly at: string }): AuthorizationModel {
  const model = state ?? EMPTY;
  const { at } = event;
  switch (event.type) {
    case 'authorization_model.seeded':
      return {
        ...model,
        permissions: [...event.data.permissions.map((permission) => born(permission, at)), ...model.permissions],
        roles: [...event.data.roles.map((role) => initialRole(role, at)), ...model.roles],
      };
    case 'resource_type.created':
      return { ...model, resource_types: [...model.resource_types, born(event.data, at)] };
    case 'resource_type.updated':
      return { ...model, resource_types: changed(model.resource_types, event.data, at) };
    case 'resource_type.deleted':
      return ended(withoutClosing({ ...model, resource_types: without(model.resource_types, event.data.id) }, event.data.id), event.data.id);
    case 'resource_type.closing':
    case 'resource_type.reopened':
      return afterClosing(model, event);
    case 'permission.created':
      return { ...model, permissions: [...model.permissions, born(event.data, at)] };
    case 'permission.updated':
      return { ...model, permissions: changed(model.permissions, event.data, at) };
    case 'permission.deleted': {
      const { id } = event.data;
      const roles = model.roles.map((role) =>
        role.permission_ids.includes(id) ? { ...role, permission_ids: role.permission_ids.filter((permission) => permission !== id) } : role,
      );
      const changed = model.roles.filter((role, place) => roles[place] !== role);
      return withUntold(ended({ ...model, permissions: without(model.permissions, id), roles }, id), changed);
    }
    case 'role.created':
      return { ...model, roles: [...model.roles, initialRole(event.data, at)] };
    case 'role.updated': {
      const { permissions, ...change } = event.data;
      return {
        ...told(model, change.id),
        roles: changed(model.roles, { ...change, ...(permissions !== undefined && { permission_ids: permissions.map(({ id }) => id) }) }, at),
      };
    }
    case 'role.deleted':
      return ended({ ...told(model, event.data.id), roles: without(model.roles, event.data.id) }, event.data.id);
    case 'roles.reordered': {
      const places = new Map(event.data.role_ids.map((id, place) => [id, place]));
      const placeOf = ({ id }: StoredRole): number => places.get(id) ?? places.size;
      const roles = [...model.roles].sort((one, other) => placeOf(one) - placeOf(other));
      return withUntold(
        { ...model, roles },
        roles.filter((role, place) => model.roles[place] !== role),
      );
    }
  }
}

function born<New extends { readonly id: string }>(data: New, at: string): New & Times {
  return { ...data, created_at: at, updated_at: at };
}

function initialRole({ permissions, ...role }: NewRole, at: string): StoredRole {
  return { ...role, permission_ids: permissions.map(({ id }) => id), created_at: at, updated_at: at };
}

function changed<Stored extends Times & { readonly id: string }>(
  all: readonly Stored[],
  change: Partial<Stored> & { readonly id: string },
  at: string,
): readonly Stored[] {
  return all.map((one) => (one.id === change.id ? { ...one, ...change, updated_at: at } : one));
}

function without<Stored extends { readonly id: string }>(all: readonly Stored[], id: string): readonly Stored[] {
  return all.filter((one) => one.id !== id);
}

function ended(model: AuthorizationModel, id: string): AuthorizationModel {
  return { ...model, ended_ids: withEnded(model.ended_ids, id) };
}

/** Of a command that comes again after more records than this, nobody can tell any more whether it was carried out: it is refused before it meets a state. */
const MAX_ENDED_IDS = 10_000;

/** What ended last, with one more. */
export function withEnded(endedIds: readonly string[], id: string): readonly string[] {
  return [...endedIds, id].slice(-MAX_ENDED_IDS);
}

function withUntold(model: AuthorizationModel, roles: readonly StoredRole[]): AuthorizationModel {
  if (roles.length === 0) return model;
  return { ...model, untold: [...new Set([...(model.untold ?? []), ...roles.map(({ id }) => id)])] };
}

function told(model: AuthorizationModel, id: string): AuthorizationModel {
  const { untold, ...rest } = model;
  if (untold === undefined || !untold.includes(id)) return model;
  return untold.length === 1 ? rest : { ...rest, untold: untold.filter((other) => other !== id) };
}

function toPublicEvent(event: AuthorizationModelEvent, before: AuthorizationModelState, after: AuthorizationModelState): NewPublicEvent | null {
  const names = [event.type];
  switch (event.type) {
    case 'permission.created':
    case 'permission.updated':
      return { payload: toPublicPermission(byId(after!.permissions, event.data.id)!), names };
    case 'permission.deleted':
      return { payload: toPublicPermission(byId(before!.permissions, event.data.id)!), names };
    case 'role.created':
    case 'role.updated':
      return { payload: toPublicRole(after!, byId(after!.roles, event.data.id)!), names };
    case 'role.deleted':
      return { payload: toPublicRole(before!, byId(before!.roles, event.data.id)!), names };
    case 'authorization_model.seeded':
    case 'resource_type.created':
    case 'resource_type.updated':
    case 'resource_type.deleted':
    case 'resource_type.closing':
    case 'resource_type.reopened':
    case 'roles.reordered':
      return null;
  }
}

/** One aggregate per environment: what its rules compare is small, seldom written, and all here. */
export const authorizationModelDecider: Decider<AuthorizationModelState, AuthorizationModelEvent> = {
  category: 'authorization_model',
  foldVersion: 3,
  initial: null,
  sealed: {
    'authorization_model.seeded': null,
    'resource_type.created': null,
    'resource_type.updated': null,
    'resource_type.deleted': null,
    'resource_type.closing': null,
    'resource_type.reopened': null,
    'permission.created': null,
    'permission.updated': null,
    'permission.deleted': null,
    'role.created': null,
    'role.updated': null,
    'role.deleted': null,
    'roles.reordered': null,
  },
  evolve,
  toPublicEvent,
  // What the state keeps as untold.
  mayFollow: ['role.updated'],
};

export type ModelDecision = (model: AuthorizationModel, context: DecisionContext) => readonly AuthorizationModelEvent[];

/** A decision on the model as it is, or as it begins: then the seeds are recorded before what follows from it. */
export function onModel(seeds: Seeds, decide: ModelDecision): Decision<AuthorizationModelState, AuthorizationModelEvent> {
  return (state, context) => {
    if (state !== null) return bounded(state, decide(state, context), context);
    const seeded: AuthorizationModelEvent = { type: 'authorization_model.seeded', data: seeds };
    const begun = evolve(null, { ...seeded, at: context.now });
    return [seeded, ...bounded(begun, decide(begun, context), context)];
  };
}

/** Of each role that changed with something else what it is now, as long as nothing is recorded of it. */
export function tellOfRoles({ untold = [] }: AuthorizationModel): readonly AuthorizationModelEvent[] {
  return untold.map((id) => ({ type: 'role.updated', data: { id } }));
}

/** How many permissions the roles of an environment, or those of an organization, have together: its state is one row. */
const MAX_ROLE_PERMISSIONS = 20_000;
/** What the types, permissions and roles of an environment come to as JSON, beside which permissions its roles have. */
const MAX_MODEL_BYTES = 2.75 * 1024 * 1024;

/** What was recorded under other rules may be more, and shrink. @throws DomainError `role_permission_limit_reached`, `authorization_model_limit_reached` */
function bounded(before: AuthorizationModel, events: readonly AuthorizationModelEvent[], { now }: DecisionContext): readonly AuthorizationModelEvent[] {
  const after = events.reduce<AuthorizationModel>((model, event) => evolve(model, { ...event, at: now }), before);
  if (after === before) return events;
  refuseTooManyPairs(pairsOf(before), pairsOf(after));
  const bytes = bytesOf(after);
  if (bytes > MAX_MODEL_BYTES && bytes > bytesOf(before))
    throw new DomainError(
      'invalid',
      'authorization_model_limit_reached',
      'The resource types, permissions and roles of the environment are too many, or their texts too long, to take in more.',
    );
  return events;
}

/** @throws DomainError `role_permission_limit_reached` where there would be more than there may be, and more than before */
export function refuseTooManyPairs(before: number, after: number): void {
  if (after <= MAX_ROLE_PERMISSIONS || after <= before) return;
  throw new DomainError(
    'invalid',
    'role_permission_limit_reached',
    `The roles would have ${after} permissions together, and may have ${MAX_ROLE_PERMISSIONS}.`,
  );
}

function pairsOf({ roles }: AuthorizationModel): number {
  return roles.reduce((sum, { permission_ids }) => sum + permission_ids.length, 0);
}

function bytesOf({ resource_types, permissions, roles }: AuthorizationModel): number {
  return Buffer.byteLength(JSON.stringify([resource_types, permissions, roles.map((role) => ({ ...role, permission_ids: [] }))]));
}

export function toPublicResourceType({ parents, ...type }: StoredResourceType): ResourceType {
  return { object: 'resource_type', ...type, parent_type_slugs: parents.map(({ slug }) => slug) };
}

export function toPublicPermission({ resource_type_id: _, ...permission }: StoredPermission): Permission {
  return { object: 'permission', ...permission };
}

export function toPublicRole(model: AuthorizationModel, role: StoredRole): Role {
  return roleWithSlugs(permissionSlugs(model), role);
}

/** All roles of the environment, in the order of their priority. */
export function toPublicRoles(model: AuthorizationModel): readonly Role[] {
  const slugs = permissionSlugs(model);
  return model.roles.map((role) => roleWithSlugs(slugs, role));
}

function roleWithSlugs(slugs: ReadonlyMap<string, string>, { permission_ids, resource_type_id: _, ...role }: StoredRole): Role {
  return { object: 'role', ...role, type: 'EnvironmentRole', permissions: permission_ids.flatMap((id) => slugs.get(id) ?? []) };
}

/** By the permissions of a model, which later models share: a thousand roles may be told of at once, and there may be ten thousand permissions. */
const knownSlugs = new WeakMap<AuthorizationModel['permissions'], ReadonlyMap<string, string>>();

/** The slugs of the live permissions by their ids: what is not in it is dead, whoever refers to it. */
export function permissionSlugs({ permissions }: AuthorizationModel): ReadonlyMap<string, string> {
  let slugs = knownSlugs.get(permissions);
  if (slugs === undefined) knownSlugs.set(permissions, (slugs = new Map(permissions.map(({ id, slug }) => [id, slug]))));
  return slugs;
}

export function byId<Stored extends { readonly id: string }>(all: readonly Stored[], id: string): Stored | undefined {
  return all.find((one) => one.id === id);
}

export function bySlug<Stored extends { readonly slug: string }>(all: readonly Stored[], slug: string): Stored | undefined {
  return all.find((one) => one.slug === slug);
}

/** @throws DomainError `entity_not_found` */
export function resourceTypeBySlug({ resource_types }: AuthorizationModel, slug: string): StoredResourceType {
  return present(bySlug(resource_types, slug), 'Resource type', slug);
}

/** The type that a role, a permission or a parent names; also the built-in one. @throws DomainError `entity_not_found` */
export function typeNamed(model: AuthorizationModel, slug: string): TypeReference {
  if (slug === BUILT_IN_TYPE.slug) return BUILT_IN_TYPE;
  const { id } = resourceTypeBySlug(model, slug);
  return { id, slug };
}

/** @throws DomainError `entity_not_found` */
export function permissionBySlug({ permissions }: AuthorizationModel, slug: string): StoredPermission {
  return present(bySlug(permissions, slug), 'Permission', slug);
}

/** Each of the named permissions once. @throws DomainError `entity_not_found` */
export function permissionsNamed(model: AuthorizationModel, slugs: readonly string[]): readonly PermissionReference[] {
  const known = new Map(model.permissions.map((permission) => [permission.slug, permission.id]));
  return [...new Set(slugs)].map((slug) => ({ id: present(known.get(slug), 'Permission', slug), slug }));
}

/** @throws DomainError `entity_not_found` */
export function roleBySlug({ roles }: AuthorizationModel, slug: string): StoredRole {
  return present(bySlug(roles, slug), 'Role', slug);
}

/** The root of every hierarchy. */
export const BUILT_IN_TYPE: TypeReference = { id: null, slug: 'organization' };

function present<Found>(found: Found | undefined, resource: string, name: string): Found {
  if (found === undefined) throw notFound(resource, name);
  return found;
}

/**
 * Whether the command that creates `id` was carried out already: then nothing follows from it any more.
 * @throws DomainError `entity_not_found` where what it created was deleted since
 */
export function isRepeated(known: { readonly id: string } | undefined, endedIds: readonly string[], resource: string, id: string): boolean {
  if (endedIds.includes(id)) throw notFound(resource, id);
  return known !== undefined;
}

/** Whether both hold the same things, in whatever order. */
export function sameMembers<Member>(one: readonly Member[], other: readonly Member[]): boolean {
  const members = new Set(one);
  return members.size === new Set(other).size && other.every((member) => members.has(member));
}

export function slugTaken(code: string, slug: string): DomainError {
  return refusedField('conflict', code, { field: 'slug', message: `The slug '${slug}' is taken.` });
}

/** Far beyond what people can oversee, and still a row that can be written at once. @throws DomainError `bad_request` */
export function refuseMoreThan(max: number, count: number, what: string): void {
  if (count >= max) throw badRequest(`There are ${max} ${what} already, and there can be no more.`);
}
