import type { View } from '#libs/event-sourcing/src/view';
import type { ResourceEvent } from './resource.events.ts';

/** A command that deleted something, by its own id. */
interface ResourceDeletion {
  readonly id: string;
}

/** Which commands deleted resources: one that is repeated finds nothing to delete, and is done all the same. */
export const resourceDeletionsView: View<ResourceDeletion> = {
  name: 'resource_deletions',
  version: 1,
  handles: ['resource.deleted' satisfies ResourceEvent['type']],
  indexes: [],
  waitedFor: false,
  idsOf: ({ meta }) => [meta.commandId],
  evolve: (_row, { meta }) => ({ id: meta.commandId }),
};
