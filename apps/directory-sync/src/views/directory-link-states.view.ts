import type { DirectoryLinkEvent } from '#apps/identity/src/domain/directory-link.decider';
import type { LinkState } from '#libs/contracts/src/directories/directory-user';
import type { View } from '#libs/event-sourcing/src/views/view';

/** What identity has recorded of a person. */
export interface LinkOfPerson {
  readonly id: string;
  readonly link_state: LinkState | null;
}

/** What became of people, which identity follows up. */
export const directoryLinkStatesView: View<LinkOfPerson, DirectoryLinkEvent> = {
  name: 'directory_link_states',
  version: 1,
  awaited: false,
  handles: ['directory_link.changed', 'directory_link.ended'],
  indexes: [],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, { type, data }, id) => (type === 'directory_link.changed' ? { id, link_state: data.link_state } : null),
};
