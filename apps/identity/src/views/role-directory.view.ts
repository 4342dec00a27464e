import type { AuthorizationModelEvent } from '#apps/authorization/src/domain/authorization-model.decider';
import type { OrganizationRolesEvent } from '#apps/authorization/src/domain/organization-roles.decider';
import { ROLE_DIRECTORY } from '#libs/contracts/src/roles/role-directory';
import { seedsOf } from '#libs/contracts/src/roles/seeds';
import { afterClosing, withoutClosing, type WithClosings } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import type { View } from '#libs/event-sourcing/src/views/view';

/** A role, as far as memberships need to know it. */
export interface KnownRole {
  readonly id: string;
  readonly slug: string;
  readonly resource_type_slug: string;
}

/** The roles of an environment, or the custom roles of an organization. */
export interface RoleScope extends WithClosings {
  /** Those that live, in the order of their priority. */
  readonly roles: readonly KnownRole[];
  /** Ids of those that ended last: an id that is in neither list is one that is not known here yet, or that no membership has had for long. */
  readonly deleted: readonly string[];
}

/** Long before so many have ended, memberships that had them were given others: by the reaction, in the order in which they ended. */
const MAX_DELETED = 20_000;

type RoleFact =
  | FactOf<AuthorizationModelEvent, 'authorization_model.seeded' | 'role.created' | 'role.deleted' | 'roles.reordered'>
  | FactOf<OrganizationRolesEvent, 'organization_role.created' | 'organization_role.deleted' | 'organization_role.closing' | 'organization_role.reopened'>;

/** What identity knows of the roles that the authorization service owns. A row for each environment and each organization with custom roles, under its id. */
export const roleDirectoryView: View<RoleScope, RoleFact> = {
  ...ROLE_DIRECTORY,
  handles: [
    'authorization_model.seeded',
    'role.created',
    'role.deleted',
    'roles.reordered',
    'organization_role.created',
    'organization_role.deleted',
    'organization_role.closing',
    'organization_role.reopened',
  ],
  indexes: [],
  // The streams of both kinds have the scope's id for their key.
  idsOf: ({ stream }) => [streamKeyOf(stream)],
  evolve: (row, { type, data, meta }) => {
    const scope = row ?? (type.startsWith('organization_role.') ? { roles: [], deleted: [] } : seededRoles(meta.environment));
    switch (type) {
      case 'authorization_model.seeded':
        return { ...scope, roles: data.roles.map(known) };
      case 'role.created':
      case 'organization_role.created':
        return { ...scope, roles: [...scope.roles, known(data)] };
      case 'role.deleted':
      case 'organization_role.deleted': {
        const { id } = data;
        return withoutClosing({ ...scope, roles: scope.roles.filter((role) => role.id !== id), deleted: [...scope.deleted, id].slice(-MAX_DELETED) }, id);
      }
      case 'organization_role.closing':
      case 'organization_role.reopened':
        return afterClosing(scope, { type, data, at: new Date(meta.at).toISOString() });
      case 'roles.reordered': {
        const place = new Map(data.role_ids.map((id, index) => [id, index]));
        const placeOf = ({ id }: KnownRole): number => place.get(id) ?? data.role_ids.length;
        return { ...scope, roles: [...scope.roles].sort((one, other) => placeOf(one) - placeOf(other)) };
      }
    }
  },
};

/** Those that every environment begins with, whether it was recorded yet or not. */
export function seededRoles(environment: string): RoleScope {
  return { roles: seedsOf(environment).roles.map(known), deleted: [] };
}

function known({ id, slug, resource_type_slug }: KnownRole): KnownRole {
  return { id, slug, resource_type_slug };
}
