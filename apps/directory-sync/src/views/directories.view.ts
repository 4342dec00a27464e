import { primaryView } from '#libs/event-sourcing/src/views/view';
import { searchKeys } from '#libs/read-models/src/name-search';
import { directoryDecider, type DirectoryEvent, type DirectoryState, type StoredDirectory } from '../domain/directory.decider.ts';

/** Every directory that was not deleted; it is dead once its organization is. Rows hold hashes of tokens, which no answer shows. */
export const directoriesView = primaryView<DirectoryState, DirectoryEvent, StoredDirectory>({
  name: 'directories',
  noun: 'Directory',
  version: 2,
  decider: directoryDecider,
  indexes: [
    { name: 'organization', keys: ({ organization_id }) => [organization_id] },
    { name: 'search', keys: ({ name }) => searchKeys(name) },
  ],
  rowOf: (state) => (state?.object === 'directory' ? state : null),
});
