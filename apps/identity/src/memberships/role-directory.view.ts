import type { AuthorizationModelEvent } from '#apps/authorization/src/domain/authorization-model.decider';
import type { OrganizationRolesEvent } from '#apps/authorization/src/domain/organization-roles.decider';
import { ROLE_DIRECTORY } from '#libs/contracts/src/roles/role-directory';
import { seedsOf } from '#libs/contracts/src/roles/seeds';
import { afterClosing, withoutClosing, type WithClosings } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
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

const HANDLED = [
  'authorization_model.seeded',
  'role.created',
  'role.deleted',
  'roles.reordered',
  'organization_role.created',
  'organization_role.deleted',
  'organization_role.closing',
  'organization_role.reopened',
] as const satisfies readonly (AuthorizationModelEvent | OrganizationRolesEvent)['type'][];

/** What identity knows of the roles that the authorization service owns. A row for each environment and each organization with custom roles, under its id. */
export const roleDirectoryView: View<RoleScope> = {
  ...ROLE_DIRECTORY,
  handles: HANDLED,
  indexes: [],
  idsOf: (event) => [scopeOf(event)],
  evolve: (row, { type, data, meta }) => {
    const scope = row ?? (type.startsWith('organization_role.') ? { roles: [], deleted: [] } : seededRoles(meta.environment));
    switch (type as (typeof HANDLED)[number]) {
      case 'authorization_model.seeded':
        return { ...scope, roles: (data as { readonly roles: readonly KnownRole[] }).roles.map(known) };
      case 'role.created':
      case 'organization_role.created':
        return { ...scope, roles: [...scope.roles, known(data as KnownRole)] };
      case 'role.deleted':
      case 'organization_role.deleted': {
        const { id } = data as { readonly id: string };
        return withoutClosing({ ...scope, roles: scope.roles.filter((role) => role.id !== id), deleted: [...scope.deleted, id].slice(-MAX_DELETED) }, id);
      }
      case 'organization_role.closing':
      case 'organization_role.reopened': {
        const fact = data as { readonly id: string; readonly intent: string };
        return afterClosing(scope, { type, data: fact, at: new Date(meta.at).toISOString() });
      }
      case 'roles.reordered': {
        const { role_ids } = data as { readonly role_ids: readonly string[] };
        const place = new Map(role_ids.map((id, index) => [id, index]));
        const placeOf = ({ id }: KnownRole): number => place.get(id) ?? role_ids.length;
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

/** The streams of both kinds have the scope's id for their key. */
function scopeOf({ stream, meta: { environment } }: RecordedEvent): string {
  return stream.slice(stream.indexOf(environment) + environment.length + 1);
}
