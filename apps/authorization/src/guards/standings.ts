import type { Standing } from '#libs/event-sourcing/src/deciding/guards/standings';
import { START } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import type { OrganizationIndex } from '../access/organization-index.ts';

// How what others hang on stands, as the index of an organization knows it.

/** `allows`: whether the type still allows what hangs on it. */
export function typeStanding({ environment, model }: OrganizationIndex, id: string, allows: boolean): Standing {
  return { stream: streamName('authorization_model', environment, environment), id, allows, ...model.closings.of(id) };
}

/** A role of the environment is never closed: it is deleted together with what hangs on it. */
export function roleStanding(index: OrganizationIndex, id: string): Standing {
  const { environment, closings } = index;
  return { stream: streamName('organization_roles', environment, index.id), id, allows: index.roleById(id) !== null, ...closings.of(id) };
}

export function resourceStanding({ id: organizationId, environment, tree, closings }: OrganizationIndex, id: string): Standing {
  return { stream: streamName('resource_tree', environment, organizationId), id, allows: tree.nodeById(id) !== undefined, ...closings.of(id) };
}

/** Of what nobody closes: it is there, or gone. */
export function mereStanding(id: string, allows: boolean): Standing {
  return { stream: '', id, allows, closing: null, since: START };
}
