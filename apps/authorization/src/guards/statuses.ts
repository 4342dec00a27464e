import type { ParentStatus } from '#libs/event-sourcing/src/deciding/guards/parent-status';
import { START } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import type { OrganizationIndex } from '../access/organization-index.ts';

// How what others hang on stands, as the index of an organization knows it.

/** `allows`: whether the type still allows what hangs on it. */
export function typeStatus({ environment, model }: OrganizationIndex, id: string, allows: boolean): ParentStatus {
  return { stream: streamName('authorization_model', environment, environment), id, allows, ...model.closings.of(id) };
}

/** A role of the environment is never closed: it is deleted together with what hangs on it. */
export function roleStatus(index: OrganizationIndex, id: string): ParentStatus {
  const { environment, closings } = index;
  return { stream: streamName('organization_roles', environment, index.id), id, allows: index.roleById(id) !== null, ...closings.of(id) };
}

export function resourceStatus({ id: organizationId, environment, tree, closings }: OrganizationIndex, id: string): ParentStatus {
  return { stream: streamName('resource_tree', environment, organizationId), id, allows: tree.nodeById(id) !== undefined, ...closings.of(id) };
}

/** Of what nobody closes: it is there, or gone. */
export function unclosableStatus(id: string, allows: boolean): ParentStatus {
  return { stream: '', id, allows, closing: null, since: START };
}
