import type { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { Clock } from '#libs/platform/src/clock';
import type { Positions } from '#libs/platform/src/positions';
import { systemContext } from '#libs/platform/src/system-context';
import type { ReadModels } from '#libs/read-models/src/read-models';
import type { AuthorizationModelEvent } from '../domain/authorization-model.decider.ts';
import { dropPermission, organizationRolesDecider, recordRoleDeletions } from '../domain/organization-roles.decider.ts';
import type { AuthorizationModels } from '../repositories/authorization-models.ts';
import { organizationRolesView } from '../views/organization-roles.view.ts';

interface Needs {
  readonly repository: Repository;
  readonly readModels: ReadModels;
  readonly positions: Positions;
  readonly clock: Clock;
}

/** The permission is dead in every role with its own event; this tells so of each role that an organization made. Asked again, it finds none that still holds it. */
export function dropPermissionWhenDeleted({ repository, readModels, positions, clock }: Needs): Reaction {
  const rows = readModels.table(tableOf(organizationRolesView));
  return {
    name: 'drop-permission-when-permission-deleted',
    handles: ['permission.deleted' satisfies AuthorizationModelEvent['type']],
    react: async ({ meta: { environment }, data, position }) => {
      const { id } = data as { readonly id: string };
      // The rows of what held it when it was deleted.
      await positions.reached(position, systemContext(environment, clock.now()).deadline);
      const where = { index: 'permission', values: [id] };
      for (let after: string | undefined, hasMore = true; hasMore;) {
        const page = await rows.page(environment, { where, order: 'asc', limit: 100, after });
        for (const row of page.rows) await untilNothingFollows({ repository, clock }, { environment, id: row.id }, dropPermission(id));
        after = page.rows.at(-1)?.id;
        hasMore = page.hasAfter;
      }
    },
  };
}

/** The roles are dead with their organization; this tells so of each. */
export function deleteRolesWhenOrganizationDeleted({ repository, clock }: Pick<Needs, 'repository' | 'clock'>): Reaction {
  return {
    name: 'delete-roles-when-organization-deleted',
    handles: ['organization.deleted'],
    react: async ({ meta, data }) => {
      const { id } = data as { readonly id: string };
      await untilNothingFollows({ repository, clock }, { environment: meta.environment, id }, recordRoleDeletions());
    },
  };
}

/** What an append takes of it at a time: whoever is stopped between two goes on with what is left. */
async function untilNothingFollows(
  { repository, clock }: Pick<Needs, 'repository' | 'clock'>,
  { environment, id }: { readonly environment: string; readonly id: string },
  decide: ReturnType<typeof dropPermission>,
): Promise<void> {
  const next = () => repository.transact(organizationRolesDecider, systemContext(environment, clock.now()), id, decide);
  while ((await next()).facts.length > 0);
}

/** Roles of the environment that changed with a permission or with the order, and were too many to be told of with it; asked again, it finds none. */
export function tellOfChangedRoles(models: AuthorizationModels): Reaction {
  return {
    name: 'tell-of-changed-roles',
    handles: ['permission.deleted', 'roles.reordered'] satisfies readonly AuthorizationModelEvent['type'][],
    react: async ({ meta: { environment } }) => {
      while (await models.tellOfRoles(environment));
    },
  };
}
